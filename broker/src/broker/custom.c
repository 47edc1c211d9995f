// Custom calls: any statement, one per connection, on the broker they were given to.
#include "broker/broker_int.h"

#include "base/clock.h"

enum { MAX_TRIES = 3 };

static void on_called(struct pg_call *pg, int status, const struct pg_reply *reply);

void broker_custom(struct broker *b, struct custom_op *custom)
{
    op_begin(b, &custom->op, OP_CUSTOM);
    if (!op_admit(b, &custom->op))
        return;
    STAILQ_INSERT_TAIL(&b->custom_queue, &custom->op, link);
    b->n_custom_requests++;
    broker_wake(b);
}

void customs_flush(struct broker *b)
{
    struct op *op;

    while (b->custom_gate.n_flights < b->conf.custom.max_flights &&
           (op = STAILQ_FIRST(&b->custom_queue))) {
        struct custom_op *custom = container_of(op, struct custom_op, op);
        STAILQ_REMOVE_HEAD(&b->custom_queue, link);
        b->n_custom_requests--;
        custom->call = (struct pg_call){.statement = custom->statement,
                                        .params = &custom->params,
                                        .done = on_called,
                                        .of_server = is_of_server(custom->statement),
                                        .owner = b};
        gate_left(&b->custom_gate);
        pg_pool_exec(b->pg, &custom->call);
    }
}

// The result is borrowed from the connection, so this kind alone is told from inside the reply.
static void on_called(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct custom_op *custom = container_of(pg, struct custom_op, call);
    struct broker *b = pg->owner;
    uint64_t now = clock_mono_us();

    if (status != 0 && pg_reply_is_conflict(reply) && custom->op.tries++ < MAX_TRIES) {
        counter_add(&b->stats.retried, 1);
        pg_pool_exec(b->pg, &custom->call);
        return;
    }
    gate_landed(&b->custom_gate, 1, now - custom->op.since_us, now);
    b->n_pending--;
    counter_add(&b->stats.requests[OP_CUSTOM], 1);
    counter_add(&b->stats.failed[OP_CUSTOM], status != 0);
    histogram_add(&b->stats.latency_us[OP_CUSTOM], now - custom->op.since_us);
    if (status != 0)
        fault_set(&custom->op.why, status, "%s",
                  *pg_reply_message(reply) ? pg_reply_message(reply) : err_text(status));
    custom->done(custom, status, reply);
    broker_wake(b);
}
