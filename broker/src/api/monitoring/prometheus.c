// GET /metrics/prometheus: everything this process counts.  Families:
// docs/reference/metrics.md.
//
// The metrics of this process are summed over the workers for each request.  Those from the
// database follow (snapshot.h), and are missing while it is unavailable.
#include <stdio.h>

#include "api/api_int.h"
#include "api/monitoring/totals.h"
#include "base/clock.h"
#include "base/log.h"
#include "db/sql.gen.h"
#include "http/prom_text.h"
#include "pg/reply.h"

static void prometheus_handle(struct http_req *req);
static void prometheus_put_process(struct buf *out, const struct api_shared *s);
static void put_database(struct buf *out, const struct api_shared *s);
static void put_http(struct buf *out, const struct api_shared *s);
static void put_engine(struct buf *out, const struct api_shared *s);
static void put_engine_histograms(struct buf *out, const struct api_shared *s);
static void put_messages(struct buf *out, const struct api_shared *s);
static void put_late(struct buf *out, const struct api_shared *s);
static void put_state(struct buf *out, const struct api_shared *s);
static void put_background(struct buf *out, const struct api_shared *s);
static void put_buffer(struct buf *out, const struct api_shared *s);
static void put_absent(struct buf *out, const struct api_shared *s);
static void prometheus_query(struct api *api, struct http_req *req);
static void on_queue_text(struct custom_op *op, int status, const struct pg_reply *reply);
static void prometheus_answer(struct api *api, struct http_req *req);

static const char *const op_names[OP_KINDS] = {
    [OP_PUSH] = "push",   [OP_POP] = "pop",
    [OP_ACK] = "ack",     [OP_TRANSACTION] = "transaction",
    [OP_RENEW] = "renew", [OP_CUSTOM] = "custom",
    [OP_CYCLE] = "cycle",
};

static void prometheus_handle(struct http_req *req)
{
    struct api *api = http_req_app(req);

    if (snapshot_is_fresh(&api->snapshot, clock_mono_us(), api->shared->metrics_period_ms) ||
        api->snapshot.asking || !house_is_up(api->shared->house))
        prometheus_answer(api, req);
    else
        prometheus_query(api, req);
}

// In the request's arena.
struct asking {
    struct custom_op op;
    struct http_req *req;
};

static void prometheus_query(struct api *api, struct http_req *req)
{
    struct asking *a = arena_new(http_req_arena(req), struct asking);

    a->req = req;
    a->op.statement = &pg_stmt_prometheus_text;
    a->op.done = on_queue_text;
    pg_param_text(&a->op.params, span_of(api->shared->metrics_queues));
    api->snapshot.asking = true;
    broker_custom(api->broker, &a->op);
}

static void on_queue_text(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct asking *a = container_of(op, struct asking, op);
    struct api *api = http_req_app(a->req);
    struct snapshot *s = &api->snapshot;

    s->asking = false;
    pg_params_free(&op->params);
    if (status == 0 && pg_reply_rows(reply) == 1) {
        buf_free(&s->text);
        buf_put(&s->text, pg_reply_bytes(reply, 0, PROMETHEUS_TEXT_COL_PROMETHEUS_TEXT));
        s->got_us = clock_mono_us();
    } else {
        log_debug("prometheus.query_failed", "status=%s detail=\"%s\"", err_name(status),
                  op->op.why.text);
    }
    prometheus_answer(api, a->req);
}

static void prometheus_answer(struct api *api, struct http_req *req)
{
    struct buf out = {0};

    prometheus_put_process(&out, api->shared);
    put_database(&out, api->shared);
    put_http(&out, api->shared);
    put_engine(&out, api->shared);
    put_engine_histograms(&out, api->shared);
    put_messages(&out, api->shared);
    put_late(&out, api->shared);
    retries_expose(api->shared, &out);
    put_state(&out, api->shared);
    put_background(&out, api->shared);
    put_buffer(&out, api->shared);
    auth_expose(api->shared, &out);
    audit_expose(api->shared, &out);
    traces_expose(api->shared, &out);
    shared_state_expose(api->shared, &out);
    put_absent(&out, api->shared);
    if (house_is_up(api->shared->house))
        snapshot_put(&api->snapshot, clock_mono_us(), &out);
    http_reply_header(req, SPAN("Cache-Control"), SPAN("no-cache"));
    http_reply_text(req, 200, SPAN("text/plain; version=0.0.4; charset=utf-8"), &out);
}

static void prometheus_put_process(struct buf *out, const struct api_shared *s)
{
    struct api_process p = api_process(s);
    char labels[128];

    prom_family(out, "queen_build_info", "gauge", "1, with the version as label");
    snprintf(labels, sizeof labels, "version=\"" SPAN_FMT "\"", SPAN_ARG(s->version));
    prom_u64(out, "queen_build_info", labels, 1);
    log_report_dropped();
    prom_single(out, "queen_log_lines_dropped_total", "counter",
                "log lines dropped because their reader is too slow", log_dropped());
    prom_single(out, "queen_uptime_seconds", "gauge", "seconds since the start",
                (uint64_t)p.uptime_s);
    prom_single(out, "queen_cpu_user_microseconds_total", "counter",
                "processor time spent in the program", p.used.user_us);
    prom_single(out, "queen_cpu_system_microseconds_total", "counter",
                "processor time spent in the kernel", p.used.system_us);
    if (p.used.virtual_bytes > 0) {
        prom_single(out, "queen_process_resident_memory_bytes", "gauge", "memory in RAM",
                    p.used.resident_bytes);
        prom_single(out, "queen_process_virtual_memory_bytes", "gauge", "address space",
                    p.used.virtual_bytes);
    }
    prom_single(out, "queen_workers", "gauge", "event loops", s->n_workers);
    if (s->tls_expires)
        prom_single(out, "queen_tls_certificate_expires_timestamp_seconds", "gauge",
                    "when the certificate of the listener expires, in seconds since 1970",
                    (uint64_t)atomic_load(s->tls_expires));
}

// ---- the database ----

static uint64_t db_opened(const struct api *a, unsigned i)
{
    const struct pg_pool_stats *s = broker_pg_stats(a->broker);
    const struct counter *c[] = {&s->opened, &s->broken, &s->calls, &s->failed};
    return counter_get(c[i]);
}

static uint64_t db_up(const struct api *a, unsigned i)
{
    (void)i;
    return broker_is_up(a->broker);
}

static void put_database(struct buf *out, const struct api_shared *s)
{
    uint64_t open = api_sum(s, api_db_open, 0), busy = api_sum(s, api_db_busy, 0);

    prom_single(out, "queen_database_up", "gauge", "1 if the database answers all workers",
                api_sum(s, db_up, 0) == s->n_workers);
    prom_single(out, "queen_db_pool_size", "gauge", "open connections", open);
    prom_single(out, "queen_db_pool_idle", "gauge", "open connections without a call",
                open > busy ? open - busy : 0);
    prom_single(out, "queen_db_pool_active", "gauge", "connections with a call under way",
                busy);
    prom_single(out, "queen_db_queued_calls", "gauge", "calls that wait for a connection",
                api_sum(s, api_db_queued, 0));
    prom_single(out, "queen_db_connections_opened_total", "counter", "connections made",
                api_sum(s, db_opened, 0));
    prom_single(out, "queen_db_connections_broken_total", "counter", "connections lost",
                api_sum(s, db_opened, 1));
    prom_single(out, "queen_db_calls_total", "counter", "calls sent", api_sum(s, db_opened, 2));
    prom_single(out, "queen_db_calls_failed_total", "counter", "calls that failed",
                api_sum(s, db_opened, 3));
}

// ---- HTTP ----

static uint64_t http_counter(const struct api *a, unsigned i)
{
    const struct http_server_stats *s = &a->http_stats;
    const struct counter *c[] = {&s->accepted,  &s->closed,  &s->requests, &s->bytes_in,
                                 &s->bytes_out, &s->refused, &s->evicted,  &s->crowded};
    return counter_get(c[i]);
}

static uint64_t route_class(const struct api *a, unsigned i)
{
    return counter_get(&a->routes[i / 6].class_[i % 6]);
}

static const char *route_op(unsigned i) { return api_routes[i] ? api_routes[i]->op : "none"; }

static void put_http(struct buf *out, const struct api_shared *s)
{
    unsigned n_routes = (unsigned)http_routes_count(s->routes) + 1;
    uint64_t accepted = api_sum(s, http_counter, 0), closed = api_sum(s, http_counter, 1);
    char labels[96];

    prom_single(out, "queen_http_connections", "gauge", "open client connections",
                accepted > closed ? accepted - closed : 0);
    prom_single(out, "queen_http_connections_accepted_total", "counter", "connections taken",
                accepted);
    prom_single(out, "queen_http_connections_crowded_total", "counter",
                "connections closed because their address had too many",
                api_sum(s, http_counter, 7));
    prom_single(out, "queen_http_received_bytes_total", "counter", "bytes from clients",
                api_sum(s, http_counter, 3));
    prom_single(out, "queen_http_sent_bytes_total", "counter", "bytes to clients",
                api_sum(s, http_counter, 4));
    prom_single(out, "queen_http_refused_total", "counter",
                "requests refused before an endpoint saw them", api_sum(s, http_counter, 5));
    prom_single(out, "queen_http_slow_readers_closed_total", "counter",
                "connections closed because too many bytes of answers were unread",
                api_sum(s, http_counter, 6));

    prom_family(out, "queen_http_requests_total", "counter",
                "answers by endpoint and first digit of the status");
    for (unsigned i = 0; i < n_routes; i++) {
        for (unsigned c = 1; c < 6; c++) {
            uint64_t n = api_sum(s, route_class, i * 6 + c);
            if (n == 0)
                continue;
            snprintf(labels, sizeof labels, "op=\"%s\",code=\"%uxx\"", route_op(i), c);
            prom_u64(out, "queen_http_requests_total", labels, n);
        }
    }
    prom_family(out, "queen_http_request_duration_seconds", "histogram",
                "from the head of a request to its answer; waiting pops included");
    for (unsigned i = 0; i < n_routes; i++) {
        struct histogram sum = {0};
        for (unsigned w = 0; w < s->n_workers; w++)
            histogram_sum(&sum, &s->workers[w]->routes[i].us);
        snprintf(labels, sizeof labels, "op=\"%s\"", route_op(i));
        prom_histogram(out, "queen_http_request_duration_seconds", labels, &sum, 1e-6);
    }
}

// ---- the engine ----

enum { ENGINE_REQUESTS, ENGINE_ITEMS, ENGINE_FAILED, ENGINE_LATENCY_SUM, ENGINE_LATENCY_N };

static uint64_t engine_counter(const struct api *a, unsigned i)
{
    const struct broker_stats *s = broker_stats(a->broker);
    unsigned kind = i % OP_KINDS;

    switch (i / OP_KINDS) {
    case ENGINE_REQUESTS:
        return counter_get(&s->requests[kind]);
    case ENGINE_ITEMS:
        return counter_get(&s->items[kind]);
    case ENGINE_FAILED:
        return counter_get(&s->failed[kind]);
    case ENGINE_LATENCY_SUM:
        return atomic_load_explicit(&s->latency_us[kind].sum, memory_order_relaxed);
    default:
        return atomic_load_explicit(&s->latency_us[kind].n, memory_order_relaxed);
    }
}

static void put_by_op(struct buf *out, const struct api_shared *s, const char *name,
                      const char *type, const char *help, unsigned what)
{
    char labels[48];

    prom_family(out, name, type, help);
    for (unsigned k = 0; k < OP_KINDS; k++) {
        snprintf(labels, sizeof labels, "op=\"%s\"", op_names[k]);
        prom_u64(out, name, labels, api_sum(s, engine_counter, what * OP_KINDS + k));
    }
}

static void put_engine(struct buf *out, const struct api_shared *s)
{
    char labels[48];

    put_by_op(out, s, "queen_op_requests_total", "counter", "operations finished",
              ENGINE_REQUESTS);
    put_by_op(out, s, "queen_op_items_total", "counter", "messages in these operations",
              ENGINE_ITEMS);
    put_by_op(out, s, "queen_op_failed_total", "counter", "operations that failed",
              ENGINE_FAILED);
    // The same under the names that existing dashboards use.
    put_by_op(out, s, "queen_sidecar_op_count", "gauge", "operations finished",
              ENGINE_REQUESTS);
    put_by_op(out, s, "queen_sidecar_op_items", "gauge", "messages in these operations",
              ENGINE_ITEMS);
    prom_family(out, "queen_sidecar_op_latency_microseconds", "gauge",
                "mean time of an operation since the start");
    for (unsigned k = 0; k < OP_KINDS; k++) {
        uint64_t n = api_sum(s, engine_counter, ENGINE_LATENCY_N * OP_KINDS + k);
        uint64_t sum = api_sum(s, engine_counter, ENGINE_LATENCY_SUM * OP_KINDS + k);
        snprintf(labels, sizeof labels, "op=\"%s\"", op_names[k]);
        prom_u64(out, "queen_sidecar_op_latency_microseconds", labels, n > 0 ? sum / n : 0);
    }
}

static void put_engine_histograms(struct buf *out, const struct api_shared *s)
{
    static const struct {
        const char *name, *help;
        size_t offset;
        double unit;
    } families[] = {
        {"queen_op_duration_seconds",
         "from giving an operation to its end, without parked time",
         offsetof(struct broker_stats, latency_us), 1e-6},
        {"queen_batch_duration_seconds", "round trip of a batch",
         offsetof(struct broker_stats, batch_us), 1e-6},
        {"queen_batch_requests", "operations per batch",
         offsetof(struct broker_stats, batch_requests), 1},
        {"queen_batch_items", "messages per batch", offsetof(struct broker_stats, batch_items),
         1},
    };
    char labels[48];

    for (unsigned f = 0; f < countof(families); f++) {
        prom_family(out, families[f].name, "histogram", families[f].help);
        for (unsigned k = 0; k < OP_KINDS; k++) {
            struct histogram sum = {0};
            for (unsigned w = 0; w < s->n_workers; w++) {
                const char *stats = (const char *)broker_stats(s->workers[w]->broker);
                const struct histogram *of_kind = (const void *)(stats + families[f].offset);
                histogram_sum(&sum, &of_kind[k]);
            }
            snprintf(labels, sizeof labels, "op=\"%s\"", op_names[k]);
            prom_histogram(out, families[f].name, labels, &sum, families[f].unit);
        }
    }
}

// ---- messages and state ----

static uint64_t message_counter(const struct api *a, unsigned i)
{
    const struct broker_stats *s = broker_stats(a->broker);
    const struct counter *c[] = {&s->duplicates,   &s->pops_empty, &s->acks_ok, &s->acks_failed,
                                 &s->dead_letters, &s->expired,    &s->refused, &s->retried,
                                 &s->scheduled,    &s->fired};
    return counter_get(c[i]);
}

static void put_messages(struct buf *out, const struct api_shared *s)
{
    static const struct {
        const char *name, *help;
        unsigned i;
    } families[] = {
        {"queen_duplicates_total", "pushed messages that were there already", 0},
        {"queen_pops_empty_total", "pops answered without a message", 1},
        {"queen_dead_letters_total", "messages moved to the dead letters", 4},
        {"queen_expired_total", "messages removed because of their age", 5},
        {"queen_refused_total", "operations refused because too many were waiting", 6},
        {"queen_retried_total", "operations sent to the database again", 7},
        {"queen_scheduled_total", "pushed messages that were to be delivered later", 8},
        {"queen_fired_total", "messages put into their partition when their time came", 9},
    };

    for (unsigned f = 0; f < countof(families); f++)
        prom_single(out, families[f].name, "counter", families[f].help,
                    api_sum(s, message_counter, families[f].i));
    prom_family(out, "queen_acks_total", "counter", "acknowledgements by result");
    prom_u64(out, "queen_acks_total", "result=\"success\"", api_sum(s, message_counter, 2));
    prom_u64(out, "queen_acks_total", "result=\"failed\"", api_sum(s, message_counter, 3));
}

static void put_late(struct buf *out, const struct api_shared *s)
{
    struct histogram late = {0};

    for (unsigned w = 0; w < s->n_workers; w++)
        histogram_sum(&late, &broker_stats(s->workers[w]->broker)->late_us);
    prom_family(out, "queen_fired_late_seconds", "histogram",
                "from the time of a message to when it was put into its partition");
    prom_histogram(out, "queen_fired_late_seconds", "scope=\"server\"", &late, 1e-6);
}

static uint64_t state_gauge(const struct api *a, unsigned i)
{
    const struct broker_stats *s = broker_stats(a->broker);
    const _Atomic uint64_t *g[] = {&s->parked, &s->pending,   &s->queues,
                                   &s->lanes,  &s->consumers, &s->stuck_rows};
    return atomic_load_explicit(g[i], memory_order_relaxed);
}

static void put_state(struct buf *out, const struct api_shared *s)
{
    char labels[48];

    prom_single(out, "queen_parked_consumers", "gauge", "pops that wait for a message",
                api_sum(s, state_gauge, 0));
    prom_single(out, "queen_pending_operations", "gauge",
                "operations under way, parked ones not", api_sum(s, state_gauge, 1));
    prom_single(out, "queen_known_queues", "gauge", "queues that the engine keeps in memory",
                api_sum(s, state_gauge, 2));
    prom_single(out, "queen_known_partitions", "gauge",
                "partitions that the engine keeps in memory", api_sum(s, state_gauge, 3));
    prom_single(out, "queen_known_consumers", "gauge",
                "pairs of partition and group that the engine keeps in memory",
                api_sum(s, state_gauge, 4));
    prom_single(out, "queen_stuck_rows", "gauge",
                "removed rows that vacuum cannot free; removal waits unless it is 0",
                api_sum(s, state_gauge, 5));
    prom_family(out, "queen_response_registry_size", "gauge",
                "operations whose answer is outstanding, parked ones included");
    for (unsigned w = 0; w < s->n_workers; w++) {
        snprintf(labels, sizeof labels, "worker_id=\"%u\"", w);
        prom_u64(out, "queen_response_registry_size", labels,
                 state_gauge(s->workers[w], 0) + state_gauge(s->workers[w], 1));
    }
}

static uint64_t background_counter(const struct api *a, unsigned i)
{
    const struct broker_stats *s = broker_stats(a->broker);

    if (i < BROKER_CHORES)
        return counter_get(&s->chores_failed[i]);
    return counter_get(i == BROKER_CHORES ? &s->feed_reads : &s->feed_failed);
}

static void put_background(struct buf *out, const struct api_shared *s)
{
    static const char *const labels[BROKER_CHORES] = {
        [BROKER_RETENTION] = "chore=\"retention\"",   [BROKER_CLEANUP] = "chore=\"cleanup\"",
        [BROKER_ROTATION] = "chore=\"rotation\"",     [BROKER_DELETION] = "chore=\"deletion\"",
        [BROKER_STATISTICS] = "chore=\"statistics\"",
    };

    prom_family(out, "queen_chores_failed_total", "counter", "background work that failed");
    for (unsigned i = 0; i < BROKER_CHORES; i++)
        prom_u64(out, "queen_chores_failed_total", labels[i],
                 api_sum(s, background_counter, i));
    prom_single(out, "queen_feed_reads_total", "counter",
                "reads of the change feed, which wake waiting pops",
                api_sum(s, background_counter, BROKER_CHORES));
    prom_single(out, "queen_feed_reads_failed_total", "counter", "those that failed",
                api_sum(s, background_counter, BROKER_CHORES + 1));
}

static void put_buffer(struct buf *out, const struct api_shared *s)
{
    unsigned flags = house_maintenance(s->house);
    struct buffer_stats b;

    house_buffer_stats(s->house, &b);
    prom_single(out, "queen_file_buffer_pending", "gauge",
                "messages in the file buffer that wait for the database", b.pending);
    prom_single(out, "queen_file_buffer_failed", "gauge",
                "files that the database would not take, set aside", b.failed_files);
    prom_single(out, "queen_file_buffer_db_healthy", "gauge",
                "1 if the database is available and accepts buffered messages", b.db_healthy);
    prom_single(out, "queen_file_buffer_healthy", "gauge",
                "1 if the file buffer can be written", b.healthy);
    prom_single(out, "queen_file_buffer_bytes", "gauge", "size of the file buffer", b.bytes);
    prom_single(out, "queen_file_buffer_limit_bytes", "gauge", "how large it may become",
                b.max_bytes);
    prom_family(out, "queen_file_buffer_messages_total", "counter",
                "messages taken by the file buffer, stored from it, refused by it");
    prom_u64(out, "queen_file_buffer_messages_total", "event=\"buffered\"", b.buffered);
    prom_u64(out, "queen_file_buffer_messages_total", "event=\"replayed\"", b.replayed);
    prom_u64(out, "queen_file_buffer_messages_total", "event=\"refused\"", b.refused);
    prom_single(out, "queen_maintenance_mode_enabled", "gauge",
                "1 if pushes go to the file buffer", (flags & MAINTENANCE_PUSH) != 0);
    prom_single(out, "queen_pop_maintenance_mode_enabled", "gauge", "1 if pops deliver nothing",
                (flags & MAINTENANCE_POP) != 0);
}

// Names that dashboards use, for things that work differently here: docs/reference/metrics.md
// defines the values.
static void put_absent(struct buf *out, const struct api_shared *s)
{
    static const char *const zeroes[][2] = {
        {"queen_queue_backoff_groups", "always 0: waiting consumers are woken"},
        {"queen_queue_backoff_queues", "always 0: waiting consumers are woken"},
        {"queen_queue_backoff_avg_interval_milliseconds",
         "always 0: waiting consumers are woken"},
    };

    prom_family(out, "queen_threadpool_size", "gauge",
                "db: open connections; system: event loops");
    prom_u64(out, "queen_threadpool_size", "pool=\"db\"", api_sum(s, api_db_open, 0));
    prom_u64(out, "queen_threadpool_size", "pool=\"system\"", s->n_workers);
    prom_family(out, "queen_threadpool_queue_size", "gauge",
                "db: calls that wait for a connection; system: operations under way");
    prom_u64(out, "queen_threadpool_queue_size", "pool=\"db\"", api_sum(s, api_db_queued, 0));
    prom_u64(out, "queen_threadpool_queue_size", "pool=\"system\"", api_sum(s, state_gauge, 1));
    for (unsigned i = 0; i < countof(zeroes); i++)
        prom_single(out, zeroes[i][0], "gauge", zeroes[i][1], 0);
}

const struct http_route api_prometheus = {
    .verb = HTTP_GET,
    .path = "/metrics/prometheus",
    .detail = true,
    .target = TARGET_ALL, // it names all queues
    .need = MAY_READ,
    .op = "prometheus",
    .handle = prometheus_handle,
    .unknown = UNKNOWN_IGNORED,
};
