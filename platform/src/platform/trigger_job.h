// trigger_job.h: a trigger that is being processed.
//
// A job keeps the tenant's pool until it ends; few jobs run at once
// (PLATFORM_TRIGGER_CONCURRENCY).
#ifndef QUEEN_PLATFORM_TRIGGER_JOB_H
#define QUEEN_PLATFORM_TRIGGER_JOB_H

#include <queen/consumer.h>

#include "audience/query.h"
#include "base/arena.h"
#include "platform/platform_int.h"
#include "platform/trigger.h"

struct trigger_job {
    struct platform *p;
    struct queen_job *job;
    struct arena arena;
    span tenant, key; // key: the message's transaction id
    char id_text[37];
    uint8_t id[16]; // of the segment or campaign
    bool watching;  // it is a segment

    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_params params;
    struct pg_call call;
    void (*then)(struct trigger_job *t, const struct pg_reply *reply);
    struct audience_query query;
    void *state; // of the kind of trigger; in the arena
};

// End a job: done; failed, to be retried by the queue's retry policy; or hopeless, which makes
// it a dead letter immediately.
void trigger_job_done(struct trigger_job *t);
void trigger_job_failed(struct trigger_job *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void trigger_job_hopeless(struct trigger_job *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

// Runs a statement with t->params, then calls `then`.  An error ends the job.
void trigger_job_exec(struct trigger_job *t, const struct pg_statement *s,
                      void (*then)(struct trigger_job *t, const struct pg_reply *reply));
// Reads a stored filter and runs a query with it.  An error ends the job.
void trigger_job_query(struct trigger_job *t, span filter,
                       void (*compose)(struct audience_query *q, struct compiled *c),
                       void (*then)(struct trigger_job *t, const struct pg_reply *reply));
// Pushes {"items":[...]} to the broker.  One refused item fails the job.  A body that has
// reached its maximum is hopeless: the tenant's database has very long values.  Frees body.
enum { TRIGGER_BODY_MAX = 64 << 20 };
void trigger_job_push(struct trigger_job *t, struct buf *body,
                      void (*then)(struct trigger_job *t));

// Writes ,"partition":"7", the partition of a customer, so that its messages keep their order.
// The number of partitions is small and independent of the number of customers; a queue with a
// fixed set needs this many.
enum { CUSTOMER_PARTITIONS = 32 };
void trigger_put_partition(struct buf *out, span customer);

void trigger_watch(struct trigger_job *t);    // trigger_watch.c
void trigger_campaign(struct trigger_job *t); // trigger_campaign.c

#endif
