// Leases: renewing them, and releasing unused ones.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"
#include "segment/keys.h"

enum { MAX_TRIES = 5 };

struct renew_flight {
    struct op_list ops;
    unsigned n;
};

static void renewal_arrive(struct mailbox_item *item);
static void on_lease_renewed(struct pg_call *pg, int status, const struct pg_reply *reply);
static void on_given_back(struct pg_call *pg, int status, const struct pg_reply *reply);

// ---- renew ----

static void renew_complete(struct op *op)
{
    struct renew_op *renew = container_of(op, struct renew_op, op);

    renew->done(renew, op->status);
}

void broker_renew(struct broker *b, struct renew_op *renew)
{
    op_begin(b, &renew->op, OP_RENEW, renew_complete);
    op_go(b, b, &renew->op, renewal_arrive); // the database finds the lease: any broker will do
}

static void renewal_arrive(struct mailbox_item *item)
{
    struct renew_op *renew = container_of(item, struct renew_op, op.mail);
    struct broker *b = item->owner;

    if (!op_admit(b, &renew->op))
        return;
    STAILQ_INSERT_TAIL(&b->ops[OP_RENEW].queue, &renew->op, link);
    b->ops[OP_RENEW].n_requests++;
    broker_wake(b);
}

void renewals_flush(struct broker *b)
{
    for (;;) {
        struct op *oldest = STAILQ_FIRST(&b->ops[OP_RENEW].queue), *op;
        struct gate_queue q = {b->ops[OP_RENEW].n_requests, b->ops[OP_RENEW].n_requests,
                               oldest ? oldest->since_us : 0};
        if (!oldest || !gate_is_open(&b->ops[OP_RENEW].gate, q, clock_mono_us()))
            return;
        struct renew_flight *f = mem_new(struct renew_flight);
        STAILQ_INIT(&f->ops);
        while ((op = STAILQ_FIRST(&b->ops[OP_RENEW].queue)) &&
               f->n < b->conf.renew.max_requests && (f->n == 0 || !op->alone)) {
            STAILQ_REMOVE_HEAD(&b->ops[OP_RENEW].queue, link);
            STAILQ_INSERT_TAIL(&f->ops, op, link);
            f->n++;
            b->ops[OP_RENEW].n_requests--;
            if (op->alone)
                break;
        }
        struct call *c = call_new(b, &pg_stmt_renew, f);
        pg_begin_array(&c->params, PG_UUID);
        STAILQ_FOREACH (op, &f->ops, link) {
            uint8_t key[16];
            (void)key_of_text(container_of(op, struct renew_op, op)->lease, key);
            pg_put_uuid(&c->params, key);
        }
        pg_end_array(&c->params);
        pg_begin_array(&c->params, PG_INT4);
        STAILQ_FOREACH (op, &f->ops, link)
            pg_put_i32(&c->params, container_of(op, struct renew_op, op)->seconds);
        pg_end_array(&c->params);
        pg_begin_array(&c->params, PG_UUID);
        STAILQ_FOREACH (op, &f->ops, link) {
            uint8_t key[16];
            span txid = container_of(op, struct renew_op, op)->txid;
            if (txid.ptr) {
                (void)key_of_text(txid, key);
                pg_put_uuid(&c->params, key);
            } else {
                pg_put_null(&c->params);
            }
        }
        pg_end_array(&c->params);
        gate_left(&b->ops[OP_RENEW].gate);
        histogram_add(&b->stats.batch_requests[OP_RENEW], f->n);
        histogram_add(&b->stats.batch_items[OP_RENEW], f->n);
        call_send(c, on_lease_renewed);
    }
}

static void on_lease_renewed(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct renew_flight *f = c->what;
    uint64_t now = clock_mono_us();
    struct op_list again = STAILQ_HEAD_INITIALIZER(again);

    gate_landed(&b->ops[OP_RENEW].gate, f->n, now - c->left_us, now);
    histogram_add(&b->stats.batch_us[OP_RENEW], now - c->left_us);
    bool locked = status != 0 && pg_reply_is_locked(reply), scatter = locked && f->n > 1;
    if (status == 0 && pg_reply_rows(reply) != f->n)
        status = call_unexpected(c, "another number of leases than was sent");
    for (unsigned row = 0; status == 0 && row < f->n; row++)
        if (pg_reply_i32(reply, row, RENEW_COL_IDX) != (int32_t)row)
            status = call_unexpected(c, "leases in another order");
    for (unsigned row = 0; !STAILQ_EMPTY(&f->ops); row++) {
        struct op *op = STAILQ_FIRST(&f->ops);
        struct renew_op *renew = container_of(op, struct renew_op, op);
        STAILQ_REMOVE_HEAD(&f->ops, link);
        if (locked && !scatter && op_try_later(b, op, &b->ops[OP_RENEW].queue))
            continue;
        if (op->waited)
            op_try_next(b);
        op->waited = false;
        op->alone = op->alone || scatter;
        if (scatter || (is_worth_retry(status) && op->tries++ < MAX_TRIES)) {
            STAILQ_INSERT_TAIL(&again, op, link);
            b->ops[OP_RENEW].n_requests++;
            continue;
        }
        if (status == 0) {
            renew->why = pg_reply_i16(reply, row, RENEW_COL_WHY);
            renew->expires_us =
                renew->why == RENEW_OK ? pg_reply_unix_us(reply, row, RENEW_COL_EXPIRES_AT) : 0;
            counter_add(&b->stats.items[OP_RENEW], 1);
        } else {
            pg_reply_fault(&op->why, status, reply);
        }
        op_finish(b, op, status);
    }
    STAILQ_CONCAT(&again, &b->ops[OP_RENEW].queue);
    STAILQ_CONCAT(&b->ops[OP_RENEW].queue, &again);
    free(f);
    call_free(c);
    broker_wake(b);
}

// ---- give back ----

void broker_give_back(struct broker *b, const uint8_t lease[16])
{
    give_back_add(b, lease);
    broker_wake(b);
}

void give_back_add(struct broker *b, const uint8_t lease[16])
{
    if (b->n_give_back == b->cap_give_back) {
        b->cap_give_back = b->cap_give_back > 0 ? b->cap_give_back * 2 : 16;
        b->give_back = mem_realloc(b->give_back, b->cap_give_back * sizeof *b->give_back);
    }
    memcpy(b->give_back[b->n_give_back++], lease, 16);
}

void give_back_flush(struct broker *b)
{
    if (b->n_give_back == 0 || b->giving_back || !broker_is_up(b))
        return;
    struct call *c = call_new(b, &pg_stmt_release, NULL);
    pg_begin_array(&c->params, PG_UUID);
    for (unsigned i = 0; i < b->n_give_back; i++)
        pg_put_uuid(&c->params, b->give_back[i]);
    pg_end_array(&c->params);
    b->n_give_back = 0;
    b->giving_back = true;
    call_send(c, on_given_back);
}

// Should this fail, the leases run out by themselves.
static void on_given_back(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;

    b->giving_back = false;
    if (status != 0 && !is_outage(status))
        log_warn("lease.release_failed", "status=%s", err_name(status));
    for (unsigned row = 0; status == 0 && row < pg_reply_rows(reply); row++)
        notify_released(b, pg_reply_bytes(reply, row, RELEASE_COL_QUEUE_NAME),
                        pg_reply_i64(reply, row, RELEASE_COL_CONSUMER), true);
    call_free(c);
    broker_wake(b);
}
