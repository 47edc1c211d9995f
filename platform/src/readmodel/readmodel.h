// readmodel.h: read models of all tenants, kept fresh.
//
//      ingestion ─► readmodel_note ─► control database (agenda) ◄─ every process looks
//                                            │ due (policy.h)
//                                            ▼
//                        claim ─► the tenant's database: a visit (visit.c) ─► done
//
// What a tenant has is in its own database (platform/sql/tenant: crm.read_model); the control
// database only says where to look, so that tenants without changes cost nothing.  Several
// processes share the work by claims; a lock in the tenant's database makes sure that
// a view is never refreshed twice at once, and goes with its connection when a process dies.
//
// Everything here belongs to one loop.
#ifndef QUEEN_READMODEL_READMODEL_H
#define QUEEN_READMODEL_READMODEL_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/span.h"
#include "pg/pool.h"
#include "readmodel/figures.h"
#include "readmodel/policy.h"
#include "tenant/pools.h"

struct readmodel;

struct readmodel_conf {
    const char *who; // this process, in claims and in crm.mv_refresh_status; copied
    bool live;       // for tenants that nobody chose a mode for
    struct policy policy;
    struct bulk_window bulk;
    int64_t safety_us; // a live model's view is refreshed this often, if data changed
    unsigned at_once;  // tenants visited at a time, by all processes together
    unsigned work_mem_mb;
    unsigned refresh_timeout_ms;
    unsigned poll_ms; // how often to look at the agenda
    unsigned lease_ms;
    unsigned sample;     // customers compared on a visit of a live model
    unsigned fill_chunk; // customers computed in one transaction of a backfill
};

// control and tenants are borrowed until closed.
struct readmodel *readmodel_open(uv_loop_t *loop, struct pg_pool *control,
                                 struct tenant_pools *tenants,
                                 const struct readmodel_conf *conf);
// Ingestion committed changes of this tenant.  Cheap: remembers, and tells the control
// database with the next look.
void readmodel_note(struct readmodel *rm, span tenant);
void readmodel_look(struct readmodel *rm); // soon, not with the next tick
const struct figures *readmodel_figures(const struct readmodel *rm);
// Ends visits under way: their connections are dropped, and PostgreSQL undoes what they did.
void readmodel_close(struct readmodel *rm, void (*closed)(void *ctx), void *ctx);

#endif
