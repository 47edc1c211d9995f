// report.c: prints the report: a page for people, a line of JSON for programs.
#include "bench/load/report.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"
#include "json/write.h"

static const char *const op_names[BENCH_N_OPS] = {"push", "pop", "ack", "configure"};

uint64_t bench_result_lost(const struct bench_result *r)
{
    return r->sum.skipped + (r->complete ? r->sum.remaining : 0);
}

bool bench_result_is_wrong(const struct bench_result *r)
{
    return bench_result_lost(r) > 0 || r->sum.repeated > 0 || r->sum.disordered > 0;
}

static double per_second(const struct bench_result *r, uint64_t n)
{
    return r->window_s > 0 ? (double)n / r->window_s : 0;
}

// CPU seconds for a million messages.
static double per_million(const struct bench_result *r, double seconds)
{
    return r->account_messages > 0 ? seconds * 1e6 / (double)r->account_messages : 0;
}

static double cores(const struct bench_result *r, double seconds)
{
    return r->account_s > 0 ? seconds / r->account_s : 0;
}

static double probe_per_message(const struct bench_result *r)
{
    return r->run_messages > 0 ? r->probe / (double)r->run_messages : 0;
}

// ---- for people ----

static void print_latency(const char *name, const struct bench_hist *h)
{
    printf("  %-4s latency ms: mean %.2f  p50 %.2f  p90 %.2f  p99 %.2f  p99.9 %.2f  max %.1f\n",
           name, bench_hist_mean_ms(h), bench_hist_ms(h, 0.5), bench_hist_ms(h, 0.9),
           bench_hist_ms(h, 0.99), bench_hist_ms(h, 0.999), (double)h->max / 1000);
}

static void print_cpu(const struct bench_result *r)
{
    const struct proc_usage *a = &r->before, *b = &r->after;
    double broker = r->target.broker ? b->broker_s - a->broker_s : 0;
    double pg = r->target.pg ? b->pg_s - a->pg_s : 0;
    double self = b->self_s - a->self_s;
    double other = b->machine_s - a->machine_s - broker - pg - self;

    printf("  CPU s per 1M messages: ");
    if (r->target.broker)
        printf("broker (%" PRId64 ") %.1f + ", r->target.broker, per_million(r, broker));
    else
        printf("broker not found + ");
    if (r->target.pg)
        printf("PostgreSQL (%" PRId64 ") %.1f", r->target.pg, per_million(r, pg));
    else
        printf("PostgreSQL not found");
    printf(", generator %.2f\n", per_million(r, self));
    printf("  cores: broker %.2f, PostgreSQL %.2f, generator %.2f, others %.2f;"
           " broker memory %" PRIu64 " KB\n",
           cores(r, broker), cores(r, pg), cores(r, self), cores(r, other > 0 ? other : 0),
           b->broker_rss_kb);
}

static void print_idle(const struct bench_result *r)
{
    double broker = r->after.broker_s - r->before.broker_s;
    double pg = r->after.pg_s - r->before.pg_s;
    double queues = (double)r->rss_queues_kb - (double)r->rss_bare_kb;
    double parked = (double)r->rss_parked_kb - (double)r->rss_queues_kb;

    printf("  %" PRId64 " queues, %" PRIu64 " parked consumers\n", r->conf->queues, r->parked);
    printf("  cores: broker %.4f, PostgreSQL %.4f\n", cores(r, broker), cores(r, pg));
    printf("  broker memory KB: %" PRIu64 " before, %.3f per queue, %.3f per parked consumer\n",
           r->rss_bare_kb, queues / (double)r->conf->queues,
           r->parked > 0 ? parked / (double)r->parked : 0);
}

static void print_checks(const struct bench_result *r)
{
    const struct ledger_sum *s = &r->sum;

    printf("  %s: sent %" PRIu64 ", delivered %" PRIu64 ", lost %" PRIu64 ", repeated %" PRIu64
           ", out of order %" PRIu64 ", left over %" PRIu64 "\n",
           bench_result_is_wrong(r) ? "WRONG" : "checked", s->sent, s->delivered,
           bench_result_lost(r), s->repeated, s->disordered, r->complete ? 0 : s->remaining);
    if (s->doubtful > 0 || counter_get(&r->stats.foreign) > 0)
        printf("  doubtful (push not confirmed) %" PRIu64 ", of other runs %" PRIu64 "\n",
               s->doubtful, counter_get(&r->stats.foreign));
}

static void print_conf(const struct bench_result *r)
{
    const struct bench_conf *c = r->conf;

    printf("%s: %s, %" PRId64 " connections", c->label, c->workload_name, c->connections);
    if (bench_conf_drains(c))
        printf(" + %" PRId64 " consumers", c->consumers);
    printf(", batch %" PRId64 "/%" PRId64 ", %" PRId64 " partitions, %" PRId64 " B%s, %.1f s\n",
           c->batch, c->pop_batch, c->partitions, c->payload, c->random ? " random" : "",
           r->window_s);
}

void bench_report_text(const struct bench_result *r)
{
    const struct bench_conf *c = r->conf;
    const struct bench_stats *s = &r->stats;

    if (c->workload == BENCH_IDLE)
        printf("%s: idle, %.1f s\n", c->label, r->window_s);
    else
        print_conf(r);
    for (int op = 0; op < BENCH_N_OPS; op++) {
        uint64_t requests = counter_get(&s->window_requests[op]);
        if (requests == 0 || op == BENCH_OP_CONFIGURE || c->workload == BENCH_IDLE)
            continue;
        printf("  %-4s %.0f messages/s in %.0f requests/s\n", op_names[op],
               per_second(r, counter_get(&s->window_messages[op])), per_second(r, requests));
        print_latency(op_names[op], &s->latency[op]);
    }
    if (s->e2e.n > 0)
        print_latency("e2e", &s->e2e);
    if (c->workload == BENCH_IDLE) {
        print_idle(r);
    } else {
        print_cpu(r);
        if (bench_conf_has_consumers(c))
            print_checks(r);
    }
    if (r->has_probe)
        printf("  probe: %.1f per message\n", probe_per_message(r));
    if (bench_stats_errors(s) > 0)
        printf("  ERRORS: HTTP %" PRIu64 ", connection %" PRIu64 ", not accepted %" PRIu64
               ", acks refused %" PRIu64 "; first: %s\n",
               counter_get(&s->http_errors), counter_get(&s->conn_errors),
               counter_get(&s->not_accepted), counter_get(&s->ack_refused), s->first_error);
}

// ---- for programs ----

static void put_key(struct buf *b, const char *key)
{
    buf_putc(b, b->len > 0 && b->ptr[b->len - 1] == '{' ? ' ' : ',');
    js_put_text(b, span_of(key));
    buf_putc(b, ':');
}

static void put_report_text(struct buf *b, const char *key, const char *text)
{
    put_key(b, key);
    js_put_text(b, span_of(text));
}

static void put_int(struct buf *b, const char *key, uint64_t v)
{
    put_key(b, key);
    buf_put_u64(b, v);
}

static void put_real(struct buf *b, const char *key, double v)
{
    put_key(b, key);
    buf_printf(b, "%.4f", v);
}

static void put_bool(struct buf *b, const char *key, bool v)
{
    put_key(b, key);
    js_put_bool(b, v);
}

// Unknown is null, never 0: a reader must not take it for "free".
static void put_if(struct buf *b, const char *key, bool known, double v)
{
    if (known) {
        put_real(b, key, v);
    } else {
        put_key(b, key);
        buf_put_lit(b, "null");
    }
}

static void put_latency(struct buf *b, const char *key, const struct bench_hist *h)
{
    put_key(b, key);
    buf_putc(b, '{');
    put_real(b, "mean", bench_hist_mean_ms(h));
    put_real(b, "p50", bench_hist_ms(h, 0.5));
    put_real(b, "p90", bench_hist_ms(h, 0.9));
    put_real(b, "p99", bench_hist_ms(h, 0.99));
    put_real(b, "p999", bench_hist_ms(h, 0.999));
    put_real(b, "max", (double)h->max / 1000);
    buf_putc(b, '}');
}

static void put_conf(struct buf *b, const struct bench_conf *c)
{
    put_report_text(b, "label", c->label);
    put_report_text(b, "workload", c->workload_name);
    put_int(b, "connections", (uint64_t)c->connections);
    put_int(b, "consumers",
            bench_conf_drains(c) || c->workload == BENCH_IDLE ? (uint64_t)c->consumers : 0);
    put_int(b, "threads", (uint64_t)c->threads);
    put_int(b, "batch", (uint64_t)c->batch);
    put_int(b, "popBatch", (uint64_t)c->pop_batch);
    put_int(b, "partitions", (uint64_t)c->partitions);
    put_int(b, "popPartitions", (uint64_t)c->pop_partitions);
    put_bool(b, "spread", c->spread);
    put_int(b, "payload", (uint64_t)c->payload);
    put_bool(b, "random", c->random);
    put_real(b, "rate", c->rate);
    put_int(b, "groups", (uint64_t)c->groups);
    put_int(b, "prefill", (uint64_t)c->prefill);
    put_bool(b, "ack", c->ack);
    put_int(b, "waitMs", (uint64_t)c->wait_ms);
    put_bool(b, "workQueue", c->work_queue);
    put_int(b, "handleMs", (uint64_t)c->handle_ms);
}

static void put_counts(struct buf *b, const struct bench_result *r)
{
    const struct bench_stats *s = &r->stats;

    put_int(b, "sent", r->sum.sent);
    put_int(b, "delivered", r->sum.delivered);
    put_int(b, "lost", bench_result_lost(r));
    put_int(b, "repeated", r->sum.repeated);
    put_int(b, "disordered", r->sum.disordered);
    put_int(b, "leftOver", r->complete ? 0 : r->sum.remaining);
    put_int(b, "doubtful", r->sum.doubtful);
    put_int(b, "foreign", counter_get(&s->foreign));
    put_int(b, "buffered", counter_get(&s->buffered));
    put_int(b, "emptyPops", counter_get(&s->empty_pops));
    put_int(b, "httpErrors", counter_get(&s->http_errors));
    put_int(b, "connErrors", counter_get(&s->conn_errors));
    put_int(b, "notAccepted", counter_get(&s->not_accepted));
    put_int(b, "acksRefused", counter_get(&s->ack_refused));
    if (s->first_error[0])
        put_report_text(b, "firstError", s->first_error);
}

static void put_cpu(struct buf *b, const struct bench_result *r)
{
    double broker = r->after.broker_s - r->before.broker_s;
    double pg = r->after.pg_s - r->before.pg_s, self = r->after.self_s - r->before.self_s;
    bool has_broker = r->target.broker != 0, has_pg = r->target.pg != 0;
    bool counted = r->account_messages > 0;

    put_int(b, "brokerPid", (uint64_t)r->target.broker);
    put_int(b, "pgPid", (uint64_t)r->target.pg);
    put_int(b, "accountMessages", r->account_messages);
    put_real(b, "accountSeconds", r->account_s);
    put_if(b, "cpuBrokerPerM", has_broker && counted, per_million(r, broker));
    put_if(b, "cpuPgPerM", has_pg && counted, per_million(r, pg));
    put_if(b, "cpuGeneratorPerM", counted, per_million(r, self));
    put_if(b, "coresBroker", has_broker, cores(r, broker));
    put_if(b, "coresPg", has_pg, cores(r, pg));
    put_real(b, "coresGenerator", cores(r, self));
    put_real(b, "coresMachine", cores(r, r->after.machine_s - r->before.machine_s));
    put_if(b, "brokerRssKb", has_broker, (double)r->after.broker_rss_kb);
    put_if(b, "probePerMessage", r->has_probe && r->run_messages > 0, probe_per_message(r));
    if (r->conf->workload == BENCH_IDLE) {
        put_int(b, "queues", (uint64_t)r->conf->queues);
        put_int(b, "parked", r->parked);
        put_int(b, "rssBareKb", r->rss_bare_kb);
        put_int(b, "rssQueuesKb", r->rss_queues_kb);
        put_int(b, "rssParkedKb", r->rss_parked_kb);
    }
}

int bench_report_json(const struct bench_result *r)
{
    const struct bench_stats *s = &r->stats;
    bool to_stdout = strcmp(r->conf->json, "-") == 0;
    char when[STR_TS_MS];
    struct buf b = {0};

    buf_putc(&b, '{');
    put_conf(&b, r->conf);
    str_format_ts_ms((int64_t)clock_wall_us(), when);
    put_key(&b, "time");
    js_put_text(&b, (span){when, sizeof when});
    put_real(&b, "seconds", r->window_s);
    for (int op = 0; op < BENCH_N_OPS; op++) {
        char key[32];
        if (counter_get(&s->window_requests[op]) == 0)
            continue;
        snprintf(key, sizeof key, "%sPerSecond", op_names[op]);
        put_real(&b, key, per_second(r, counter_get(&s->window_messages[op])));
        snprintf(key, sizeof key, "%sRequestsPerSecond", op_names[op]);
        put_real(&b, key, per_second(r, counter_get(&s->window_requests[op])));
        snprintf(key, sizeof key, "%sMs", op_names[op]);
        put_latency(&b, key, &s->latency[op]);
    }
    if (s->e2e.n > 0)
        put_latency(&b, "e2eMs", &s->e2e);
    put_counts(&b, r);
    put_cpu(&b, r);
    buf_put_lit(&b, "}\n");

    FILE *f = to_stdout ? stdout : fopen(r->conf->json, "ae");
    int rc = f && fwrite(b.ptr, 1, b.len, f) == b.len && fflush(f) == 0 ? 0 : -errno;
    if (f && !to_stdout && fclose(f) != 0)
        rc = -errno;
    if (rc != 0)
        fprintf(stderr, "queen bench: %s: %s\n", r->conf->json, strerror(-rc));
    buf_free(&b);
    return rc;
}
