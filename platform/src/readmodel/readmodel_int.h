// readmodel_int.h: the process's part in the work, and one visit.
#ifndef QUEEN_READMODEL_READMODEL_INT_H
#define QUEEN_READMODEL_READMODEL_INT_H

#include <sys/queue.h>

#include "readmodel/notes.h"
#include "readmodel/readmodel.h"

struct visit;

struct readmodel {
    uv_loop_t *loop;
    struct pg_pool *control;
    struct tenant_pools *tenants;
    struct readmodel_conf conf;
    char *who;
    struct figures figures;

    // Looking at the agenda: one statement after the other, in this call.
    uv_timer_t tick;
    struct pg_call call;
    struct pg_params params;
    bool looking, look_again, enrolled;
    uint64_t renewed_ms;
    struct notes pending, telling;
    bool zone_is_bad; // said once

    TAILQ_HEAD(, visit) visits;
    unsigned n_visits;

    bool closing, tick_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// A visit: everything that one model of one tenant needs now.
struct visit_order {
    span tenant;
    enum model model;
    bool live;
    bool wanted; // somebody asked: also bring the view of a live model up to date
    unsigned failures;
};
void visit_start(struct readmodel *rm, const struct visit_order *order);
bool visit_is_on(const struct readmodel *rm, span tenant, enum model model);
bool visit_has_tenant(const struct readmodel *rm, span tenant);
void visit_hurry(struct readmodel *rm); // we are closing: calls under way are dropped
void readmodel_visit_ended(struct readmodel *rm);

#endif
