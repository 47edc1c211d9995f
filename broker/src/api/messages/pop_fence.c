// pop_fence.c: messages only for the current owner of a partition.
//
// A processor's pop names its owner and epoch. After messages have been leased for it, this
// file reads the owner's record. If the partition has changed owner, the broker releases the
// lease and answers 409. If the owner changes after that read, the change ends the lease
// (broker/sql/owners/change_hands.sql) and acknowledgements are refused. Other pops pay nothing
// for this.
#include "api/api_int.h"
#include "api/messages/pop_int.h"
#include "db/sql.gen.h"
#include "pg/params.h"
#include "pg/reply.h"

static void on_pop_fence_looked(struct custom_op *op, int status, const struct pg_reply *reply);

bool pop_fence_read(struct pop *p)
{
    span owner = http_req_query(p->req, SPAN("owner"));

    if (!owner.ptr)
        return true;
    if (!p->op.partition.ptr || p->op.auto_ack || !api_is_name(owner)) {
        http_reply_errf(p->req, QE_BAD_PARAM,
                        "owner goes with a partition, without autoAck, and is a name");
        return false;
    }
    p->fence = arena_new(http_req_arena(p->req), struct pop_fence);
    p->fence->owner = owner;
    p->fence->epoch = http_req_query_int(p->req, SPAN("epoch"), 0);
    return true;
}

void pop_fence_look(struct pop *p, void (*looked)(struct pop *p, bool is_owner))
{
    struct api *api = http_req_app(p->req);
    struct pop_fence *f = p->fence;

    f->pop = p;
    f->looked = looked;
    f->op.statement = &pg_stmt_owns_partition;
    f->op.done = on_pop_fence_looked;
    pg_param_text(&f->op.params, p->op.queue);
    pg_param_text(&f->op.params, p->op.partition);
    pg_param_text(&f->op.params, p->op.group);
    pg_param_text(&f->op.params, f->owner);
    pg_param_i64(&f->op.params, f->epoch);
    broker_custom(api->broker, &f->op);
}

// Refuse the pop if the owner cannot be checked.
static void on_pop_fence_looked(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct pop_fence *f = container_of(op, struct pop_fence, op);

    pg_params_free(&op->params);
    f->looked(f->pop, status == 0 && pg_reply_rows(reply) == 1 &&
                          pg_reply_bool(reply, 0, OWNS_PARTITION_COL_OWNS_PARTITION));
}
