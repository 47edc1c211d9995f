// reply.h: read access to a binary result.
#ifndef QUEEN_PG_REPLY_H
#define QUEEN_PG_REPLY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"

struct pg_reply;

// Numbers: 0 for NULL.  An integer accessor reads any integer column whose value fits.
unsigned pg_reply_rows(const struct pg_reply *r);
unsigned pg_reply_cols(const struct pg_reply *r);
bool pg_reply_is_null(const struct pg_reply *r, unsigned row, unsigned col);
int16_t pg_reply_i16(const struct pg_reply *r, unsigned row, unsigned col);
int32_t pg_reply_i32(const struct pg_reply *r, unsigned row, unsigned col);
int64_t pg_reply_i64(const struct pg_reply *r, unsigned row, unsigned col);
bool pg_reply_bool(const struct pg_reply *r, unsigned row, unsigned col);
double pg_reply_f64(const struct pg_reply *r, unsigned row, unsigned col);
// text, bytea, json: borrowed until the done callback returns.  SPAN_NONE for NULL.
span pg_reply_bytes(const struct pg_reply *r, unsigned row, unsigned col);
const uint8_t *pg_reply_uuid(const struct pg_reply *r, unsigned row,
                             unsigned col); // 16 bytes or NULL
// timestamptz -> microseconds since 1970; INT64_MIN for NULL
int64_t pg_reply_unix_us(const struct pg_reply *r, unsigned row, unsigned col);

// Cells as JSON: integers, float8 (null unless finite), bool, text, uuid, timestamptz
// (milliseconds, UTC), json unchanged; NULL becomes null. has_json: the column has one of these
// types.
bool pg_reply_has_json(const struct pg_reply *r, unsigned col);
void pg_reply_put_json(const struct pg_reply *r, unsigned row, unsigned col, struct buf *out);

// The rows [row, row + n_rows) of r, and its columns from col on; r must live longer.
struct pg_reply *pg_reply_part(const struct pg_reply *r, unsigned row, unsigned n_rows,
                               unsigned col);
void pg_reply_part_free(struct pg_reply *part);

const char *pg_reply_sqlstate(const struct pg_reply *r); // "" when none
// The transaction was rolled back because of a conflict with another one: retry it at once.
bool pg_reply_is_conflict(const struct pg_reply *r);
// A lock was not obtained within lock_timeout.
bool pg_reply_is_locked(const struct pg_reply *r);
const char *pg_reply_message(const struct pg_reply *r); // primary message, "" when none
// The sentence of the status and that message, with the SQLSTATE beside it; returns status.
int pg_reply_fault(struct fault *f, int status, const struct pg_reply *r);

#endif
