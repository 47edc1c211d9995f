// pop_aside.c: messages that cannot be read become dead letters; their neighbours are
// delivered.
//
// A segment is read from its front, so a message whose length is wrong takes those behind it in
// the same segment with it.  The renderer notes such places (on the home's thread); before the
// pop is answered queen.set_aside makes dead letters of them, which keep pointing at the stored
// bytes.  If that fails the readable messages are delivered all the same: under a lease the
// damaged ones come again, with autoAck they stay in the log and in our own log.
#include "api/api_int.h"
#include "api/messages/pop_int.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"
#include "pg/params.h"
#include "pg/reply.h"

#include <stdlib.h>

struct damaged {
    int64_t lane, first; // sequence of the first one
    unsigned n;
};

struct pop_aside {
    struct custom_op op;
    struct pop *pop;
    void (*done)(struct pop *p);
    struct damaged *at;
    unsigned n, cap;
};

static void on_set_aside(struct custom_op *op, int status, const struct pg_reply *reply);

void pop_aside_add(struct pop *p, int64_t lane, int64_t first, unsigned n)
{
    if (!p->aside)
        p->aside = mem_new(struct pop_aside);
    struct pop_aside *a = p->aside;
    if (a->n == a->cap) {
        a->cap = a->cap > 0 ? 2 * a->cap : 4;
        a->at = mem_realloc(a->at, a->cap * sizeof *a->at);
    }
    a->at[a->n++] = (struct damaged){lane, first, n};
    p->op.n_messages -= n < p->op.n_messages ? n : p->op.n_messages;
}

#define FOR_DAMAGED(type, put)                                   \
    pg_begin_array(params, type);                                \
    for (const struct damaged *d = a->at; d < a->at + a->n; d++) \
        put;                                                     \
    pg_end_array(params)

void pop_aside_send(struct pop *p, void (*done)(struct pop *p))
{
    struct api *api = http_req_app(p->req);
    struct pop_aside *a = p->aside;
    struct pg_params *params = &a->op.params;

    a->pop = p;
    a->done = done;
    a->op.statement = &pg_stmt_set_aside;
    a->op.done = on_set_aside;
    pg_param_text(params, p->op.group);
    FOR_DAMAGED(PG_INT8, pg_put_i64(params, d->lane));
    FOR_DAMAGED(PG_INT8, pg_put_i64(params, d->first));
    FOR_DAMAGED(PG_INT4, pg_put_i32(params, (int32_t)d->n));
    if (p->has_lease)
        pg_param_uuid(params, p->lease);
    else
        pg_param_null(params, PG_UUID);
    pg_param_text(params, SPAN("damaged: the stored message cannot be read"));
    broker_custom(api->broker, &a->op);
}

static void on_set_aside(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct pop_aside *a = container_of(op, struct pop_aside, op);
    struct pop *p = a->pop;
    (void)reply;

    for (unsigned i = 0; i < a->n; i++)
        log_error("pop.damaged",
                  "lane=%lld first=%lld messages=%u group=\"" SPAN_FMT "\" dead_letters=%s",
                  (long long)a->at[i].lane, (long long)a->at[i].first, a->at[i].n,
                  SPAN_ARG(p->op.group), status == 0 ? "true" : "false");
    if (status != 0)
        log_error("pop.set_aside_failed", "error=%s detail=\"%s\"", err_name(status),
                  op->op.why.text);
    if (status == 0 && p->op.n_messages == 0)
        p->has_lease = false; // it has ended: there is nothing to give back
    void (*done)(struct pop *) = a->done;
    pg_params_free(&op->params);
    pop_aside_free(p);
    done(p);
}

void pop_aside_free(struct pop *p)
{
    if (p->aside)
        free(p->aside->at);
    free(p->aside);
    p->aside = NULL;
}
