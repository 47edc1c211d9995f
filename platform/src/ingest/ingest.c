// ingest.c: creates the queues, then opens the intake, the lanes and the writer.
#include "ingest/ingest.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "ingest/intake.h"
#include "json/write.h"

// The processor extends the lease of a batch in progress every third of the expiry.  The lease
// of a held lane expires when its process dies.
enum { RETRY_MS = 2000, LEASE_S = 30 };

struct ingest {
    uv_loop_t *loop;
    struct queen_client *broker;
    struct ingest_conf conf;
    char *queue, *group, *owner;
    struct writer *writer;
    struct lanes *lanes;
    struct intake *intake;
    struct queen_processor *processor; // NULL until the queues exist
    uv_timer_t timer;
    unsigned n_made; // queues created so far
    bool calling, closing;
    struct ingest_stats stats;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void make_next_queue(struct ingest *i);
static void on_queue_made(struct queen_response *r, const struct queen_error *err, void *ctx);
static void on_ingest_retry_due(uv_timer_t *timer);
static void start_processor(struct ingest *i);
static void close_processor(struct ingest *i);
static void close_lanes(void *ctx);
static void close_writer(void *ctx);
static void close_timer(void *ctx);
static void on_ingest_timer_closed(uv_handle_t *handle);

static char *ingest_copy_text(const char *text) { return mem_strndup(text, strlen(text)); }

static void on_ingest_written(span tenant, void *ctx)
{
    struct ingest *i = ctx;

    lanes_tenant_available(i->lanes, tenant);
    if (i->conf.on_changed)
        i->conf.on_changed(tenant, i->conf.ctx);
}

struct ingest *ingest_open(uv_loop_t *loop, struct queen_client *broker,
                           struct pg_pool *control, struct tenant_pools *tenants,
                           const struct ingest_conf *conf)
{
    struct ingest *i = mem_new(struct ingest);

    i->loop = loop;
    i->broker = broker;
    i->conf = *conf;
    i->queue = ingest_copy_text(conf->queue);
    i->group = ingest_copy_text(conf->group);
    i->owner = ingest_copy_text(conf->owner);
    i->writer = writer_open(loop, tenants, control,
                            &(struct writer_conf){.queue = conf->queue,
                                                  .max_events = conf->max_events,
                                                  .limit_ms = conf->limit_ms,
                                                  .parallel = conf->parallel,
                                                  .on_written = on_ingest_written,
                                                  .ctx = i});
    i->lanes = lanes_open(loop, broker, control, tenants, i->writer, &i->stats,
                          &(struct lanes_conf){.queue = conf->queue,
                                               .group = conf->group,
                                               .base_ms = conf->held_base_ms,
                                               .cap_ms = conf->held_cap_ms,
                                               .batch = conf->batch});
    i->intake = intake_new(loop, i->writer, i->lanes, &i->stats, conf->pause_ms);
    uv_timer_init(loop, &i->timer);
    i->timer.data = i;
    make_next_queue(i);
    return i;
}

const struct ingest_stats *ingest_stats(const struct ingest *i) { return &i->stats; }
const char *ingest_held_queue(const struct ingest *i) { return lanes_queue(i->lanes); }

const struct writer_stats *ingest_writer_stats(const struct ingest *i)
{
    return writer_stats(i->writer);
}

const struct lanes_stats *ingest_lanes_stats(const struct ingest *i)
{
    return lanes_stats(i->lanes);
}

void ingest_processor_stats(const struct ingest *i, struct queen_processor_stats *out)
{
    *out = (struct queen_processor_stats){0};
    if (i->processor)
        queen_processor_stats(i->processor, out);
}

// ---- the queue of events, then the queue of the lanes ----

static void make_next_queue(struct ingest *i)
{
    struct buf body = {0};
    bool held = i->n_made == 1;

    buf_put_lit(&body, "{\"queue\":");
    js_put_text(&body, span_of(held ? lanes_queue(i->lanes) : i->queue));
    if (held)
        buf_printf(&body, ",\"options\":{\"leaseTime\":%d}}", LEASE_S);
    else
        buf_printf(&body, ",\"options\":{\"partitions\":%u,\"leaseTime\":%d}}",
                   i->conf.partitions, LEASE_S);
    i->calling = true;
    queen_request_start(i->broker,
                        &(struct queen_request){.method = "POST",
                                                .path = "/api/v1/configure",
                                                .body = body.ptr,
                                                .body_len = body.len},
                        on_queue_made, i);
    buf_free(&body);
}

static void on_queue_made(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct ingest *i = ctx;

    i->calling = false;
    // 400: the queue exists with another number of partitions, which is fine.
    bool ok = r && (r->status < 300 || r->status == 400);
    if (!ok || r->status == 400)
        log_warn("ingest.configure_failed", "queue=%s why=\"%s\"", i->queue, err->text);
    queen_response_free(r);
    if (i->closing)
        close_processor(i);
    else if (!ok)
        uv_timer_start(&i->timer, on_ingest_retry_due, RETRY_MS, 0);
    else if (++i->n_made < 2)
        make_next_queue(i);
    else
        start_processor(i);
}

static void on_ingest_retry_due(uv_timer_t *timer) { make_next_queue(timer->data); }

static void on_ingest_error(const struct queen_error *err, void *ctx)
{
    (void)ctx;
    log_warn("ingest.broker_error", "code=%s why=\"%s\"", queen_code_name(err->code),
             err->text);
}

static void start_processor(struct ingest *i)
{
    struct queen_error err;

    i->processor =
        queen_processor_new(i->broker,
                            &(struct queen_processor_options){.queue = i->queue,
                                                              .group = i->group,
                                                              .owner = i->owner,
                                                              .batch = i->conf.batch,
                                                              .expiry_s = i->conf.expiry_s,
                                                              .on_events = intake_events,
                                                              .on_error = on_ingest_error,
                                                              .on_opened = intake_opened,
                                                              .on_closed = intake_closed,
                                                              .on_settled = intake_settled,
                                                              .ctx = i->intake},
                            &err);
    if (i->processor)
        log_info("ingest.started", "queue=%s group=%s owner=%s", i->queue, i->group, i->owner);
    else
        BUG("cannot create a processor on this loop: %s", err.text);
}

// ---- close: hand the partitions over, finish the lanes, then close what they use ----

void ingest_close(struct ingest *i, void (*closed)(void *ctx), void *ctx)
{
    i->closed = closed;
    i->closed_ctx = ctx;
    i->closing = true;
    uv_timer_stop(&i->timer);
    if (!i->calling)
        close_processor(i);
}

static void close_processor(struct ingest *i)
{
    if (i->processor)
        queen_processor_close(i->processor, close_lanes, i);
    else
        close_lanes(i);
}

static void close_lanes(void *ctx)
{
    struct ingest *i = ctx;

    i->processor = NULL;
    lanes_close(i->lanes, close_writer, i);
}

static void close_writer(void *ctx)
{
    struct ingest *i = ctx;

    writer_close(i->writer, close_timer, i);
}

static void close_timer(void *ctx)
{
    struct ingest *i = ctx;

    uv_close((uv_handle_t *)&i->timer, on_ingest_timer_closed);
}

static void on_ingest_timer_closed(uv_handle_t *handle)
{
    struct ingest *i = handle->data;

    i->closed(i->closed_ctx);
    intake_free(i->intake);
    free(i->queue);
    free(i->group);
    free(i->owner);
    free(i);
}
