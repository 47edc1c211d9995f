// readmodel_int.h: the structures that readmodel.c and visit.c share.
#ifndef QUEEN_READMODEL_READMODEL_INT_H
#define QUEEN_READMODEL_READMODEL_INT_H

#include <sys/queue.h>

#include "readmodel/changed_tenants.h"
#include "readmodel/readmodel.h"

struct visit;

struct readmodel {
    uv_loop_t *loop;
    struct pg_pool *control;
    struct tenant_pools *tenants;
    struct readmodel_conf conf;
    char *who;
    struct model_stats stats;

    // Polling the agenda: one statement after the other, with this call.
    uv_timer_t tick;
    struct pg_call call;
    struct pg_params params;
    bool polling, poll_again, enrolled;
    uint64_t renewed_ms;
    struct changed_tenants pending, reporting;
    bool zone_is_bad; // already logged

    // A tenant is due and has no place.  Of the last poll.
    bool is_crowded;

    TAILQ_HEAD(, visit) visits;
    unsigned n_visits;

    bool closing, tick_closed;
    bool has_last_report; // changes that arrived during the last poll were reported, or tried
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// A visit: all work that one model of one tenant needs now.
struct visit_order {
    span tenant;
    enum model model;
    bool live;
    bool wanted; // requested: also refreshes the view of a live model
    unsigned failures;
};
void visit_start(struct readmodel *rm, const struct visit_order *order);
bool visit_exists(const struct readmodel *rm, span tenant, enum model model);
bool visit_has_tenant(const struct readmodel *rm, span tenant);
void visit_cancel_all(struct readmodel *rm); // on close: cancels calls in progress
// freed: it gave back a place for a visit, which may be used now.
void readmodel_visit_ended(struct readmodel *rm, bool freed);

#endif
