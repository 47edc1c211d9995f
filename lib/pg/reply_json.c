// reply_json.c: converts a cell to JSON, by the type of its column.
#include <math.h>
#include <string.h>

#include "base/str.h"
#include "pg/reply_int.h"
#include "json/write.h"

// Object ids of built-in types are part of PostgreSQL's protocol and never change.
enum {
    OID_BOOL = 16,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_JSON = 114,
    OID_FLOAT8 = 701,
    OID_VARCHAR = 1043,
    OID_TIMESTAMPTZ = 1184,
    OID_UUID = 2950,
};

bool pg_reply_has_json(const struct pg_reply *r, unsigned col)
{
    switch (PQftype(r->result, (int)(r->col + col))) {
    case OID_BOOL:
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
    case OID_TEXT:
    case OID_VARCHAR:
    case OID_JSON:
    case OID_FLOAT8:
    case OID_TIMESTAMPTZ:
    case OID_UUID:
        return true;
    default:
        return false;
    }
}

static void put_json_time(struct buf *out, int64_t unix_us)
{
    char text[STR_TS_MS];

    str_format_ts_ms(unix_us, text);
    buf_putc(out, '"');
    buf_put_bytes(out, text, sizeof text);
    buf_putc(out, '"');
}

static void put_uuid(struct buf *out, const uint8_t *id) // NULL: its width is wrong
{
    if (!id) {
        buf_put_lit(out, "null");
        return;
    }
    buf_putc(out, '"');
    buf_put_uuid(out, id);
    buf_putc(out, '"');
}

void pg_reply_put_json(const struct pg_reply *r, unsigned row, unsigned col, struct buf *out)
{
    if (pg_reply_is_null(r, row, col)) {
        buf_put_lit(out, "null");
        return;
    }
    switch (PQftype(r->result, (int)(r->col + col))) {
    case OID_BOOL:
        js_put_bool(out, pg_reply_bool(r, row, col));
        break;
    case OID_INT2:
    case OID_INT4:
    case OID_INT8:
        buf_put_i64(out, pg_reply_i64(r, row, col));
        break;
    case OID_FLOAT8: {
        double v = pg_reply_f64(r, row, col);
        if (isfinite(v))
            js_put_number(out, v);
        else
            buf_put_lit(out, "null"); // JSON has no infinity
        break;
    }
    case OID_JSON:
        buf_put(out, pg_reply_bytes(r, row, col));
        break;
    case OID_TIMESTAMPTZ:
        put_json_time(out, pg_reply_unix_us(r, row, col));
        break;
    case OID_UUID:
        put_uuid(out, pg_reply_uuid(r, row, col));
        break;
    default:
        js_put_text(out, pg_reply_bytes(r, row, col));
    }
}
