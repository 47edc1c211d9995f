// json_rows.c: writes rows as JSON, with a template for the place of each column.
#include "api/json_rows.h"

#include <limits.h>
#include <string.h>

#include "base/err.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

// The number behind a '$', at most two digits; *at is moved behind it.
static unsigned read_number(const char **at, const char *end)
{
    unsigned v = 0;

    for (int i = 0; i < 2 && *at < end && is_digit(**at); i++)
        v = v * 10 + (unsigned)(*(*at)++ - '0');
    return v;
}

// The first part with this column: that of number n itself, if none is before it.
static unsigned first_of(const struct json_rows *s, unsigned col)
{
    unsigned i = 0;

    while (s->part[i].col != col)
        i++;
    return i;
}

int json_rows_read(struct json_rows *s, span text, const struct pg_reply *reply, unsigned first)
{
    const char *at = text.ptr, *end = text.ptr + text.len;

    for (s->n = 0; at < end; s->n++) {
        const char *mark = memchr(at, '$', (size_t)(end - at));
        if (s->n == JSON_ROWS_PARTS)
            return QE_PG_SHAPE;
        s->part[s->n].text = (span){at, (size_t)((mark ? mark : end) - at)};
        s->part[s->n].col = UINT_MAX;
        at = end;
        if (mark == NULL)
            continue;
        at = mark + 1;
        unsigned number = read_number(&at, end), col = first + number - 1;
        if (number == 0 || col >= pg_reply_cols(reply) || !pg_reply_has_json(reply, col))
            return QE_PG_SHAPE;
        s->part[s->n].col = col;
        s->part[s->n].first = first_of(s, col);
    }
    return 0;
}

void json_rows_put(const struct json_rows *s, const struct pg_reply *reply, unsigned row,
                   struct buf *out)
{
    size_t at[JSON_ROWS_PARTS], len[JSON_ROWS_PARTS]; // of the values in out

    for (unsigned i = 0; i < s->n; i++) {
        unsigned first = s->part[i].first;
        buf_put(out, s->part[i].text);
        if (s->part[i].col == UINT_MAX)
            continue;
        if (first == i) {
            at[i] = out->len;
            pg_reply_put_json(reply, row, s->part[i].col, out);
            len[i] = out->len - at[i];
        } else if (buf_reserve(out,
                               len[first])) { // before its bytes are looked at: they may move
            buf_put_bytes(out, out->ptr + at[first], len[first]);
        }
    }
}
