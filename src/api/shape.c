// shape.c: rows as JSON, by a text that says where each column goes.
#include "api/shape.h"

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

int shape_read(struct shape *s, span text, const struct pg_reply *reply, unsigned first)
{
    const char *at = text.ptr, *end = text.ptr + text.len;

    for (s->n = 0; at < end; s->n++) {
        const char *mark = memchr(at, '$', (size_t)(end - at));
        if (s->n == SHAPE_PARTS)
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
    }
    return 0;
}

void shape_put(const struct shape *s, const struct pg_reply *reply, unsigned row,
               struct buf *out)
{
    for (unsigned i = 0; i < s->n; i++) {
        buf_put(out, s->part[i].text);
        if (s->part[i].col != UINT_MAX)
            pg_reply_put_json(reply, row, s->part[i].col, out);
    }
}
