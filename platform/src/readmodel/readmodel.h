// readmodel.h: keeps the read models of all tenants fresh.
//
//       ingestion ─► readmodel_changed ─► control database (agenda) ◄─ polled by every process
//                                             │ due (policy.h)
//                                             ▼
//                         claim ─► the tenant's database: a visit (visit.c) ─► done
//
// The tenant's database describes its own models (platform/sql/tenant: crm.read_model).  The
// control database only lists the models with work, so that tenants without changes cost
// nothing. Processes share the work by claims.  A lock in the tenant's database ensures that a
// view is never refreshed twice at once; it is released with the connection when a process
// dies.
//
// Everything here belongs to one loop.
#ifndef QUEEN_READMODEL_READMODEL_H
#define QUEEN_READMODEL_READMODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/span.h"
#include "pg/pool.h"
#include "readmodel/model_stats.h"
#include "readmodel/policy.h"
#include "tenant/pools.h"

struct readmodel;

struct readmodel_conf {
    const char *who; // name of this process in claims and in crm.mv_refresh_status; copied
    bool live;       // default mode of tenants without a chosen mode
    struct policy policy;
    struct bulk_window bulk;
    int64_t
        safety_us;    // the view of a live model is refreshed at this interval, if data changed
    unsigned at_once; // tenants visited at once, over all processes
    unsigned work_mem_mb;
    unsigned refresh_timeout_ms;
    unsigned poll_ms; // interval for reading the agenda
    unsigned lease_ms;
    unsigned sample;     // customers compared per visit of a live model
    unsigned fill_chunk; // customers computed per transaction of a backfill
};

// control and tenants are borrowed until closed.
struct readmodel *readmodel_open(uv_loop_t *loop, struct pg_pool *control,
                                 struct tenant_pools *tenants,
                                 const struct readmodel_conf *conf);
// Ingestion committed changes of this tenant.  Cheap: the next poll reports them to the control
// database.
void readmodel_changed(struct readmodel *rm, span tenant);
void readmodel_poll(struct readmodel *rm); // soon, without waiting for the next tick
const struct model_stats *readmodel_stats(const struct readmodel *rm);
// Cancels visits in progress by closing their connections; PostgreSQL rolls them back.
void readmodel_close(struct readmodel *rm, void (*closed)(void *ctx), void *ctx);

#endif
