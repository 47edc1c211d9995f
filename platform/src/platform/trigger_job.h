// trigger_job.h: a trigger that is being handled.
//
// The tenant's pool is held for as long as the job takes; there are few jobs at a time
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
    struct audience_query ask;
    void *state; // of the kind of trigger; in the arena
};

// Ends it.  why NULL: done.  Else it failed: again by the queue's retry policy, or, when
// nothing can help, a dead letter at once.
void trigger_job_done(struct trigger_job *t);
void trigger_job_failed(struct trigger_job *t, const char *fmt, ...) PRINTF_LIKE(2, 3);
void trigger_job_hopeless(struct trigger_job *t, const char *fmt, ...) PRINTF_LIKE(2, 3);

// A statement with t->params, then `then`; a failure ends the job.
void trigger_job_exec(struct trigger_job *t, const struct pg_statement *s,
                      void (*then)(struct trigger_job *t, const struct pg_reply *reply));
// Reads a stored filter and asks with it; a failure ends the job.
void trigger_job_ask(struct trigger_job *t, span filter,
                     void (*compose)(struct audience_query *q, struct compiled *c),
                     void (*then)(struct trigger_job *t, const struct pg_reply *reply));
// Pushes {"items":[...]} to the broker; one item that is refused fails the job.
void trigger_job_push(struct trigger_job *t, span body, void (*then)(struct trigger_job *t));

// ,"partition":"7": the one of a customer, whose messages keep their order.  Of a few, whatever
// the number of customers; a queue with a fixed set needs as many.
enum { CUSTOMER_PARTITIONS = 32 };
void trigger_put_partition(struct buf *out, span customer);

void trigger_watch(struct trigger_job *t);    // trigger_watch.c
void trigger_campaign(struct trigger_job *t); // trigger_campaign.c

#endif
