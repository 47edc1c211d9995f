// query.h: runs a filter in a tenant's database.
//
//       tenant_get ──► list the read models ──► compose SQL ──► run ──► answered
//
// Uses the best available path: the live tables, else the materialized views, else the write
// model. If a model is rebuilt meanwhile (a column is missing), the query is repeated on the
// write model. Everything runs on the loop of the pools.
#ifndef QUEEN_AUDIENCE_QUERY_H
#define QUEEN_AUDIENCE_QUERY_H

#include <stdbool.h>
#include <stdint.h>

#include "audience/compile.h"
#include "base/err.h"
#include "base/metric.h"
#include "pg/params.h"
#include "pg/pool.h"
#include "tenant/my_pool.h"
#include "tenant/pools.h"

struct audience_query;

// Of all queries of a process; belongs to its loop.
struct audience_stats {
    struct histogram us[3]; // of successful statements, by enum audience_path
    struct counter failed;
};

// The data that the answer was computed from, and its age.
struct audience_source {
    enum audience_path path;
    int64_t as_of_us; // the answer contains everything that was in the tables at this time
    int64_t stale_ms; // 0: the tables as they are now
};

// In the caller's memory until answered.  Zeroed except for:
struct audience_query {
    struct tenant_pools *pools;
    struct audience_stats *stats;
    span tenant;
    const struct filter *filter; // borrowed
    struct filter_facts facts;
    bool choose;         // the caller chooses the path: .source.path
    bool no_mysql;       // the composed SQL is for PostgreSQL only
    unsigned timeout_ms; // of the statement
    void (*compose)(struct audience_query *q, struct compiled *c); // c->path is set
    const char *returns; // columns of the result, see reply_check(); NULL: not checked
    // Called once.  With status 0 the rows are valid during the call; otherwise why has the
    // details.
    void (*answered)(struct audience_query *q, int status, const struct fault *why);
    void *owner;

    // results
    struct audience_source source;
    enum tenant_kind kind;
    uint64_t identity;         // of the queried tenant, see tenant_ref_identity()
    const struct pg_reply *pg; // one of these two
    const struct my_reply *my;
    uint64_t started_us, took_us; // of the statement

    // private
    struct tenant_want want;
    struct tenant_ref *ref;
    struct compiled sql;
    struct pg_statement statement;
    struct pg_params params;
    struct pg_call call;
    struct my_statement my_statement;
    struct my_params my_params;
    struct my_call my_call;
    struct fault fault;
};

void audience_query(struct audience_query *q);

// Cells of the answer, from either database.
unsigned query_rows(const struct audience_query *q);
int64_t query_i64(const struct audience_query *q, unsigned row, unsigned col);
bool query_bool(const struct audience_query *q, unsigned row, unsigned col);
span query_text(const struct audience_query *q, unsigned row, unsigned col); // SPAN_NONE: null

#endif
