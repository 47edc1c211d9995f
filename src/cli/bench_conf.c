// Options of `queen bench`: one table for parsing and for --help.
#include "cli/bench_conf.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/span.h"
#include "base/str.h"

enum kind { INT, REAL, TEXT, FLAG };

struct option_row {
    char letter; // 0: long name only
    const char *name, *arg, *help;
    enum kind kind;
    size_t offset;
    int64_t fallback; // INT and REAL; -1: chosen by the workload, see choose_defaults()
    int64_t min, max;
};

#define FIELD(f) offsetof(struct bench_conf, f)
static const struct option_row rows[] = {
    {'u', "url", "URL", "server (http://127.0.0.1:6632)", TEXT, FIELD(url), 0, 0, 0},
    {'w', "workload", "NAME", "push, pop, popack, e2e, fanout or idle (e2e)", TEXT,
     FIELD(workload_name), 0, 0, 0},
    {'c', "connections", "N", "producers; with pop and popack: consumers (16)", INT,
     FIELD(connections), 16, 1, 60000},
    {'C', "consumers", "N", "consumers of e2e, fanout and idle (16)", INT, FIELD(consumers), 16,
     1, 60000},
    {'b', "batch", "N", "messages in one push (1)", INT, FIELD(batch), 1, 1, 100000},
    {'B', "pop-batch", "N", "most messages in one pop (100)", INT, FIELD(pop_batch), 100, 1,
     100000},
    {'p', "partitions", "N", "partitions that messages go to (100)", INT, FIELD(partitions),
     100, 1, 10000000},
    {'S', "spread", NULL, "each message of a push to a partition of its own choice", FLAG,
     FIELD(spread), 0, 0, 0},
    {'P', "pop-partitions", "N", "most partitions in one pop (1)", INT, FIELD(pop_partitions),
     1, 1, 100000},
    {'O', "own-partition", NULL, "consumer i pops partition i only, not any", FLAG,
     FIELD(own_partition), 0, 0, 0},
    {'s', "payload", "BYTES", "JSON payload of a message (100; at least about 70)", INT,
     FIELD(payload), 100, 1, 16 << 20},
    {'R', "random", NULL, "fill payloads with random characters (do not compress)", FLAG,
     FIELD(random), 0, 0, 0},
    {'r', "rate", "N",
     "messages a second in total, open loop: latency counts from the\n"
     "moment a message was due; 0: as fast as answers come (0)",
     REAL, FIELD(rate), 0, 0, 1000000000},
    {'d', "duration", "S", "measured seconds (10)", REAL, FIELD(duration_s), 10, 0, 1000000},
    {'W', "warmup", "S", "seconds before that (1; pop and popack: 0)", REAL, FIELD(warmup_s),
     -1, 0, 1000000},
    {'D', "drain", "S", "give up on missing messages after S seconds without any (5)", REAL,
     FIELD(drain_s), 5, 0, 1000000},
    {'g', "groups", "N",
     "consumer groups, each gets everything; 0: queue mode\n"
     "(0; fanout: 10)",
     INT, FIELD(groups), -1, 0, 10000},
    {'F', "prefill", "N",
     "messages pushed beforehand (0; pop and popack without\n"
     "--queue: 100000)",
     INT, FIELD(prefill), -1, 0, 4000000000},
    {'a', "ack", NULL, "consumers of e2e and fanout: pop, then ack/batch", FLAG, FIELD(ack), 0,
     0, 0},
    {'A', "auto-ack", NULL, "consumers: acknowledge on delivery (the default)", FLAG,
     FIELD(auto_ack), 0, 0, 0},
    {'m', "wait-ms", "MS",
     "long poll for that long; 0: do not wait (pop and popack: 0,\n"
     "idle: 30000, else 2000)",
     INT, FIELD(wait_ms), -1, 0, 3600000},
    {'q', "queue", "NAME", "queue (a fresh one)", TEXT, FIELD(queue), 0, 0, 0},
    {'Q', "queues", "N", "queues of idle (10000)", INT, FIELD(queues), 10000, 1, 1000000},
    {'L', "lease", "S", "configure the queue with this lease; 0: do not (60)", INT,
     FIELD(lease_s), 60, 0, 1000000},
    {'T', "token", "JWT", "bearer token", TEXT, FIELD(token), 0, 0, 0},
    {'t', "threads", "N", "threads of the generator (1)", INT, FIELD(threads), 1, 1, 256},
    {0, "pid", "PID", "broker, for its CPU time (who listens on the port)", INT, FIELD(pid), 0,
     0, 1 << 30},
    {0, "pg-pid", "PID", "postmaster (the broker's child, or the only one here)", INT,
     FIELD(pg_pid), 0, 0, 1 << 30},
    {0, "probe", "CMD",
     "prints a number before and after the run; the difference is\n"
     "reported per message (for example a WAL position)",
     TEXT, FIELD(probe), 0, 0, 0},
    {'j', "json", "FILE", "append the result as one line of JSON; - is standard output", TEXT,
     FIELD(json), 0, 0, 0},
    {'l', "label", "TEXT", "name of the run in the report", TEXT, FIELD(label), 0, 0, 0},
    {0, "quiet", NULL, "no progress line", FLAG, FIELD(quiet), 0, 0, 0},
    {'h', "help", NULL, "this text", FLAG, FIELD(help), 0, 0, 0},
};

enum { LONG_BASE = 1000 }; // getopt value of row i is LONG_BASE + i

static const struct {
    const char *name;
    enum bench_workload id;
} workloads[] = {
    {"push", BENCH_PUSH}, {"pop", BENCH_POP},       {"popack", BENCH_POPACK},
    {"e2e", BENCH_E2E},   {"fanout", BENCH_FANOUT}, {"idle", BENCH_IDLE},
};

static void print_help(void);
static void set_fallbacks(struct bench_conf *c);
static bool set_value(struct bench_conf *c, const struct option_row *row, const char *text);
static bool read_workload(struct bench_conf *c);
static bool read_url(struct bench_conf *c);
static void choose_defaults(struct bench_conf *c);

enum bench_conf_result bench_conf_read(struct bench_conf *c, int argc, char **argv)
{
    struct option longs[countof(rows) + 1] = {0};
    char shorts[2 * countof(rows) + 2];
    size_t n = 0;

    for (size_t i = 0; i < countof(rows); i++) {
        int has_arg = rows[i].kind == FLAG ? no_argument : required_argument;
        longs[i] = (struct option){rows[i].name, has_arg, NULL, LONG_BASE + (int)i};
        if (rows[i].letter) {
            shorts[n++] = rows[i].letter;
            if (has_arg == required_argument)
                shorts[n++] = ':';
        }
    }
    shorts[n] = '\0';

    set_fallbacks(c);
    optind = 0; // somebody may have used getopt before us; 0 resets glibc's
    for (int o; (o = getopt_long(argc, argv, shorts, longs, NULL)) != -1;) {
        const struct option_row *row = NULL;
        for (size_t i = 0; i < countof(rows); i++)
            if (o == LONG_BASE + (int)i || (rows[i].letter && o == rows[i].letter))
                row = &rows[i];
        if (!row || !set_value(c, row, optarg))
            return BENCH_CONF_WRONG;
    }
    if (c->help) {
        print_help();
        return BENCH_CONF_HELP;
    }
    if (optind < argc) {
        fprintf(stderr, "queen bench: what is \"%s\"? Options only; see --help\n",
                argv[optind]);
        return BENCH_CONF_WRONG;
    }
    if (c->ack && c->auto_ack) {
        fprintf(stderr, "queen bench: --ack and --auto-ack exclude each other\n");
        return BENCH_CONF_WRONG;
    }
    if (!read_workload(c) || !read_url(c))
        return BENCH_CONF_WRONG;
    choose_defaults(c);
    return BENCH_CONF_OK;
}

static void print_help(void)
{
    puts("Usage: queen bench [options]\n"
         "\n"
         "Puts load on a server, checks that every message arrives once and in order, and\n"
         "reports throughput, latency and the CPU time of broker and PostgreSQL.\n"
         "\n"
         "Exit: 0 all well, 1 wrong options, 2 server unreachable or requests failed,\n"
         "3 messages lost, repeated or out of order.\n"
         "\n"
         "Options (default in parentheses):");
    for (size_t i = 0; i < countof(rows); i++) {
        const struct option_row *r = &rows[i];
        char left[40];
        snprintf(left, sizeof left, "--%s%s%s", r->name, r->arg ? " " : "",
                 r->arg ? r->arg : "");
        printf("  %c%c%c %-22s ", r->letter ? '-' : ' ', r->letter ? r->letter : ' ',
               r->letter ? ',' : ' ', left);
        for (const char *h = r->help; *h; h++) {
            putchar(*h);
            if (*h == '\n')
                printf("%29s", "");
        }
        putchar('\n');
    }
    puts("\n"
         "Examples:\n"
         "  queen bench -w push -c 64                      single-message pushes\n"
         "  queen bench -w push -c 16 -b 100 --spread      100 at a time, over partitions\n"
         "  queen bench -w pop -c 8 -F 1000000             drain a backlog\n"
         "  queen bench -w e2e -r 200 --ack --json -       latency at 200 messages a second\n"
         "  queen bench -w fanout -g 10 -r 200             ten groups");
}

static void set_fallbacks(struct bench_conf *c)
{
    *c = (struct bench_conf){.url = "http://127.0.0.1:6632", .workload_name = "e2e"};
    for (size_t i = 0; i < countof(rows); i++) {
        char *field = (char *)c + rows[i].offset;
        double real = (double)rows[i].fallback;
        if (rows[i].kind == INT)
            memcpy(field, &rows[i].fallback, sizeof rows[i].fallback);
        else if (rows[i].kind == REAL)
            memcpy(field, &real, sizeof real);
    }
}

static bool set_value(struct bench_conf *c, const struct option_row *row, const char *text)
{
    char *field = (char *)c + row->offset;
    bool yes = true;
    int64_t v;
    double real;

    switch (row->kind) {
    case FLAG:
        memcpy(field, &yes, sizeof yes);
        return true;
    case TEXT:
        memcpy(field, &text, sizeof text);
        return true;
    case INT:
        if (str_parse_i64(span_of(text), &v) && v >= row->min && v <= row->max) {
            memcpy(field, &v, sizeof v);
            return true;
        }
        break;
    case REAL:
        if (str_parse_double(span_of(text), &real) && real >= (double)row->min &&
            real <= (double)row->max) {
            memcpy(field, &real, sizeof real);
            return true;
        }
        break;
    }
    fprintf(stderr, "queen bench: --%s takes a number from %lld to %lld, not \"%s\"\n",
            row->name, (long long)row->min, (long long)row->max, text);
    return false;
}

static bool read_workload(struct bench_conf *c)
{
    for (size_t i = 0; i < countof(workloads); i++) {
        if (strcmp(workloads[i].name, c->workload_name) == 0) {
            c->workload = workloads[i].id;
            return true;
        }
    }
    fprintf(stderr,
            "queen bench: no workload \"%s\"; there are push, pop, popack, e2e, fanout "
            "and idle\n",
            c->workload_name);
    return false;
}

// http://host[:port][/], host may be an IPv6 address in brackets.
static bool read_url(struct bench_conf *c)
{
    span rest = span_of(c->url), host = rest, port = SPAN("80");
    const char *colon;

    if (!str_starts(rest, SPAN("http://")))
        goto out;
    rest.ptr += 7, rest.len -= 7;
    if (rest.len > 0 && rest.ptr[rest.len - 1] == '/')
        rest.len--;
    if (memchr(rest.ptr, '/', rest.len))
        goto out;

    host = rest;
    colon = memrchr(rest.ptr, ':', rest.len);
    if (colon && !memchr(colon, ']', (size_t)(rest.ptr + rest.len - colon))) {
        host.len = (size_t)(colon - rest.ptr);
        port = (span){colon + 1, rest.len - host.len - 1};
    }
    if (host.len >= 2 && host.ptr[0] == '[' && host.ptr[host.len - 1] == ']')
        host.ptr++, host.len -= 2;
    uint64_t number;
    if (host.len == 0 || host.len >= sizeof c->host || !str_parse_u64(port, &number) ||
        number == 0 || number > 65535)
        goto out;
    snprintf(c->host, sizeof c->host, SPAN_FMT, SPAN_ARG(host));
    snprintf(c->port, sizeof c->port, "%u", (unsigned)number);
    return true;
out:
    fprintf(stderr, "queen bench: --url wants http://host:port, not \"%s\"\n", c->url);
    return false;
}

static void choose_defaults(struct bench_conf *c)
{
    bool backlog = c->workload == BENCH_POP || c->workload == BENCH_POPACK;

    if (c->wait_ms < 0)
        c->wait_ms = backlog ? 0 : c->workload == BENCH_IDLE ? 30000 : 2000;
    if (c->warmup_s < 0)
        c->warmup_s = backlog ? 0 : 1;
    if (c->groups < 0)
        c->groups = c->workload == BENCH_FANOUT ? 10 : 0;
    if (c->prefill < 0)
        c->prefill = backlog && !c->queue ? 100000 : 0;
    if (c->workload == BENCH_POPACK)
        c->ack = true;
    // One consumer per group at least, or that group would wait for ever.
    int64_t *consumers = backlog ? &c->connections : &c->consumers;
    if (c->workload != BENCH_IDLE && *consumers < c->groups)
        *consumers = c->groups;
    if (!c->queue) {
        snprintf(c->queue_made_up, sizeof c->queue_made_up, "bench-%llx",
                 (unsigned long long)clock_wall_us() / 1000);
        c->queue = c->queue_made_up;
    }
    if (!c->label)
        c->label = c->workload_name;
}

bool bench_conf_has_producers(const struct bench_conf *c)
{
    return c->workload == BENCH_PUSH || bench_conf_drains(c);
}

bool bench_conf_has_consumers(const struct bench_conf *c) { return c->workload != BENCH_PUSH; }

bool bench_conf_drains(const struct bench_conf *c)
{
    return c->workload == BENCH_E2E || c->workload == BENCH_FANOUT;
}
