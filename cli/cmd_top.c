// `queen top`: live view of a server.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <queen/client.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/screen.h"
#include "cli/series.h"
#include "cli/spark.h"
#include "cli/stop.h"
#include "cli/table.h"

enum { N_FIGURES = 4, MAX_QUEUES = 200, NAME_WIDTH = 28 };

// Counters of the server, shown as rates.
static const struct {
    const char *title, *metric, *json;
} figures[N_FIGURES] = {
    {"push", "queen_op_items_total{op=\"push\"}", "pushPerSecond"},
    {"pop", "queen_op_items_total{op=\"pop\"}", "popPerSecond"},
    {"ack", "queen_op_items_total{op=\"ack\"}", "ackPerSecond"},
    {"requests", "queen_http_requests_total", "requestsPerSecond"}, // sum over all labels
};

struct queue_row {
    char name[256];
    int64_t pending, processing, dead;
    double lag_s;
    struct spark trend; // of pending
    bool present;
};

struct top {
    struct cli *cli;
    struct screen screen;
    uint64_t at_us;
    double last[N_FIGURES], rates[N_FIGURES];
    struct spark trends[N_FIGURES];
    double cpu_us, cpu_percent, pool_size, pool_active, waiting_calls, parked, rss;
    double buffered, delayed, retrying, dead, failed_chores;
    unsigned n_samples;
    struct queue_row *queues;
    size_t n_queues;
};

static int sample(struct top *t);
static int read_metrics(struct top *t, span text);
static int read_queues(struct top *t);
static void top_draw(struct top *t);
static void write_json(struct top *t);

static int top(struct cli *cli)
{
    struct top *t = arena_new(&cli->arena, struct top);
    uint64_t left = args_count(&cli->args, "count", UINT64_MAX);
    unsigned every_ms = (unsigned)args_ms(&cli->args, "interval", 2000);
    bool drawn = !cli->out.json;

    t->cli = cli;
    if (every_ms < 100)
        return ask_complain(cli, CLI_USAGE, "--interval must be at least 100ms");
    t->queues = mem_new_array(struct queue_row, MAX_QUEUES);
    int rc = sample(t); // print errors before switching the screen
    if (rc == CLI_OK) {
        stop_watch(NULL, NULL);
        if (drawn)
            screen_open(&t->screen);
        while (rc == CLI_OK && left-- > 0 && !stop_was_asked()) {
            if (drawn)
                top_draw(t);
            if (drawn && screen_key(every_ms) == 'q')
                break;
            if (!drawn)
                stop_sleep(every_ms);
            if (stop_was_asked())
                break;
            rc = sample(t);
            if (rc == CLI_OK && !drawn)
                write_json(t);
            if (out_is_broken())
                break;
        }
        if (drawn)
            screen_close(&t->screen);
        stop_unwatch();
    }
    free(t->queues);
    return rc;
}

// ---- sampling ----

// Each request of a sample has its own arena: a view may stay open for days.
static int sample(struct top *t)
{
    struct arena kept = t->cli->arena;
    span text;

    arena_init(&t->cli->arena);
    int rc = ask(t->cli, "GET", SPAN("/metrics/prometheus"), SPAN_NONE, &text);
    if (rc == CLI_OK)
        rc = read_metrics(t, text);
    if (rc == CLI_OK)
        rc = read_queues(t);
    arena_deinit(&t->cli->arena);
    t->cli->arena = kept;
    return rc;
}

static int read_metrics(struct top *t, span text)
{
    uint64_t now = clock_mono_us();
    double seconds = (double)(now - t->at_us) / 1e6;
    double cpu = series_sum(text, "queen_cpu_user_microseconds_total") +
                 series_sum(text, "queen_cpu_system_microseconds_total");

    for (unsigned i = 0; i < N_FIGURES; i++) {
        double v = series_sum(text, figures[i].metric);
        if (t->n_samples > 0) {
            // The counters of a restarted server start from 0.
            t->rates[i] = v >= t->last[i] ? (v - t->last[i]) / seconds : 0;
            spark_add(&t->trends[i], t->rates[i]);
        }
        t->last[i] = v;
    }
    t->cpu_percent =
        t->n_samples > 0 && cpu >= t->cpu_us ? (cpu - t->cpu_us) / seconds / 1e4 : 0;
    t->cpu_us = cpu;
    t->pool_size = series_sum(text, "queen_db_pool_size");
    t->pool_active = series_sum(text, "queen_db_pool_active");
    t->waiting_calls = series_sum(text, "queen_db_queued_calls");
    t->parked = series_sum(text, "queen_parked_consumers");
    t->rss = series_sum(text, "queen_process_resident_memory_bytes");
    t->buffered = series_sum(text, "queen_file_buffer_pending");
    t->delayed = series_sum(text, "queen_queue_delayed");
    t->retrying = series_sum(text, "queen_queue_retrying");
    t->dead = series_sum(text, "queen_dlq_depth");
    t->failed_chores = series_sum(text, "queen_chores_failed_total");
    t->at_us = now;
    t->n_samples++;
    return CLI_OK;
}

static struct queue_row *row_of(struct top *t, span name)
{
    size_t len =
        name.len < sizeof t->queues[0].name - 1 ? name.len : sizeof t->queues[0].name - 1;

    for (size_t i = 0; i < t->n_queues; i++)
        if (strlen(t->queues[i].name) == len && memcmp(t->queues[i].name, name.ptr, len) == 0)
            return &t->queues[i];
    if (t->n_queues == MAX_QUEUES)
        return NULL;
    struct queue_row *row = &t->queues[t->n_queues++];
    *row = (struct queue_row){0};
    memcpy(row->name, name.ptr, len);
    return row;
}

static int by_pending(const void *a, const void *b)
{
    const struct queue_row *x = a, *y = b;

    if (x->pending != y->pending)
        return x->pending < y->pending ? 1 : -1;
    return strcmp(x->name, y->name);
}

static int read_queues(struct top *t)
{
    span body, rest, item;
    size_t kept = 0;
    int rc = ask(t->cli, "GET", SPAN("/api/v1/status/queues?limit=200"), SPAN_NONE, &body);

    if (rc != CLI_OK)
        return rc;
    for (size_t i = 0; i < t->n_queues; i++)
        t->queues[i].present = false;
    rest = pick(body, "queues");
    while (pick_next(&rest, &item)) {
        struct queue_row *row = row_of(t, pick_text(item, "name", &t->cli->arena));
        if (!row)
            continue;
        row->present = true;
        row->pending = pick_int(item, "pending");
        row->processing = pick_int(item, "processing");
        row->dead = pick_int(item, "dlq");
        row->lag_s = pick_number(item, "lagSeconds");
        spark_add(&row->trend, (double)row->pending);
    }
    for (size_t i = 0; i < t->n_queues; i++) // drop removed queues
        if (t->queues[i].present)
            t->queues[kept++] = t->queues[i];
    t->n_queues = kept;
    qsort(t->queues, t->n_queues, sizeof *t->queues, by_pending);
    return CLI_OK;
}

// ---- drawing ----

static void put_count(struct buf *b, double v, unsigned width)
{
    struct buf n = {0};

    cell_put_count(&n, (int64_t)(v + 0.5));
    buf_printf(b, "%*s" SPAN_FMT, n.len < width ? (int)(width - n.len) : 0, "",
               SPAN_ARG(buf_span(&n)));
    buf_free(&n);
}

static void put_queue(struct top *t, struct buf *b, const struct queue_row *q)
{
    const struct out *o = &t->cli->out;
    struct buf lag = {0};

    cell_put_seconds(&lag, q->lag_s);
    cell_put_fixed(b, span_of(q->name), NAME_WIDTH);
    put_count(b, (double)q->pending, 12);
    put_count(b, (double)q->processing, 12);
    buf_put(b, span_of(q->dead > 0 ? out_on(o, OUT_RED) : ""));
    put_count(b, (double)q->dead, 8);
    buf_put(b, span_of(q->dead > 0 ? out_off(o) : ""));
    buf_printf(b, "%*s" SPAN_FMT "  ", lag.len < 10 ? (int)(10 - lag.len) : 0, "",
               SPAN_ARG(buf_span(&lag)));
    buf_put(b, span_of(out_on(o, OUT_CYAN)));
    spark_put(b, &q->trend, 20);
    buf_put(b, span_of(out_off(o)));
    buf_putc(b, '\n');
    buf_free(&lag);
}

static void top_draw(struct top *t)
{
    const struct out *o = &t->cli->out;
    struct buf b = {0};

    buf_printf(&b, "%squeen top%s   CPU %.0f %%   memory ", out_on(o, OUT_BOLD), out_off(o),
               t->cpu_percent);
    cell_put_bytes(&b, t->rss);
    buf_printf(
        &b,
        "   connections %.0f of %.0f busy   calls waiting %.0f   parked %.0f   %sq ends%s\n",
        t->pool_active, t->pool_size, t->waiting_calls, t->parked, out_on(o, OUT_DIM),
        out_off(o));
    buf_printf(&b,
               "buffered %.0f   delayed %.0f   retrying %.0f   dead letters %.0f   background "
               "failures %.0f\n\n",
               t->buffered, t->delayed, t->retrying, t->dead, t->failed_chores);
    for (unsigned i = 0; i < N_FIGURES; i++) {
        buf_printf(&b, "%-10s", figures[i].title);
        put_count(&b, t->rates[i], 10);
        buf_put_lit(&b, "/s  ");
        buf_put(&b, span_of(out_on(o, OUT_GREEN)));
        spark_put(&b, &t->trends[i], 50);
        buf_put(&b, span_of(out_off(o)));
        buf_putc(&b, '\n');
    }
    buf_printf(&b, "\n%s%-*s%12s%12s%8s%10s  %s%s\n", out_on(o, OUT_BOLD), NAME_WIDTH, "QUEUE",
               "PENDING", "PROCESSING", "DEAD", "LAG", "PENDING, LATELY", out_off(o));
    for (size_t i = 0; i < t->n_queues; i++)
        put_queue(t, &b, &t->queues[i]);
    if (t->n_queues == 0)
        buf_put_lit(&b, "no queues yet");
    screen_draw(&t->screen, buf_span(&b));
    buf_free(&b);
}

static void write_json(struct top *t)
{
    int64_t pending = 0;

    for (size_t i = 0; i < t->n_queues; i++)
        pending += t->queues[i].pending;
    putchar('{');
    for (unsigned i = 0; i < N_FIGURES; i++)
        printf("\"%s\":%.1f,", figures[i].json, t->rates[i]);
    printf("\"cpuPercent\":%.1f,\"pending\":%lld,\"parkedConsumers\":%.0f,\"buffered\":%.0f,"
           "\"delayed\":%.0f,\"retrying\":%.0f,\"deadLetters\":%.0f,\"failedChores\":%.0f}\n",
           t->cpu_percent, (long long)pending, t->parked, t->buffered, t->delayed, t->retrying,
           t->dead, t->failed_chores);
}

static const struct cli_option options[] = {
    {"interval", 'i', CLI_DURATION, "TIME", "between two updates (2s)"},
    {"count", 'n', CLI_COUNT, "N", "stop after this many updates (never)"},
};

const struct cli_command cli_top = {
    .name = "top",
    .args = "",
    .summary = "live view of a server: rates, queues, lag",
    .about =
        "Rates are those of the server that answers; queues are those of the database: the "
        "200 newest, the fullest first. q ends it. In a pipe: a line of JSON for each "
        "look.",
    .examples = "queen top|until q\n"
                "queen top -i 1s -n 60 --json > minute.ndjson|statistics of a minute",
    CLI_OPTIONS(options),
    .run = top,
};
