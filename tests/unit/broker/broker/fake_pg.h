// fake_pg.h: a pool that records calls; the test decides when they are answered. It replaces
// broker/src/broker.
//
// Parameters are real (pg/params.c) and are read back from their wire form; results are rows
// that the test writes by column name, laid out as the statement selects them.  A cell read as
// another type than it was written is a failure, so the columns a file expects are checked,
// too.
#ifndef QUEEN_TESTS_BROKER_FAKE_PG_H
#define QUEEN_TESTS_BROKER_FAKE_PG_H

#include "pg/pool.h"

void fake_reset(void);
void fake_set_up(bool up); // events of the pool for the broker
unsigned fake_n_calls(void);
// The oldest call without an answer, which must be of this name.
struct pg_call *fake_call(const char *name);
// The oldest without an answer of this name, or NULL.
struct pg_call *fake_find(const char *name);
struct pg_call *fake_nth(unsigned i); // of those without an answer, oldest first; or NULL

// A row of the next answer: "name:kind name:kind ..." and the values; other columns are NULL.
// Kinds: i int, l int64_t, b bool (int), t text, y span, u uuid (16 bytes), T microseconds
// since 1970 (int64_t).
void fake_row(const char *cells, ...);
void fake_no_rows(void);                         // those so far are forgotten
void fake_answer(struct pg_call *c, int status); // with the rows so far
void fake_answer_locked(struct pg_call *c);      // a lock was not to be had in time
const struct pg_reply *fake_reply(const struct pg_statement *statement); // likewise, no call
void fake_fail_all(int status); // until no call is left

// Arrays among the parameters, by the type of their elements: the nth (from 0; -1: the last).
unsigned fake_len(const struct pg_params *p, enum pg_type type, int nth);
span fake_bytes(const struct pg_params *p, enum pg_type type, int nth,
                unsigned i); // NONE: NULL
int64_t fake_int(const struct pg_params *p, enum pg_type type, int nth, unsigned i);
int64_t fake_scalar(const struct pg_params *p, unsigned param); // of all parameters, from 0

#endif
