// ask.h: a filter asked of a tenant's database.
//
//      tenant_get ──► which read models there are ──► compose SQL ──► run ──► answered
//
// The best path is taken: the live tables, else the materialized views, else the write model.
// Models that were rebuilt in between (a column is not there yet) are asked again by the
// fallback.  Everything happens on the pools' loop.
#ifndef QUEEN_AUDIENCE_ASK_H
#define QUEEN_AUDIENCE_ASK_H

#include <stdbool.h>
#include <stdint.h>

#include "audience/compile.h"
#include "base/err.h"
#include "base/metric.h"
#include "pg/params.h"
#include "pg/pool.h"
#include "tenant/my_pool.h"
#include "tenant/pools.h"

struct audience_ask;

// Of all questions of a process; its loop's own.
struct audience_stats {
    struct histogram us[3]; // of statements that were answered, by enum audience_path
    struct counter failed;
};

// What the answer is made of, and how old that is.
struct audience_source {
    enum audience_path path;
    int64_t as_of_us; // everything that was in the tables then is in the answer
    int64_t stale_ms; // 0: everything that is in the tables
};

// Lives in the caller's memory until answered.  Zeroed but for:
struct audience_ask {
    struct tenant_pools *pools;
    struct audience_stats *stats;
    span tenant;
    const struct filter *filter; // borrowed
    struct filter_facts facts;
    bool choose;         // the caller says which path: .source.path
    bool no_mysql;       // what is composed is PostgreSQL's only
    unsigned timeout_ms; // of the statement
    void (*compose)(struct audience_ask *q, struct compiled *c); // c->path is set
    // Once.  status 0: rows are there until the return; else why says more than the code.
    void (*answered)(struct audience_ask *q, int status, const struct fault *why);
    void *owner;

    // filled
    struct audience_source source;
    enum tenant_kind kind;
    uint64_t identity;         // of the tenant that was asked, see tenant_ref_identity()
    const struct pg_reply *pg; // either of these
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

void audience_ask(struct audience_ask *q);

// Cells of the answer, whichever database gave it.
unsigned ask_rows(const struct audience_ask *q);
int64_t ask_i64(const struct audience_ask *q, unsigned row, unsigned col);
bool ask_bool(const struct audience_ask *q, unsigned row, unsigned col);
span ask_text(const struct audience_ask *q, unsigned row, unsigned col); // SPAN_NONE: null

#endif
