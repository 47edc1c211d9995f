// fuzz_spool.c: any bytes as a buffer file: no crash, no byte outside, and what is accepted is
// written again as the same bytes.
//
// build: broker/src/spool/format.c
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "spool/format.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check_inside(span whole, span part)
{
    if (part.ptr && (part.ptr < whole.ptr || part.len > whole.len ||
                     part.ptr > whole.ptr + whole.len - part.len))
        BUG("a field outside of the file");
}

static void check_record(span rest, const struct spool_record *r, uint64_t used)
{
    struct buf again = {0};

    check_inside(rest, r->queue);
    check_inside(rest, r->partition);
    check_inside(rest, r->txid);
    check_inside(rest, r->producer);
    check_inside(rest, r->meta);
    check_inside(rest, r->payload);
    if (used != spool_record_size(r) || used > rest.len)
        BUG("another size than it has");
    spool_put_record(&again, r);
    if (again.len != used || memcmp(again.ptr, rest.ptr, again.len) != 0)
        BUG("not written as it was read");
    buf_free(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size > 0 ? size : 1); // of exact length, so that ASan sees an overrun
    uint64_t at = 0, used;
    struct spool_record r;

    if (size > 0)
        memcpy(copy, data, size);
    if (spool_read_header((span){copy, size}, &at) && at < SPOOL_HEADER_BYTES)
        BUG("reading begins inside the header");
    for (size_t pos = SPOOL_HEADER_BYTES; pos < size; pos += used) {
        span rest = {copy + pos, size - pos};
        enum spool_found found = spool_take_record(rest, &r, &used);
        if (found == SPOOL_RECORD)
            check_record(rest, &r, used);
        else if (found == SPOOL_SHORT && used <= rest.len)
            BUG("short of nothing");
        else if (found == SPOOL_END || found == SPOOL_SHORT || used == 0)
            break;
    }
    free(copy);
    return 0;
}
