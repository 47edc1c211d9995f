// writer.h: groups of events -> transactions, one at a time for each tenant.
//
//      writer_add ──► (wait for more) ──► slot ──► tenant_get ──► write ──► outcomes ──►
//                          ▲                              │                    group->done
//                          └────── what came meanwhile ◄──┘
//
// While a tenant waits for a slot or its transaction is under way, what comes for it gathers
// and goes together in the next: the busier a tenant or the machine, the larger the
// transactions; idle ones have short waits.
#ifndef QUEEN_INGEST_WRITER_H
#define QUEEN_INGEST_WRITER_H

#include <uv.h>

#include "base/metric.h"
#include "ingest/group.h"
#include "tenant/pools.h"

struct writer;

struct writer_conf {
    const char *queue;   // copied
    unsigned max_events; // of one transaction
    unsigned limit_ms;   // a transaction that takes longer has failed
    unsigned parallel;   // transactions at a time; those that take long are not counted
    // A tenant's transaction was committed.
    void (*on_written)(span tenant, void *ctx);
    void *ctx;
};

struct writer_stats {
    struct counter transactions, retries, failures;
    struct histogram events, us; // of a transaction
};

struct writer *writer_open(uv_loop_t *loop, struct tenant_pools *pools,
                           const struct writer_conf *conf);
// g is borrowed until its done.
void writer_add(struct writer *w, struct group *g);
const struct writer_stats *writer_stats(const struct writer *w);
// Nothing may be under way.
void writer_close(struct writer *w, void (*closed)(void *ctx), void *ctx);

#endif
