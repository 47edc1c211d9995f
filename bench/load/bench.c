// `queen bench`: the stages of a run, from the options to the report.
#include "bench/load/bench.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "bench/load/conf.h"
#include "bench/load/load.h"
#include "bench/load/report.h"
#include "bench/load/tls.h"

enum {
    LOOK_US = 2000,        // how often the main thread checks the load
    SETUP_CONNECTIONS = 8, // that prefill and configure
    SETUP_BATCH = 500,
    SETUP_STUCK_US = 20000000, // abort the stage after this time without a response
    GRACE_US = 200000,         // wait for repeated deliveries after everything has arrived
};

struct bench {
    struct bench_conf conf;
    struct bench_addr addr;
    struct bench_text text;
    struct ledger *ledger;
    struct bench_result result;
    struct bench_stats setup; // of the stages before the run
    uint64_t prefilled;
    uint64_t progress_us; // of the last progress line
    uint64_t shown[BENCH_N_OPS];
};

// In the order of a run.
static int bench_prepare(struct bench *b);
static int run_setup(struct bench *b, struct bench_plan plan, const char *what);
static bool read_probe(const struct bench *b, double *v);
static int run_main(struct bench *b);
static void watch_window(struct bench *b, struct bench_load *l);
static void watch_drain(struct bench *b, struct bench_load *l);
static void show_progress(struct bench *b, const struct bench_load *l);
static int bench_verdict(const struct bench *b);

int cli_bench(int argc, char **argv)
{
    struct bench *b = mem_new(struct bench); // large because of its histograms

    int rc = BENCH_USAGE;
    switch (bench_conf_read(&b->conf, argc, argv)) {
    case BENCH_CONF_HELP:
        rc = BENCH_OK;
        break;
    case BENCH_CONF_WRONG:
        break;
    case BENCH_CONF_OK:
        rc = bench_prepare(b);
        if (rc == BENCH_OK)
            rc = run_main(b);
        break;
    }
    bench_tls_free(b->addr.tls);
    bench_text_deinit(&b->text);
    ledger_free(b->ledger);
    free(b);
    return rc;
}

// Thousands of connections need as many descriptors, so raise the soft limit to the hard limit.
static void raise_file_limit(void)
{
    struct rlimit files;

    if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
        files.rlim_cur = files.rlim_max;
        if (setrlimit(RLIMIT_NOFILE, &files) != 0)
            perror("queen bench: cannot raise the limit of open files");
    }
}

static int check_server(struct bench *b)
{
    struct bench_conn c = {.fd = -1};
    const char *why = bench_addr_find(&b->addr, b->conf.host, b->conf.port);
    int rc = 0;

    b->addr.host = b->conf.host;
    if (b->conf.is_tls) {
        b->addr.tls = bench_tls_context(b->conf.ca_file, b->conf.fingerprint);
        if (!b->addr.tls)
            return BENCH_USAGE;
    }
    if (!why) {
        rc = bench_conn_open(&c, &b->addr);
        why = rc != 0 ? strerror(-rc) : NULL;
    }
    bench_conn_deinit(&c);
    if (!why)
        return BENCH_OK;
    fprintf(stderr, "queen bench: cannot reach %s: %s\n", b->conf.url, why);
    return BENCH_FAILED;
}

static int bench_prepare(struct bench *b)
{
    const struct bench_conf *c = &b->conf;
    bool idle = c->workload == BENCH_IDLE;
    struct ledger_shape shape = {
        .producers = SETUP_CONNECTIONS + (uint32_t)c->connections,
        .partitions = (uint32_t)c->partitions,
        .groups = bench_conf_has_consumers(c) && !idle
                      ? (c->groups > 0 ? (uint32_t)c->groups : 1)
                      : 0,
    };

    raise_file_limit();
    int rc = check_server(b);
    if (rc != BENCH_OK)
        return rc;
    b->ledger = ledger_new(shape);
    if (!b->ledger) {
        fprintf(stderr,
                "queen bench: connections x partitions x groups is too much to check\n");
        return BENCH_USAGE;
    }
    bench_text_init(&b->text, c);

    uint64_t port = 0;
    b->result.target = (struct proc_target){.broker = c->pid, .pg = c->pg_pid};
    if (str_parse_u64(span_of(c->port), &port))
        proc_find(&b->result.target, (unsigned)port);
    b->result.rss_bare_kb = proc_read(&b->result.target).broker_rss_kb;

    struct bench_plan plan = {.producers = SETUP_CONNECTIONS, .threads = 1, .batch = 1};
    if (c->lease_s > 0) {
        plan.configure = true;
        plan.limit = idle ? (uint64_t)c->queues : 1;
        rc = run_setup(b, plan, "configure");
        if (rc != BENCH_OK)
            return rc;
    }
    b->result.rss_queues_kb = proc_read(&b->result.target).broker_rss_kb;
    if (c->prefill > 0 && !idle) {
        plan.configure = false;
        plan.batch = SETUP_BATCH;
        plan.spread = true;
        plan.limit = (uint64_t)c->prefill;
        rc = run_setup(b, plan, "prefill");
        b->prefilled = counter_get(&b->setup.messages[BENCH_OP_PUSH]);
    }
    return rc;
}

// A stage that ends by itself. Any failure in it would distort the measurement.
static int run_setup(struct bench *b, struct bench_plan plan, const char *what)
{
    struct bench_load *l = load_new(plan, &b->addr, &b->text, b->ledger);
    uint64_t last = 0, since = clock_mono_us();

    while (!load_is_done(l)) {
        uint64_t answers =
            load_requests(l, BENCH_OP_PUSH) + load_requests(l, BENCH_OP_CONFIGURE);
        usleep(LOOK_US);
        show_progress(b, l);
        if (answers != last)
            last = answers, since = clock_mono_us();
        if (load_errors(l) > 0 || clock_mono_us() - since > SETUP_STUCK_US)
            load_set_phase(l, BENCH_END);
    }
    bool stuck = clock_mono_us() - since > SETUP_STUCK_US;
    load_free(l, &b->setup);
    if (bench_stats_errors(&b->setup) == 0 && !stuck)
        return BENCH_OK;
    fprintf(stderr, "queen bench: %s failed: %s\n", what,
            stuck ? "no answer" : b->setup.first_error);
    return BENCH_FAILED;
}

static bool read_probe(const struct bench *b, double *v)
{
    if (!b->conf.probe)
        return false;
    char text[64] = "", *end = text;
    FILE *f =
        popen(b->conf.probe, "re"); // NOLINT(cert-env33-c): running a command is the purpose
    if (f && fgets(text, sizeof text, f))
        *v = strtod(text, &end);
    bool ok = end != text;
    if (f && pclose(f) != 0)
        ok = false;
    if (!ok)
        fprintf(stderr, "queen bench: the probe did not print a number\n");
    return ok;
}

static int run_main(struct bench *b)
{
    const struct bench_conf *c = &b->conf;
    struct bench_result *r = &b->result;
    bool pushes = bench_conf_has_producers(c), beside = bench_conf_drains(c);
    struct bench_plan plan = {
        .first_producer = SETUP_CONNECTIONS,
        .producers = pushes ? (uint32_t)c->connections : 0,
        .consumers = c->workload == BENCH_PUSH             ? 0
                     : beside || c->workload == BENCH_IDLE ? (uint32_t)c->consumers
                                                           : (uint32_t)c->connections,
        .threads = (unsigned)c->threads,
        .batch = (unsigned)c->batch,
        .spread = c->spread,
        .drains = beside,
        .rate = pushes ? c->rate : 0,
    };
    double probe_from = 0, probe_to = 0;
    bool probed = read_probe(b, &probe_from);

    r->conf = c;
    r->before = proc_read(&r->target);
    uint64_t started = clock_mono_us();
    struct bench_load *l = load_new(plan, &b->addr, &b->text, b->ledger);
    watch_window(b, l);
    watch_drain(b, l);
    load_free(l, &r->stats);
    r->sum = ledger_sum(b->ledger);
    if (c->work_queue) // consumers share a partition, so no order is promised
        r->sum.disordered = 0;
    enum bench_op unit = pushes ? BENCH_OP_PUSH : BENCH_OP_POP;
    r->run_messages = counter_get(&r->stats.messages[unit]);
    if (beside) {
        r->after = proc_read(&r->target);
        r->account_s = (double)(clock_mono_us() - started) / 1e6;
        r->account_messages = r->run_messages;
    } else {
        r->account_messages = counter_get(&r->stats.window_messages[unit]);
    }
    // If a process has ended or was replaced meanwhile, report no value instead of a wrong one.
    if (r->after.broker_s < r->before.broker_s)
        r->target.broker = 0;
    if (r->after.pg_s < r->before.pg_s)
        r->target.pg = 0;
    r->has_probe = probed && read_probe(b, &probe_to);
    r->probe = probe_to - probe_from;

    if (!c->json || strcmp(c->json, "-") != 0)
        bench_report_text(r);
    if (c->json && bench_report_json(r) != 0)
        return BENCH_FAILED;
    return bench_verdict(b);
}

// Every message that was certainly pushed has been delivered to every group.
static bool has_all(const struct bench *b, const struct bench_load *l)
{
    uint64_t groups = b->conf.groups > 0 ? (uint64_t)b->conf.groups : 1;
    uint64_t sure = b->prefilled + load_messages(l, BENCH_OP_PUSH);

    return ledger_delivered(b->ledger) >= sure * groups;
}

// Warm-up and measured time. A backlog may be consumed earlier.
static void watch_window(struct bench *b, struct bench_load *l)
{
    const struct bench_conf *c = &b->conf;
    struct bench_result *r = &b->result;
    bool backlog = !bench_conf_has_producers(c) && c->workload != BENCH_IDLE;
    uint64_t start = clock_mono_us(), from = start, progress = start, seen = 0;
    bool measuring = false;

    for (;;) {
        uint64_t now = clock_mono_us(), popped = load_messages(l, BENCH_OP_POP);
        bool parked = c->workload != BENCH_IDLE || load_parked(l) >= (uint64_t)c->consumers;
        if (popped != seen)
            seen = popped, progress = now;
        if (!measuring && parked && (double)(now - start) >= c->warmup_s * 1e6) {
            measuring = true;
            from = progress = now;
            if (!bench_conf_drains(c))
                r->before = proc_read(&r->target);
            r->rss_parked_kb = r->before.broker_rss_kb;
            load_set_phase(l, BENCH_MEASURE);
        }
        if (measuring && (double)(now - from) >= c->duration_s * 1e6)
            break;
        if (!parked && (double)(now - start) >= 60e6) {
            fprintf(stderr, "queen bench: only %llu consumers could be parked\n",
                    (unsigned long long)load_parked(l));
            break;
        }
        if (backlog && b->prefilled > 0 && has_all(b, l)) {
            r->complete = true;
            break;
        }
        if (backlog &&
            (double)(now - progress) >= c->drain_s * 1e6 + (double)c->wait_ms * 1e3) {
            r->complete =
                b->prefilled > 0; // gave up; the contents of an existing queue are unknown
            break;
        }
        show_progress(b, l);
        usleep(LOOK_US);
    }
    uint64_t end = backlog && r->complete ? progress : clock_mono_us();
    r->window_s = (double)(end - from) / 1e6;
    r->account_s = (double)(clock_mono_us() - from) / 1e6;
    r->after = proc_read(&r->target);
    r->parked = load_parked(l);
    if (c->workload == BENCH_IDLE)
        r->rss_parked_kb = r->after.broker_rss_kb;
    load_set_phase(l, c->workload == BENCH_IDLE ? BENCH_END : BENCH_DRAIN);
}

// End to end: until everything has arrived, or nothing arrived for drain_s. Otherwise: until
// requests in flight are answered.
static void watch_drain(struct bench *b, struct bench_load *l)
{
    const struct bench_conf *c = &b->conf;
    uint64_t progress = clock_mono_us(), complete = 0, seen = 0;

    while (!load_is_done(l)) {
        uint64_t now = clock_mono_us(), delivered = ledger_delivered(b->ledger);
        if (delivered != seen)
            seen = delivered, progress = now;
        // With doubtful messages, the count may be reached before all certain ones have
        // arrived.
        bool all = bench_conf_drains(c) && has_all(b, l) && ledger_doubtful(b->ledger) == 0;
        if (!all)
            complete = 0;
        else if (complete == 0)
            complete = now;
        double patience =
            c->drain_s * 1e6 + (bench_conf_drains(c) ? 0 : (double)c->wait_ms * 1e3);
        if ((complete != 0 && now - complete > GRACE_US) ||
            (double)(now - progress) > patience) {
            b->result.complete |= bench_conf_drains(c);
            load_set_phase(l, BENCH_END);
        }
        show_progress(b, l);
        usleep(LOOK_US);
    }
    if (b->progress_us != 0)
        fputs("\r\033[K", stderr);
}

static void show_progress(struct bench *b, const struct bench_load *l)
{
    uint64_t now = clock_mono_us();
    double rate[BENCH_N_OPS];

    if (b->conf.quiet || !isatty(STDERR_FILENO) || now - b->progress_us < 1000000)
        return;
    for (int op = 0; op < BENCH_N_OPS; op++) {
        uint64_t n = load_messages(l, (enum bench_op)op);
        uint64_t gain = n >= b->shown[op] ? n - b->shown[op] : n;
        rate[op] = b->progress_us > 0 ? (double)gain * 1e6 / (double)(now - b->progress_us) : 0;
        b->shown[op] = n;
    }
    b->progress_us = now;
    fprintf(stderr, "\r\033[K%s %4.0f s  push %.0f/s  pop %.0f/s  ack %.0f/s  errors %llu",
            b->conf.label, (double)(now - b->text.origin_us) / 1e6, rate[BENCH_OP_PUSH],
            rate[BENCH_OP_POP], rate[BENCH_OP_ACK], (unsigned long long)load_errors(l));
}

static int bench_verdict(const struct bench *b)
{
    const struct bench_result *r = &b->result;
    bool idle = b->conf.workload == BENCH_IDLE;

    if (!idle && bench_conf_has_consumers(&b->conf) && bench_result_is_wrong(r))
        return BENCH_WRONG;
    if (bench_stats_errors(&r->stats) > 0 || (idle && r->parked < (uint64_t)b->conf.consumers))
        return BENCH_FAILED;
    return BENCH_OK;
}
