// compile.h: a filter as SQL.
//
//      filter ──► text made of constants + parameters in order ──► compile_bind()
//
// One filter has three meanings in SQL, which answer alike as far as their data is the same:
//
//      live       tables kept by the write path
//      views      materialized views, the same columns
//      fallback   the write model itself, one "in (select ...)" per filter
//
// Nothing of a request is ever part of the text: values are parameters, names are those of the
// catalogue, numbers of parameters are the compiler's own.  tests/fuzz/fuzz_filter.c says so.
#ifndef QUEEN_AUDIENCE_COMPILE_H
#define QUEEN_AUDIENCE_COMPILE_H

#include <stdint.h>

#include "audience/filter.h"
#include "base/buf.h"

struct pg_params;

enum audience_path { PATH_LIVE, PATH_VIEWS, PATH_FALLBACK };
const char *audience_path_name(enum audience_path path);

enum sql_dialect { SQL_PG, SQL_MYSQL };

// A parameter, in the order of the text.
enum sql_kind {
    SQL_INT,   // number
    SQL_TIME,  // number: microseconds since 1970
    SQL_TEXT,  // text; money too, which SQL casts
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

// {.dialect, .path} is ready; compile_deinit() when done.  What parameters point to is borrowed
// from the filter.
struct compiled {
    enum sql_dialect dialect;
    enum audience_path path;
    struct buf text;
    struct sql_param params[COMPILE_MAX_PARAMS];
    unsigned n_params;
    unsigned next_param; // what the next one is: n_params, or less while some are named again
    // PostgreSQL names parameters by number, so a leaf that is written twice has them once.
    unsigned leaf_param[FILTER_MAX_LEAVES]; // 1 + number of its first one; 0: not written yet
    uint32_t twins; // leaves, by number, that are asked of both models: see attribute.twin
    int rc;         // QE_TOO_LARGE: too many values or too long
};
void compile_deinit(struct compiled *c);

// select count(*): one row, one column.
void compile_count(struct compiled *c, const struct filter *f,
                   const struct filter_facts *facts);
// A page in the order of id: those behind after, limit of them (fetch one more to know whether
// there are more).  Columns: COMPILE_PAGE_*.
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
// All of it as a sub-select with one column, customer_uuid; written into c->text at its end.
void compile_uuids(struct compiled *c, const struct filter *f,
                   const struct filter_facts *facts);
// One customer: whether it is in the segment (column 0), and for each leaf its verdict and its
// value as JSON text (1 + 2 * number, 2 + 2 * number).  No row: the path does not know it.
void compile_explain(struct compiled *c, const struct filter *f,
                     const struct filter_facts *facts, const uint8_t customer[16]);

// PostgreSQL only, one transaction each (compile_effects.c):
// The look at a watched segment: members, outbox and runs of campaigns on entering follow who
// is inside now.  One row: inside, come, gone.
void compile_watch(struct compiled *c, const struct filter *f, const struct filter_facts *facts,
                   const uint8_t segment[16]);
// The run of a campaign with its recipients, unless there is one of this key.  A row (id,
// number of recipients) if it was made.  key is borrowed.
void compile_run(struct compiled *c, const struct filter *f, const struct filter_facts *facts,
                 const uint8_t campaign[16], span key);

// Can each path that may answer this filter compile it, for a run as for a count?  A filter is
// not saved otherwise.
bool compile_is_possible(const struct filter *f, const struct filter_facts *facts);

// The parameters for PostgreSQL; out is reset first.
void compile_bind(const struct compiled *c, struct pg_params *out);

#endif
