// params.h: parameters of a call, in PostgreSQL's binary formats.
//
// Arrays are written directly in wire format into one buffer, so that a batch of any size costs
// no allocation per element once the buffer has grown. Usage: for each parameter, in order,
// either one scalar pg_param_* or pg_begin_array ... puts ... pg_end_array.
#ifndef QUEEN_PG_PARAMS_H
#define QUEEN_PG_PARAMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

enum { PG_MAX_PARAMS = 40 };
enum pg_type { // OIDs of built-in types
    PG_BOOL = 16,
    PG_BYTEA = 17,
    PG_INT8 = 20,
    PG_INT2 = 21,
    PG_INT4 = 23,
    PG_TEXT = 25,
    PG_FLOAT8 = 701,
    PG_TIMESTAMPTZ = 1184,
    PG_UUID = 2950,
};

// {0} is empty and ready. Set data.max to limit the size of one call.
struct pg_params {
    struct buf data;
    unsigned n;
    struct {
        size_t at, len; // in data; len is SIZE_MAX for NULL
        uint32_t oid;   // of the parameter (array types for arrays)
    } param[PG_MAX_PARAMS];
    // state of the open array
    uint32_t array_element; // OID; 0: none is open
    size_t array_at;
    uint32_t array_n;
    bool array_has_null;
};

void pg_params_reset(struct pg_params *p); // keeps the memory
void pg_params_free(struct pg_params *p);

void pg_param_null(struct pg_params *p, enum pg_type type);
void pg_param_bool(struct pg_params *p, bool v);
void pg_param_i32(struct pg_params *p, int32_t v);
void pg_param_i64(struct pg_params *p, int64_t v);
void pg_param_text(struct pg_params *p, span v);
void pg_param_bytea(struct pg_params *p, span v);
void pg_param_uuid(struct pg_params *p, const uint8_t v[16]);
void pg_param_f64(struct pg_params *p, double v);
void pg_param_unix_us(struct pg_params *p, int64_t us); // timestamptz

void pg_begin_array(struct pg_params *p, enum pg_type element);
void pg_put_null(struct pg_params *p);
void pg_put_bool(struct pg_params *p, bool v);
void pg_put_i16(struct pg_params *p, int16_t v);
void pg_put_i32(struct pg_params *p, int32_t v);
void pg_put_i64(struct pg_params *p, int64_t v);
void pg_put_text(struct pg_params *p, span v);
void pg_put_bytea(struct pg_params *p, span v);
void pg_put_uuid(struct pg_params *p, const uint8_t v[16]);
void pg_put_f64(struct pg_params *p, double v);
void pg_put_unix_us(struct pg_params *p, int64_t us); // timestamptz
// An element of unknown length, written in place: append to the returned buffer, then close it.
struct buf *pg_open_element(struct pg_params *p, size_t *mark);
void pg_close_element(struct pg_params *p, size_t mark);
void pg_end_array(struct pg_params *p);

bool pg_params_failed(const struct pg_params *p); // the buffer hit its maximum

#endif
