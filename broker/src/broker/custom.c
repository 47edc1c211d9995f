// Custom calls: any statement, one per connection, on the broker they were given to.
#include "broker/broker_int.h"

#include "base/clock.h"

// FIRST_FLIGHTS: connections beyond those of the others, so that lookups do not wait for
// reports.
enum { MAX_TRIES = 3, FIRST_FLIGHTS = 2 };

static void on_called(struct pg_call *pg, int status, const struct pg_reply *reply);

// Only refusals come this way; see on_called().
static void custom_complete(struct op *op)
{
    struct custom_op *custom = container_of(op, struct custom_op, op);

    custom->done(custom, op->status, NULL);
}

void broker_custom(struct broker *b, struct custom_op *custom)
{
    op_begin(b, &custom->op, OP_CUSTOM, custom_complete);
    if (!op_admit(b, &custom->op))
        return;
    STAILQ_INSERT_TAIL(custom->first ? &b->customs_first : &b->ops[OP_CUSTOM].queue,
                       &custom->op, link);
    b->ops[OP_CUSTOM].n_requests++;
    broker_wake(b);
}

// NULL: none may go now.
static struct op *take_custom(struct broker *b)
{
    unsigned most = b->conf.custom.max_flights, n = b->ops[OP_CUSTOM].gate.n_flights;
    bool first = !STAILQ_EMPTY(&b->customs_first);
    struct op_list *from = first ? &b->customs_first : &b->ops[OP_CUSTOM].queue;
    struct op *op = n < most + (first ? FIRST_FLIGHTS : 0) ? STAILQ_FIRST(from) : NULL;

    if (op)
        STAILQ_REMOVE_HEAD(from, link);
    return op;
}

void customs_flush(struct broker *b)
{
    struct op *op;

    while ((op = take_custom(b))) {
        struct custom_op *custom = container_of(op, struct custom_op, op);
        b->ops[OP_CUSTOM].n_requests--;
        custom->call = (struct pg_call){.statement = custom->statement,
                                        .params = &custom->params,
                                        .done = on_called,
                                        .of_server = is_of_server(custom->statement),
                                        .owner = b};
        gate_left(&b->ops[OP_CUSTOM].gate);
        pg_pool_exec(b->pg, &custom->call);
    }
}

// Errors raised by our procedures are sentences for the client; others are for the log.
static void custom_fault(struct fault *why, int status, const struct pg_reply *reply)
{
    if (status == QE_PG_DATA && *pg_reply_message(reply))
        fault_set(why, status, "%s", pg_reply_message(reply));
    else
        pg_reply_fault(why, status, reply);
}

// The result is borrowed from the connection, so done is called from inside the reply callback.
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
    gate_landed(&b->ops[OP_CUSTOM].gate, 1, now - custom->op.since_us, now);
    b->n_pending--;
    counter_add(&b->stats.requests[OP_CUSTOM], 1);
    counter_add(&b->stats.failed[OP_CUSTOM], status != 0);
    histogram_add(&b->stats.latency_us[OP_CUSTOM], now - custom->op.since_us);
    if (status != 0)
        custom_fault(&custom->op.why, status, reply);
    custom->done(custom, status, reply);
    broker_wake(b);
}
