// params.c: parameters of a call, in PostgreSQL's binary formats.
#include "pg/params.h"

#include <assert.h>

#include "base/err.h"

// An array on the wire: dimensions, has-null flag, element type, then size and lower bound per
// dimension; after that each element as length and bytes.
enum { ARRAY_HEAD_EMPTY = 12, AT_NDIM = 0, AT_HAS_NULL = 4, AT_SIZE = 12 };

// PostgreSQL counts from 2000-01-01.
#define EPOCH_2000_US INT64_C(946684800000000)

static uint32_t array_oid(enum pg_type element)
{
    switch (element) {
    case PG_BOOL:
        return 1000;
    case PG_BYTEA:
        return 1001;
    case PG_INT2:
        return 1005;
    case PG_INT4:
        return 1007;
    case PG_TEXT:
        return 1009;
    case PG_INT8:
        return 1016;
    case PG_FLOAT8:
        return 1022;
    case PG_TIMESTAMPTZ:
        return 1185;
    case PG_UUID:
        return 2951;
    }
    BUG("type %d has no array", (int)element);
}

static uint64_t f64_bits(double v)
{
    uint64_t bits;

    memcpy(&bits, &v, sizeof bits);
    return bits;
}

// After a failed put the buffer may end before `at`; the call is then not sent anyway.
static void patch_be32(struct buf *b, size_t at, uint32_t v)
{
    if (b->failed || at + 4 > b->len)
        return;
    for (int i = 0; i < 4; i++)
        b->ptr[at + (size_t)i] = (char)(v >> (24 - 8 * i) & 0xff);
}

void pg_params_reset(struct pg_params *p)
{
    buf_reset(&p->data);
    p->n = 0;
    p->array_element = 0;
}

void pg_params_free(struct pg_params *p)
{
    buf_free(&p->data);
    p->n = 0;
    p->array_element = 0;
}

bool pg_params_failed(const struct pg_params *p) { return p->data.failed; }

// ---- scalars ----

static void begin_param(struct pg_params *p, uint32_t oid)
{
    assert(p->n < PG_MAX_PARAMS && p->array_element == 0);
    p->param[p->n].at = p->data.len;
    p->param[p->n].oid = oid;
}

static void end_param(struct pg_params *p)
{
    p->param[p->n].len = p->data.len - p->param[p->n].at;
    p->n++;
}

void pg_param_null(struct pg_params *p, enum pg_type type)
{
    begin_param(p, type);
    p->param[p->n++].len = SIZE_MAX;
}

void pg_param_bool(struct pg_params *p, bool v)
{
    begin_param(p, PG_BOOL);
    buf_putc(&p->data, v ? 1 : 0);
    end_param(p);
}

void pg_param_i32(struct pg_params *p, int32_t v)
{
    begin_param(p, PG_INT4);
    buf_put_be32(&p->data, (uint32_t)v);
    end_param(p);
}

static void param_be64(struct pg_params *p, enum pg_type type, uint64_t v)
{
    begin_param(p, type);
    buf_put_be64(&p->data, v);
    end_param(p);
}

void pg_param_i64(struct pg_params *p, int64_t v) { param_be64(p, PG_INT8, (uint64_t)v); }
void pg_param_f64(struct pg_params *p, double v) { param_be64(p, PG_FLOAT8, f64_bits(v)); }

void pg_param_unix_us(struct pg_params *p, int64_t us)
{
    param_be64(p, PG_TIMESTAMPTZ, (uint64_t)us - (uint64_t)EPOCH_2000_US);
}

static void param_bytes(struct pg_params *p, enum pg_type type, const void *bytes, size_t n)
{
    begin_param(p, type);
    buf_put_bytes(&p->data, bytes, n);
    end_param(p);
}

void pg_param_text(struct pg_params *p, span v) { param_bytes(p, PG_TEXT, v.ptr, v.len); }
void pg_param_bytea(struct pg_params *p, span v) { param_bytes(p, PG_BYTEA, v.ptr, v.len); }
void pg_param_uuid(struct pg_params *p, const uint8_t v[16]) { param_bytes(p, PG_UUID, v, 16); }

// ---- arrays ----

void pg_begin_array(struct pg_params *p, enum pg_type element)
{
    begin_param(p, array_oid(element));
    p->array_at = p->data.len;
    p->array_element = element;
    p->array_n = 0;
    p->array_has_null = false;
    buf_put_be32(&p->data, 1);
    buf_put_be32(&p->data, 0);
    buf_put_be32(&p->data, element);
    buf_put_be32(&p->data, 0);
    buf_put_be32(&p->data, 1);
}

// The server refuses a wrong width, but only at run time and for the whole batch, so check it
// here.
static void begin_element(struct pg_params *p, enum pg_type type, uint32_t len)
{
    assert(p->array_element == (uint32_t)type);
    p->array_n++;
    buf_put_be32(&p->data, len);
}

void pg_put_null(struct pg_params *p)
{
    assert(p->array_element != 0);
    p->array_n++;
    p->array_has_null = true;
    buf_put_be32(&p->data, UINT32_MAX);
}

void pg_put_bool(struct pg_params *p, bool v)
{
    begin_element(p, PG_BOOL, 1);
    buf_putc(&p->data, v ? 1 : 0);
}

void pg_put_i16(struct pg_params *p, int16_t v)
{
    begin_element(p, PG_INT2, 2);
    buf_put_be16(&p->data, (uint16_t)v);
}

void pg_put_i32(struct pg_params *p, int32_t v)
{
    begin_element(p, PG_INT4, 4);
    buf_put_be32(&p->data, (uint32_t)v);
}

void pg_put_i64(struct pg_params *p, int64_t v)
{
    begin_element(p, PG_INT8, 8);
    buf_put_be64(&p->data, (uint64_t)v);
}

void pg_put_f64(struct pg_params *p, double v)
{
    begin_element(p, PG_FLOAT8, 8);
    buf_put_be64(&p->data, f64_bits(v));
}

void pg_put_unix_us(struct pg_params *p, int64_t us)
{
    begin_element(p, PG_TIMESTAMPTZ, 8);
    buf_put_be64(&p->data, (uint64_t)us - (uint64_t)EPOCH_2000_US);
}

static void put_bytes(struct pg_params *p, enum pg_type type, const void *bytes, size_t n)
{
    if (n > INT32_MAX) {
        p->data.failed = true;
        return;
    }
    begin_element(p, type, (uint32_t)n);
    buf_put_bytes(&p->data, bytes, n);
}

void pg_put_text(struct pg_params *p, span v) { put_bytes(p, PG_TEXT, v.ptr, v.len); }
void pg_put_bytea(struct pg_params *p, span v) { put_bytes(p, PG_BYTEA, v.ptr, v.len); }
void pg_put_uuid(struct pg_params *p, const uint8_t v[16]) { put_bytes(p, PG_UUID, v, 16); }

struct buf *pg_open_element(struct pg_params *p, size_t *mark)
{
    assert(p->array_element != 0);
    p->array_n++;
    *mark = p->data.len;
    buf_put_be32(&p->data, 0);
    return &p->data;
}

void pg_close_element(struct pg_params *p, size_t mark)
{
    if (p->data.failed)
        return;
    size_t len = p->data.len - mark - 4;
    if (len > INT32_MAX)
        p->data.failed = true;
    patch_be32(&p->data, mark, (uint32_t)len);
}

void pg_end_array(struct pg_params *p)
{
    assert(p->array_element != 0);
    patch_be32(&p->data, p->array_at + AT_HAS_NULL, p->array_has_null);
    patch_be32(&p->data, p->array_at + AT_SIZE, p->array_n);
    if (p->array_n == 0 && !p->data.failed) {
        // The canonical empty array has no dimension.
        patch_be32(&p->data, p->array_at + AT_NDIM, 0);
        p->data.len = p->array_at + ARRAY_HEAD_EMPTY;
    }
    p->array_element = 0;
    end_param(p);
}
