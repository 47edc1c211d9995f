// trigger_job.c: the steps that all triggers share, and their outcomes.
#include "platform/trigger_job.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/fnv.h"
#include "base/log.h"
#include "platform/audience.h"
#include "json/scan.h"

static void end_job(struct trigger_job *t, enum queen_verdict verdict, const char *why)
{
    struct audience_state *a = t->p->audience;
    struct counter *ends = verdict == QUEEN_DONE   ? a->done
                           : verdict == QUEEN_FAIL ? a->failed
                                                   : a->hopeless;

    counter_add(&ends[t->watching], 1);
    if (why) {
        log_warn("trigger.failed", "tenant=" SPAN_FMT " trigger=\"" SPAN_FMT "\" why=\"%s\"",
                 SPAN_ARG(t->tenant), SPAN_ARG(t->key), why);
        queen_job_error(t->job, why);
    }
    queen_job_finish(t->job, verdict);
    if (t->ref)
        tenant_put(t->ref);
    pg_params_free(&t->params);
    arena_deinit(&t->arena);
    free(t);
}

void trigger_job_done(struct trigger_job *t) { end_job(t, QUEEN_DONE, NULL); }

void trigger_job_failed(struct trigger_job *t, const char *fmt, ...)
{
    char why[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    end_job(t, QUEEN_FAIL, why);
}

void trigger_job_hopeless(struct trigger_job *t, const char *fmt, ...)
{
    char why[256];
    va_list args;

    va_start(args, fmt);
    vsnprintf(why, sizeof why, fmt, args);
    va_end(args);
    end_job(t, QUEEN_DEAD, why);
}

static void on_exec(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct trigger_job *t = call->owner;

    if (status != 0) {
        tenant_ref_failed(t->ref, status);
        trigger_job_failed(t, "%s: %s", err_name(status), pg_reply_message(reply));
        return;
    }
    pg_params_reset(&t->params);
    t->then(t, reply);
}

void trigger_job_exec(struct trigger_job *t, const struct pg_statement *s,
                      void (*then)(struct trigger_job *t, const struct pg_reply *reply))
{
    t->then = then;
    t->call =
        (struct pg_call){.statement = s, .params = &t->params, .done = on_exec, .owner = t};
    pg_pool_exec(tenant_ref_pg(t->ref), &t->call);
}

static void on_query_done(struct audience_query *q, int status, const struct fault *why)
{
    struct trigger_job *t = q->owner;

    if (status != 0)
        trigger_job_failed(t, "%s", why->text);
    else
        t->then(t, q->pg);
}

void trigger_job_query(struct trigger_job *t, span filter,
                       void (*compose)(struct audience_query *q, struct compiled *c),
                       void (*then)(struct trigger_job *t, const struct pg_reply *reply))
{
    struct filter *tree;
    struct fault why;

    t->query = (struct audience_query){.pools = t->p->pools,
                                       .stats = &t->p->audience->queries,
                                       .tenant = t->tenant,
                                       .no_mysql = true,
                                       .timeout_ms = (unsigned)t->p->conf->trigger_timeout_ms,
                                       .compose = compose,
                                       .answered = on_query_done,
                                       .owner = t};
    t->then = then;
    if (filter_read(arena_copy(&t->arena, filter), &t->arena, &filter_default_limits, &tree,
                    &t->query.facts, &why) != 0) {
        trigger_job_hopeless(t, "%s",
                             why.text); // for example an attribute that no longer exists
        return;
    }
    t->query.filter = tree;
    audience_query(&t->query);
}

// ---- push ----

void trigger_put_partition(struct buf *out, span customer)
{
    buf_printf(out, ",\"partition\":\"%u\"", fnv_partition(customer, CUSTOMER_PARTITIONS));
}

struct pushing {
    struct trigger_job *t;
    void (*then)(struct trigger_job *t);
};

// Returns the first refused item in the reply to a push; SPAN_NONE: none.
static span refusal_of(span answer, struct arena *a)
{
    struct js j = js_read(answer);

    js_enter_array(&j);
    while (js_next_item(&j)) {
        span item = js_skip(&j), key;
        struct js fields = js_read(item);
        bool failed = false;
        span error = SPAN("a message was refused");
        js_enter_object(&fields);
        while (js_next_key(&fields, &key)) {
            span value = js_skip(&fields);
            if (span_eq(key, SPAN("status")))
                failed = span_eq(value, SPAN("\"failed\""));
            else if (span_eq(key, SPAN("error")) && js_type_of(value) == JS_STRING)
                error = js_text(value, a);
        }
        if (failed)
            return error;
    }
    return SPAN_NONE;
}

static void on_trigger_job_pushed(struct queen_response *r, const struct queen_error *err,
                                  void *ctx)
{
    struct pushing *pushing = ctx;
    struct trigger_job *t = pushing->t;
    span why;

    if (err->code == QUEEN_OK)
        why = refusal_of((span){r->body, r->body_len}, &t->arena);
    else
        why = arena_copy(&t->arena, span_of(err->text));
    queen_response_free(r);
    if (why.ptr)
        trigger_job_failed(t, "the broker did not accept the messages: " SPAN_FMT,
                           SPAN_ARG(why));
    else
        pushing->then(t);
}

void trigger_job_push(struct trigger_job *t, struct buf *body,
                      void (*then)(struct trigger_job *t))
{
    struct pushing *pushing = arena_new(&t->arena, struct pushing);
    struct queen_request req = {
        .method = "POST", .path = "/api/v1/push", .body = body->ptr, .body_len = body->len};

    pushing->t = t;
    pushing->then = then;
    if (body->failed)
        trigger_job_hopeless(t, "the messages of one page are larger than %d bytes",
                             TRIGGER_BODY_MAX);
    else
        queen_request_start(t->p->broker, &req, on_trigger_job_pushed, pushing);
    buf_free(body);
}
