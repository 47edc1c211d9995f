// collector.c: the thread that sends batches of spans, and its bounded queue.
#include "trace/collector.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/queue.h>
#include <time.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/fetch.h"
#include "trace/headers.h"
#include "json/write.h"

#define TRACES_PATH "/v1/traces"

enum { JOIN_S = 2, LOG_GAP_S = 60 };

// Given spans, waiting to be sent.
struct batch {
    STAILQ_ENTRY(batch) link;
    struct buf spans;
    unsigned n;
};
STAILQ_HEAD(batch_list, batch);

struct collector {
    char *url;
    struct trace_headers headers;
    struct ssl_ctx_st *tls;
    struct buf head; // of a request's body
    uint64_t threshold;
    pthread_t thread;

    pthread_mutex_t lock; // guards all fields below
    pthread_cond_t change;
    struct batch_list queue;
    size_t queued; // bytes, with the batch that is being sent
    uint64_t n_sent, n_dropped;
    bool stopping;

    uint64_t logged_s; // the thread's only: last trace.export_failed; 0: never
    bool failing;
};

// The thread, in order.
static void *collector_run(void *arg);
static struct batch *take_batch(struct collector *c);
static bool send_batch(struct collector *c, const struct batch *b);
static bool post_batch(struct collector *c, struct buf *body, bool *is_final);
static bool wait_before_retry(struct collector *c);

static void put_resource(struct buf *out, const struct collector_conf *conf)
{
    const struct {
        const char *key, *value;
    } texts[] = {{"service.name", conf->service},
                 {"service.version", conf->version},
                 {"service.instance.id", conf->server}};

    buf_put_lit(out, "{\"resourceSpans\":[{\"resource\":{\"attributes\":[");
    for (unsigned i = 0; i < countof(texts); i++) {
        buf_printf(out, "%s{\"key\":\"%s\",\"value\":{\"stringValue\":", i > 0 ? "," : "",
                   texts[i].key);
        js_put_text(out, span_of(texts[i].value));
        buf_put_lit(out, "}}");
    }
    buf_put_lit(out, "]},\"scopeSpans\":[{\"scope\":{\"name\":\"queen\",\"version\":");
    js_put_text(out, span_of(conf->version));
    buf_put_lit(out, "},\"spans\":[");
}

int collector_check(const struct collector_conf *conf, struct fault *f)
{
    struct trace_headers headers;
    struct fault why;

    if (fetch_check_url(conf->url, &why) != 0)
        return fault_set(f, QE_CONF, "OTEL_EXPORTER_OTLP_ENDPOINT: %s", why.text);
    if (trace_headers_read(conf->headers, &headers, &why) != 0)
        return fault_set(f, QE_CONF, "OTEL_EXPORTER_OTLP_HEADERS: %s", why.text);
    trace_headers_deinit(&headers);
    return 0;
}

static void forget(struct collector *c)
{
    trace_headers_deinit(&c->headers);
    fetch_tls_free(c->tls);
    buf_free(&c->head);
    free(c->url);
    pthread_cond_destroy(&c->change);
    pthread_mutex_destroy(&c->lock);
    free(c);
}

int collector_new(struct collector **out, const struct collector_conf *conf, struct fault *f)
{
    struct buf url = {0};
    pthread_condattr_t attr;
    size_t len = strlen(conf->url);

    *out = NULL;
    int rc = collector_check(conf, f);
    if (rc != 0)
        return rc;
    struct collector *c = mem_new(struct collector);
    rc = fetch_tls_new(&c->tls, f);
    if (rc == 0)
        rc = trace_headers_read(conf->headers, &c->headers, f);
    if (rc != 0) {
        fetch_tls_free(c->tls);
        free(c);
        return rc;
    }
    while (len > 0 && conf->url[len - 1] == '/')
        len--;
    buf_put_bytes(&url, conf->url, len);
    buf_put_bytes(&url, TRACES_PATH, sizeof TRACES_PATH);
    c->url = url.ptr;
    put_resource(&c->head, conf);
    c->threshold = conf->ratio >= 1 ? UINT64_MAX : (uint64_t)(conf->ratio * 0x1p64);
    STAILQ_INIT(&c->queue);
    pthread_mutex_init(&c->lock, NULL);
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&c->change, &attr);
    pthread_condattr_destroy(&attr);
    int err = pthread_create(&c->thread, NULL, collector_run, c);
    if (err != 0) {
        forget(c);
        return fault_set(f, QE_INTERNAL, "cannot start a thread: %s", strerror(err));
    }
    *out = c;
    return 0;
}

void collector_free(struct collector *c)
{
    struct timespec until;

    if (!c)
        return;
    pthread_mutex_lock(&c->lock);
    c->stopping = true;
    pthread_cond_signal(&c->change);
    pthread_mutex_unlock(&c->lock);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += JOIN_S;
    // Do not wait for a collector that does not answer; the process ends soon anyway.
    if (pthread_timedjoin_np(c->thread, NULL, &until) != 0) {
        pthread_detach(c->thread);
        return;
    }
    forget(c);
}

// ---- the workers ----

bool collector_samples(const struct collector *c)
{
    return c->threshold == UINT64_MAX || id_random_u64() < c->threshold;
}

void collector_send(struct collector *c, struct buf *spans, unsigned n)
{
    struct batch *b = mem_new(struct batch);
    bool fits;

    b->spans = *spans;
    b->n = n;
    *spans = (struct buf){.max = spans->max};
    pthread_mutex_lock(&c->lock);
    fits = !b->spans.failed && b->spans.len <= COLLECTOR_MAX_BYTES - c->queued;
    if (fits) {
        c->queued += b->spans.len;
        STAILQ_INSERT_TAIL(&c->queue, b, link);
        pthread_cond_signal(&c->change);
    } else {
        c->n_dropped += n;
    }
    pthread_mutex_unlock(&c->lock);
    if (!fits) {
        buf_free(&b->spans);
        free(b);
    }
}

struct collector_stats collector_stats(struct collector *c)
{
    pthread_mutex_lock(&c->lock);
    struct collector_stats s = {c->n_sent, c->n_dropped, c->queued};
    pthread_mutex_unlock(&c->lock);
    return s;
}

// ---- the thread ----

static void *collector_run(void *arg)
{
    struct collector *c = arg;
    struct batch *b;

    pthread_setname_np(pthread_self(), "queen-traces");
    while ((b = take_batch(c))) {
        bool sent = send_batch(c, b);
        pthread_mutex_lock(&c->lock);
        c->queued -= b->spans.len;
        *(sent ? &c->n_sent : &c->n_dropped) += b->n;
        pthread_mutex_unlock(&c->lock);
        buf_free(&b->spans);
        free(b);
    }
    return NULL;
}

// NULL: the queue is empty and will stay so.
static struct batch *take_batch(struct collector *c)
{
    pthread_mutex_lock(&c->lock);
    while (STAILQ_EMPTY(&c->queue) && !c->stopping)
        pthread_cond_wait(&c->change, &c->lock);
    struct batch *b = STAILQ_FIRST(&c->queue);
    if (b)
        STAILQ_REMOVE_HEAD(&c->queue, link);
    pthread_mutex_unlock(&c->lock);
    return b;
}

static bool send_batch(struct collector *c, const struct batch *b)
{
    struct buf body = {0};
    bool sent = false, is_final = false;

    buf_put(&body, buf_span(&c->head));
    buf_put(&body, buf_span(&b->spans));
    buf_put_lit(&body, "]}]}]}");
    for (unsigned i = 0; i < COLLECTOR_ATTEMPTS && !sent && !is_final && !body.failed; i++) {
        if (i > 0 && !wait_before_retry(c))
            break;
        sent = post_batch(c, &body, &is_final);
    }
    buf_free(&body);
    return sent;
}

static bool post_batch(struct collector *c, struct buf *body, bool *is_final)
{
    struct fault f = {0};
    int rc = fetch_post(&(struct fetch_post){.tls = c->tls,
                                             .url = c->url,
                                             .content_type = "application/json",
                                             .headers = c->headers.at,
                                             .n_headers = c->headers.n,
                                             .body = buf_span(body),
                                             .timeout_ms = COLLECTOR_TIMEOUT_MS},
                        &f);

    if (rc == 0) {
        if (c->failing)
            log_info("trace.export_recovered", "url=\"%s\"", c->url);
        c->failing = false;
        return true;
    }
    *is_final = f.code == QE_BAD_REQUEST;
    uint64_t now_s = clock_mono_us() / 1000000;
    if (c->logged_s == 0 || now_s - c->logged_s >= LOG_GAP_S) {
        c->logged_s = now_s;
        log_warn("trace.export_failed", "url=\"%s\" error=\"%s\"", c->url, f.text);
    }
    c->failing = true;
    return false;
}

// False: the process ends, which does not wait for a collector that has failed.
static bool wait_before_retry(struct collector *c)
{
    struct timespec until;
    int err = 0;

    clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += COLLECTOR_PAUSE_MS / 1000;
    pthread_mutex_lock(&c->lock);
    while (!c->stopping && err != ETIMEDOUT)
        err = pthread_cond_timedwait(&c->change, &c->lock, &until);
    bool goes_on = !c->stopping;
    pthread_mutex_unlock(&c->lock);
    return goes_on;
}
