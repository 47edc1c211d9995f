// triggers.c: the part that processes triggers, and the state of segments.
//
//       configure the queue (retried until it succeeds) ──► consume: each message is a job
#include <stdlib.h>

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "platform/audience.h"
#include "platform/members.h"
#include "platform/trigger_job.h"
#include "json/scan.h"
#include "json/write.h"

enum { MAX_COUNTS = 4096, CONFIGURE_RETRY_MS = 2000, LEASE_S = 60, RENEW_MS = 20000 };

struct trigger_worker {
    struct platform *p;
    struct queen_consumer *consumer; // NULL until the queue exists
    uv_timer_t retry_timer;
    bool configuring, stopping;
};

static void configure_queue(struct trigger_worker *c);
static void on_configured(struct queen_response *r, const struct queen_error *err, void *ctx);
static void start_trigger_consumer(struct trigger_worker *c);
static enum queen_verdict on_trigger(struct queen_job *job, void *ctx);
static void on_triggers_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                               const struct fault *why);

static void on_triggers_retry_due(uv_timer_t *timer) { configure_queue(timer->data); }

static void start_triggers(struct platform *p)
{
    struct trigger_worker *c = mem_new(struct trigger_worker);

    p->audience = mem_new(struct audience_state);
    p->audience->counts = audience_cache_new(MAX_COUNTS);
    p->audience->triggers = c;
    c->p = p;
    uv_timer_init(&p->loop, &c->retry_timer);
    c->retry_timer.data = c;
    configure_queue(c);
}

static void configure_queue(struct trigger_worker *c)
{
    struct buf body = {0};

    buf_put_lit(&body, "{\"queue\":");
    js_put_text(&body, span_of(c->p->conf->trigger_queue));
    buf_printf(&body,
               ",\"options\":{\"leaseTime\":%d,\"retryPolicy\":{\"mode\":\"scheduled\"}}}",
               LEASE_S);
    c->configuring = true;
    queen_request_start(c->p->broker,
                        &(struct queen_request){.method = "POST",
                                                .path = "/api/v1/configure",
                                                .body = body.ptr,
                                                .body_len = body.len},
                        on_configured, c);
    buf_free(&body);
}

static void free_worker(struct trigger_worker *c);

static void on_configured(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct trigger_worker *c = ctx;

    queen_response_free(r);
    c->configuring = false;
    if (c->stopping) {
        free_worker(c);
    } else if (err->code == QUEEN_OK) {
        start_trigger_consumer(c);
    } else {
        log_warn("trigger.configure_failed", "queue=%s why=\"%s\"", c->p->conf->trigger_queue,
                 err->text);
        uv_timer_start(&c->retry_timer, on_triggers_retry_due, CONFIGURE_RETRY_MS, 0);
    }
}

static void on_triggers_error(const struct queen_error *err, void *ctx)
{
    (void)ctx;
    log_warn("trigger.consume_failed", "why=\"%s\"", err->text);
}

static void start_trigger_consumer(struct trigger_worker *c)
{
    struct queen_consumer_options o = {
        .pop = {.queue = c->p->conf->trigger_queue,
                .group = "platform",
                .batch = 1,
                .subscription_mode = "all"},
        .concurrency = (unsigned)c->p->conf->trigger_concurrency,
        .renew_every_ms = RENEW_MS,
        .renew_seconds = LEASE_S,
        .handler = on_trigger,
        .on_error = on_triggers_error,
        .ctx = c,
    };
    struct queen_error err;

    c->consumer = queen_consumer_new(c->p->broker, &o, &err);
    if (c->consumer == NULL)
        log_error("trigger.consumer_failed", "why=\"%s\"", err.text);
}

static enum queen_verdict on_trigger(struct queen_job *job, void *ctx)
{
    struct trigger_worker *c = ctx;
    const struct queen_delivery *d = &queen_job_batch(job)->items[0];
    struct trigger_job *t = mem_new(struct trigger_job);
    span data = {d->data, d->data_len};

    arena_init(&t->arena);
    t->p = c->p;
    t->job = job;
    t->key = arena_copy(&t->arena, span_of(d->transaction_id));
    t->tenant = arena_copy(&t->arena, member_of(data, "tenant", &t->arena));
    span kind = member_of(data, "kind", &t->arena), id = member_of(data, "id", &t->arena);
    if (t->tenant.len == 0 || !id_parse_uuid(id, t->id) ||
        (!span_eq(kind, SPAN("watch")) && !span_eq(kind, SPAN("campaign")))) {
        trigger_job_hopeless(t, "not a trigger");
        return QUEEN_LATER;
    }
    id_format_uuid(t->id, t->id_text);
    t->want = (struct tenant_want){.got = on_triggers_tenant, .owner = t};
    t->watching = span_eq(kind, SPAN("watch"));
    tenant_get(c->p->pools, t->tenant, &t->want);
    return QUEEN_LATER;
}

static void on_triggers_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                               const struct fault *why)
{
    struct trigger_job *t = w->owner;

    if (status == QE_TENANT_UNKNOWN && t->watching) {
        // Its schedule could not be removed with the tenant.  A dead letter for every check
        // would be of no use.
        log_warn("trigger.tenant_unknown", "tenant=" SPAN_FMT " segment=%s",
                 SPAN_ARG(t->tenant), t->id_text);
        trigger_job_done(t);
    } else if (status == QE_TENANT_UNKNOWN) {
        trigger_job_hopeless(t, "%s", why->text);
    } else if (status != 0) {
        trigger_job_failed(t, "%s", why->text);
    } else if (tenant_ref_kind(ref) != TENANT_PG) {
        t->ref = ref;
        trigger_job_hopeless(t, "watching segments is not supported on MySQL");
    } else {
        t->ref = ref;
        if (t->watching)
            trigger_watch(t);
        else
            trigger_campaign(t);
    }
}

// ---- stop ----

static void on_triggers_timer_closed(uv_handle_t *handle)
{
    struct trigger_worker *c = handle->data;
    struct platform *p = c->p;

    audience_cache_free(p->audience->counts);
    free(p->audience);
    p->audience = NULL;
    free(c);
    platform_part_stopped(p);
}

static void free_worker(struct trigger_worker *c)
{
    uv_close((uv_handle_t *)&c->retry_timer, on_triggers_timer_closed);
}

static void on_consumer_closed(void *ctx) { free_worker(ctx); }

static void triggers_stop(struct platform *p)
{
    struct trigger_worker *c = p->audience->triggers;

    c->stopping = true;
    uv_timer_stop(&c->retry_timer);
    if (c->consumer)
        queen_consumer_close(c->consumer, on_consumer_closed, c);
    else if (!c->configuring)
        free_worker(c);
}

const struct platform_part platform_triggers = {.name = "segments",
                                                .start = start_triggers,
                                                .stop = triggers_stop,
                                                .expose = audience_expose,
                                                .put_json = audience_put_json};
