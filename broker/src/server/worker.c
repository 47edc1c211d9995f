// worker.c: one loop and all it owns.
#include "server/worker.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "api/tracing.h"
#include "auth/guard.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/tls_server.h"
#include "trace/sink.h"

enum { WATCH_MS = 5 }; // how often a draining worker looks whether it is done

struct worker {
    struct worker_conf conf;
    uv_loop_t loop;
    pthread_t thread;
    struct mailbox mailbox;
    struct broker *broker;
    struct http_server *http; // NULL once hung up
    struct guard *guard;
    struct audit *audit;
    struct api api;
    uv_timer_t watch; // runs while draining
    bool hanging_up;

    struct mailbox_item resume, drain, hang_up, stop; // the acceptor's wishes
    struct mailbox_item drained, hung_up, stopped;    // our reports
};

// A connected socket on its way from the acceptor.
struct parcel {
    struct mailbox_item mail;
    int fd;
    struct ssl_ctx_st *tls; // NULL: plain HTTP
};

// Why the database cannot be used yet.
struct explanation {
    struct mailbox_item mail;
    char reason[sizeof((struct api *)0)->reason];
};

// From start to end, in order.  Those marked (a) run on the acceptor's thread.
static void open_http(struct worker *w);
static void *worker_run(void *arg);
static void on_parcel(struct mailbox_item *item);
static void on_explained(struct mailbox_item *item);
static void on_resume(struct mailbox_item *item);
static void on_drain(struct mailbox_item *item);
static void on_worker_watch(uv_timer_t *watch);
static void on_hang_up(struct mailbox_item *item);
static void on_http_closed(void *ctx);
static void on_audit_closed(void *ctx);
static void on_quiet(uv_timer_t *watch);
static void on_worker_stop(struct mailbox_item *item);
static void on_broker_closed(void *ctx);
static void report_drained(struct mailbox_item *item); // (a)
static void report_hung_up(struct mailbox_item *item); // (a)
static void report_stopped(struct mailbox_item *item); // (a)

int worker_new(struct worker **out, const struct worker_conf *conf, struct fault *f)
{
    struct worker *w = mem_new(struct worker);

    *out = NULL;
    w->conf = *conf;
    w->resume = (struct mailbox_item){.deliver = on_resume, .owner = w};
    w->drain = (struct mailbox_item){.deliver = on_drain, .owner = w};
    w->hang_up = (struct mailbox_item){.deliver = on_hang_up, .owner = w};
    w->stop = (struct mailbox_item){.deliver = on_worker_stop, .owner = w};
    w->drained = (struct mailbox_item){.deliver = report_drained, .owner = w};
    w->hung_up = (struct mailbox_item){.deliver = report_hung_up, .owner = w};
    w->stopped = (struct mailbox_item){.deliver = report_stopped, .owner = w};

    int rc = uv_loop_init(&w->loop);
    if (rc != 0) {
        free(w);
        return fault_set(f, rc, "cannot make an event loop: %s", uv_strerror(rc));
    }
    rc = mailbox_open(&w->mailbox, &w->loop);
    if (rc != 0) {
        uv_loop_close(&w->loop);
        free(w);
        return fault_set(f, rc, "cannot make a mailbox: %s", uv_strerror(rc));
    }
    uv_timer_init(&w->loop, &w->watch);
    w->watch.data = w;
    w->broker = broker_open(conf->house, conf->index, &w->loop, &conf->broker);
    open_http(w);
    *out = w;
    return 0;
}

static void open_http(struct worker *w)
{
    api_init(&w->api, w->conf.shared);
    w->api.broker = w->broker;
    w->api.index = w->conf.index;
    w->api.default_timeout_ms = w->conf.default_timeout_ms;
    w->api.default_batch = w->conf.default_batch;
    w->api.max_items = w->conf.max_items;
    w->api.max_failures = w->conf.max_failures;
    w->api.default_subscription_mode = w->conf.default_subscription_mode;
    w->conf.http.app = &w->api;
    w->conf.http.observe = api_observe;
    if (w->conf.shared->collector) {
        w->api.traces = trace_sink_open(&w->loop, w->conf.shared->collector);
        w->conf.http.begin = tracing_begin;
        w->conf.http.traced = tracing_end;
    }
    w->guard = guard_open(&w->loop, w->conf.auth, &w->api.guard_stats);
    w->conf.http.guard = guard_check;
    w->conf.http.guard_refuses = guard_refuses;
    w->conf.http.guard_ctx = w->guard;
    w->audit = audit_open(&w->loop, &(struct audit_conf){.store = api_store_audit,
                                                         .ctx = &w->api,
                                                         .server = w->conf.shared->server,
                                                         .stats = &w->api.audit_stats});
    w->conf.http.audit = audit_answer;
    w->conf.http.audit_ctx = w->audit;
    w->conf.http.fallback = api_asset;
    w->conf.http.stats = &w->api.http_stats;
    w->http = http_server_open(&w->loop, w->conf.http);
}

struct api *worker_api(struct worker *w) { return &w->api; }

int worker_start(struct worker *w, struct fault *f)
{
    int err = pthread_create(&w->thread, NULL, worker_run, w);

    if (err != 0)
        return fault_set(f, QE_INTERNAL, "cannot start a thread: %s", strerror(err));
    return 0;
}

// The loop ends when on_broker_closed() has closed the last handle.
static void *worker_run(void *arg)
{
    struct worker *w = arg;
    char name[16];

    snprintf(name, sizeof name, "queen-w%u", w->conf.index);
    pthread_setname_np(pthread_self(), name);
    uv_run(&w->loop, UV_RUN_DEFAULT);
    if (uv_loop_close(&w->loop) != 0)
        BUG("worker %u left a handle open", w->conf.index);
    if (mailbox_post(w->conf.reports, &w->stopped) != 0)
        BUG("the acceptor ended before its workers");
    return NULL;
}

void worker_adopt(struct worker *w, int fd, struct ssl_ctx_st *tls)
{
    struct parcel *p = mem_new(struct parcel);

    p->mail = (struct mailbox_item){.deliver = on_parcel, .owner = w};
    p->fd = fd;
    p->tls = tls;
    if (mailbox_post(&w->mailbox, &p->mail) != 0)
        BUG("a connection was accepted for a worker that has ended");
}

static void on_parcel(struct mailbox_item *item)
{
    struct parcel *p = container_of(item, struct parcel, mail);
    struct worker *w = item->owner;

    if (w->hanging_up) {
        close(p->fd);
        tls_server_unref(p->tls);
    } else {
        http_server_adopt(w->http, p->fd, p->tls);
    }
    free(p);
}

static void worker_request(struct worker *w, struct mailbox_item *wish)
{
    if (mailbox_post(&w->mailbox, wish) != 0)
        BUG("worker %u has ended by itself", w->conf.index);
}

void worker_explain(struct worker *w, const char *reason)
{
    struct explanation *e = mem_new(struct explanation);

    e->mail = (struct mailbox_item){.deliver = on_explained, .owner = w};
    snprintf(e->reason, sizeof e->reason, "%s", reason);
    worker_request(w, &e->mail);
}

static void on_explained(struct mailbox_item *item)
{
    struct explanation *e = container_of(item, struct explanation, mail);
    struct worker *w = item->owner;

    memcpy(w->api.reason, e->reason, sizeof e->reason);
    free(e);
}

void worker_resume(struct worker *w) { worker_request(w, &w->resume); }

static void on_resume(struct mailbox_item *item)
{
    struct worker *w = item->owner;

    broker_resume(w->broker);
}

void worker_drain(struct worker *w) { worker_request(w, &w->drain); }
void worker_hang_up(struct worker *w) { worker_request(w, &w->hang_up); }
void worker_stop(struct worker *w) { worker_request(w, &w->stop); }

static void worker_report(struct worker *w, struct mailbox_item *item)
{
    if (mailbox_post(w->conf.reports, item) != 0)
        BUG("the acceptor ended before its workers");
}

static void on_drain(struct mailbox_item *item)
{
    struct worker *w = item->owner;

    broker_drain(w->broker);
    http_server_drain(w->http);
    uv_timer_start(&w->watch, on_worker_watch, WATCH_MS, WATCH_MS);
}

static void on_worker_watch(uv_timer_t *watch)
{
    struct worker *w = watch->data;

    if (http_server_connections(w->http) > 0 || !broker_is_quiet(w->broker))
        return;
    uv_timer_stop(watch);
    worker_report(w, &w->drained);
}

static void on_hang_up(struct mailbox_item *item)
{
    struct worker *w = item->owner;

    uv_timer_stop(&w->watch);
    w->hanging_up = true;
    guard_close(w->guard); // no request waits for keys any more
    http_server_close(w->http, on_http_closed, w);
}

static void on_http_closed(void *ctx)
{
    struct worker *w = ctx;

    w->http = NULL;
    trace_sink_close(w->api.traces); // no request is left
    w->api.traces = NULL;
    audit_close(w->audit, on_audit_closed, w);
}

static void on_audit_closed(void *ctx)
{
    struct worker *w = ctx;

    uv_timer_start(&w->watch, on_quiet, 0, WATCH_MS);
}

// A window of the replay may still be in flight; its end is reported to this broker.
static void on_quiet(uv_timer_t *watch)
{
    struct worker *w = watch->data;

    if (!broker_is_quiet(w->broker))
        return;
    uv_timer_stop(watch);
    worker_report(w, &w->hung_up);
}

static void on_worker_stop(struct mailbox_item *item)
{
    struct worker *w = item->owner;

    broker_close(w->broker, on_broker_closed, w);
}

static void on_broker_closed(void *ctx)
{
    struct worker *w = ctx;

    w->broker = NULL;
    uv_close((uv_handle_t *)&w->watch, NULL);
    mailbox_close(&w->mailbox, NULL, NULL);
}

static void report_drained(struct mailbox_item *item)
{
    struct worker *w = item->owner;
    w->conf.on.on_drained(w->conf.ctx);
}

static void report_hung_up(struct mailbox_item *item)
{
    struct worker *w = item->owner;
    w->conf.on.on_hung_up(w->conf.ctx);
}

static void report_stopped(struct mailbox_item *item)
{
    struct worker *w = item->owner;
    w->conf.on.on_stopped(w->conf.ctx);
}

void worker_free(struct worker *w)
{
    pthread_join(w->thread, NULL);
    mailbox_deinit(&w->mailbox);
    api_deinit(&w->api);
    free(w);
}

uint64_t worker_closed(const struct worker *w)
{
    return counter_get(&w->api.http_stats.closed);
}

#define LOOK(atomic) atomic_load_explicit(&(atomic), memory_order_relaxed)

void worker_log(const struct worker *w)
{
    const struct http_server_stats *h = &w->api.http_stats;
    const struct broker_stats *b = broker_stats(w->broker);
    const struct pg_pool_stats *p = broker_pg_stats(w->broker);

    log_info("worker.state",
             "worker=%u up=%s connections=%" PRIu64 " requests=%" PRIu64 " pending=%" PRIu64
             " parked=%" PRIu64 " queues=%" PRIu64 " lanes=%" PRIu64 " consumers=%" PRIu64
             " pg_open=%u pg_busy=%u pg_queued=%u",
             w->conf.index, LOOK(p->up) ? "true" : "false",
             counter_get(&h->accepted) - counter_get(&h->closed), counter_get(&h->requests),
             LOOK(b->pending), LOOK(b->parked), LOOK(b->queues), LOOK(b->lanes),
             LOOK(b->consumers), LOOK(p->n_open), LOOK(p->n_busy), LOOK(p->n_queued));
}
