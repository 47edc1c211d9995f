// compile.h: compiles a filter to SQL.
//
//       filter ──► text made of constants + parameters in order ──► compile_bind()
//
// There are three forms of SQL, which return the same result on the same data:
//
//       live       tables kept by the write path
//       views      materialized views with the same columns
//       fallback   the write model itself, one "in (select ...)" per filter
//
// No part of a request becomes part of the text: values are parameters, names come from the
// catalogue, and the compiler numbers the parameters.  tests/fuzz/fuzz_filter.c checks this.
#ifndef QUEEN_AUDIENCE_COMPILE_H
#define QUEEN_AUDIENCE_COMPILE_H

#include <stdint.h>

#include "audience/filter.h"
#include "base/buf.h"

struct pg_params;

enum audience_path { PATH_LIVE, PATH_VIEWS, PATH_FALLBACK };
const char *audience_path_name(enum audience_path path);

enum sql_dialect { SQL_PG, SQL_MYSQL };

// A parameter, in order of the text.
enum sql_kind {
    SQL_INT,   // number
    SQL_TIME,  // number: microseconds since 1970
    SQL_TEXT,  // text; also money, which SQL casts
    SQL_JSON,  // text, passed as a JSON string; MySQL only
    SQL_UUID,  // uuid
    SQL_TEXTS, // values[n]
    SQL_INTS,
};
struct sql_param {
    enum sql_kind kind;
    int64_t number;
    span text;
    const uint8_t *uuid;
    const struct filter_value *values;
    unsigned n;
};

enum { COMPILE_MAX_PARAMS = 40, COMPILE_MAX_TEXT = 65536 };

// {.dialect, .path} is ready to use; then compile_deinit().  Parameters borrow from the filter.
struct compiled {
    enum sql_dialect dialect;
    enum audience_path path;
    struct buf text;
    struct sql_param params[COMPILE_MAX_PARAMS];
    unsigned n_params;
    unsigned
        next_param; // number of the next one: n_params, or less while parameters are reused
    // PostgreSQL numbers its parameters, so a leaf that is written twice uses the same ones.
    unsigned leaf_param[FILTER_MAX_LEAVES]; // 1 + number of its first one; 0: not written yet
    uint32_t twins; // leaves, by number, that are tested in both models: see attribute.twin
    int rc;         // QE_TOO_LARGE: too many values or too long
};
void compile_deinit(struct compiled *c);

// One row.
enum { COUNT_N };
void compile_count(struct compiled *c, const struct filter *f,
                   const struct filter_facts *facts);
// A page in order of id: `limit` customers after `after` (fetch one more to detect the end).
enum {
    PAGE_ID,
    PAGE_UUID,
    PAGE_FIRST_NAME,
    PAGE_LAST_NAME,
    PAGE_EMAIL,
    PAGE_PHONE,
    PAGE_CITY,
    PAGE_COLUMNS
};
void compile_page(struct compiled *c, const struct filter *f, const struct filter_facts *facts,
                  int64_t after, int64_t limit);
// All customers as a sub-select with one column, customer_uuid, appended to c->text.
void compile_uuids(struct compiled *c, const struct filter *f,
                   const struct filter_facts *facts);
// One customer: whether it is in the segment, and for each leaf the result of its test and its
// value as JSON text.  No row: the customer does not exist in this path.
enum { EXPLAIN_INSIDE, EXPLAIN_LEAVES };
#define EXPLAIN_LEAF_TEST(number)  (EXPLAIN_LEAVES + 2 * (number))
#define EXPLAIN_LEAF_VALUE(number) (EXPLAIN_LEAVES + 2 * (number) + 1)
void compile_explain(struct compiled *c, const struct filter *f,
                     const struct filter_facts *facts, const uint8_t customer[16]);

// PostgreSQL only, one transaction each (compile_effects.c).  Checks a watched segment: updates
// its members, the outbox and the runs of campaigns on entry.  One row: inside, entered, left.
void compile_watch(struct compiled *c, const struct filter *f, const struct filter_facts *facts,
                   const uint8_t segment[16]);
// Creates the run of a campaign with its recipients unless a run with this key exists.  Returns
// a row if it was created.  key is borrowed.
enum { RUN_ID, RUN_RECIPIENTS };
void compile_run(struct compiled *c, const struct filter *f, const struct filter_facts *facts,
                 const uint8_t campaign[16], span key);

// Returns true if every path that may serve this filter can compile it, for runs and for
// counts. Otherwise the filter must not be saved.
bool compile_is_possible(const struct filter *f, const struct filter_facts *facts);

// Binds the parameters for PostgreSQL; out is reset first.
void compile_bind(const struct compiled *c, struct pg_params *out);

#endif
