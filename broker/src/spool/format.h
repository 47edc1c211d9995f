// format.h: the bytes of a buffer file.  Pure: no files, no clock.  See
// docs/operations/file-buffer.md.
//
//      header | record | record | ...
//
// Length and checksum show whether a record is complete.  Integers are
// big-endian.
#ifndef QUEEN_SPOOL_FORMAT_H
#define QUEEN_SPOOL_FORMAT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/span.h"

enum {
    SPOOL_VERSION = 1,
    SPOOL_HEADER_BYTES = 32,
    SPOOL_PROGRESS_AT = 16, // offset of the progress in the header, and its size
    SPOOL_PROGRESS_BYTES = 16,
    SPOOL_FRAME_BYTES = 12, // length and checksum, in front of each record
};

// A push item as it waits.  Spans are borrowed.
struct spool_record {
    span queue, partition;
    span txid;     // SPAN_NONE: it is the text of the key
    span producer; // SPAN_NONE: none
    span payload;
    span meta; // JSON object of further fields; SPAN_NONE: none
    uint8_t key[16];
    uint8_t trace[16];
    bool has_trace;
    bool sealed;         // the payload is encrypted (crypt/sealer.h)
    int64_t due_us;      // to be delivered then, since 1970; 0: at once
    int64_t buffered_us; // since 1970; for people
};

void spool_put_header(struct buf *out);
// 16 bytes: records in front of `offset` have been replayed.
void spool_put_progress(struct buf *out, uint64_t offset);
// false: not one of ours, or of a later version.  *offset is where reading begins.
bool spool_read_header(span file, uint64_t *offset);

size_t spool_record_size(const struct spool_record *r); // what spool_put_record() adds
// A record with a field that does not fit is not written: out->failed is set.
void spool_put_record(struct buf *out, const struct spool_record *r);

enum spool_found {
    SPOOL_RECORD,  // *r is filled, *size is what it takes
    SPOOL_END,     // nothing left
    SPOOL_SHORT,   // more bytes are needed: *size of them (if there are none: torn)
    SPOOL_DAMAGED, // *size is where the next one may begin (0: unknown)
};
// The record at the beginning of `bytes`.  Spans point into it.
enum spool_found spool_take_record(span bytes, struct spool_record *r, uint64_t *size);

#endif
