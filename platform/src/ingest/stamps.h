// stamps.h: keeps the last committed stamp of each tenant and partition in the control
// database.
//
//       commit ──► stamps_note ──► (every few seconds, and at the end) platform.ingest_stamp
//       first transaction of a tenant, or a new partition ──► stamps_load
//
// Without them a tenant's database that went back while no process ran, or before the first
// transaction of a new owner, would not be noticed.  A saved stamp is a lower bound: what was
// lost after it is not noticed if the process dies before the next save.
#ifndef QUEEN_INGEST_STAMPS_H
#define QUEEN_INGEST_STAMPS_H

#include <uv.h>

#include "base/span.h"
#include "pg/pool.h"

struct stamps;

struct stamps *stamps_open(uv_loop_t *loop, struct pg_pool *control, const char *queue);
// The stamp was committed by the tenant's database.
void stamps_note(struct stamps *s, span tenant, span partition, int64_t stamp_us);

// The name may be that of another tenant by now: forgets what is not saved yet.
void stamps_forget(struct stamps *s, span tenant);

// Calls each with every saved stamp of the tenant, then done with 0 or a code; both are never
// called from inside this call.  The struct is borrowed until done.
struct stamps_load {
    void (*each)(struct stamps_load *l, span partition, int64_t stamp_us);
    void (*done)(struct stamps_load *l, int status);
    void *owner;
    struct stamps *stamps; // set by stamps_load()
    struct pg_call call;
    struct pg_params params;
};
void stamps_load(struct stamps *s, span tenant, struct stamps_load *l);
void stamps_load_deinit(struct stamps_load *l);

// Saves what was noted, then calls closed.  No load may be in progress.
void stamps_close(struct stamps *s, void (*closed)(void *ctx), void *ctx);

#endif
