// Options of `queen bench`: one table for parsing and for --help.
#include "bench/load/conf.h"

#include <getopt.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/attrs.h"
#include "base/clock.h"
#include "base/span.h"
#include "base/str.h"

enum kind { INT, REAL, TEXT, FLAG };

struct option_row {
    int letter; // 0: long name only
    enum kind kind;
    const char *name, *arg, *help;
    size_t offset;
    int64_t fallback; // INT and REAL; -1: chosen by the workload, see choose_defaults()
    int64_t min, max;
};

#define FIELD(f) offsetof(struct bench_conf, f)
static const struct option_row rows[] = {
    {'u', TEXT, "url", "URL", "server (QUEEN_URL, or http://127.0.0.1:6632)", FIELD(url), 0, 0,
     0},
    {'w', TEXT, "workload", "NAME", "push, pop, popack, e2e, fanout or idle (e2e)",
     FIELD(workload_name), 0, 0, 0},
    {'c', INT, "connections", "N", "producers; with pop and popack: consumers (16)",
     FIELD(connections), 16, 1, 60000},
    {'C', INT, "consumers", "N", "consumers of e2e, fanout and idle (16)", FIELD(consumers), 16,
     1, 60000},
    {'b', INT, "batch", "N", "messages in one push (1)", FIELD(batch), 1, 1, 100000},
    {'B', INT, "pop-batch", "N", "most messages in one pop (100)", FIELD(pop_batch), 100, 1,
     100000},
    {'p', INT, "partitions", "N", "partitions that messages go to (100)", FIELD(partitions),
     100, 1, 10000000},
    {'S', FLAG, "spread", NULL, "each message of a push to a partition of its own choice",
     FIELD(spread), 0, 0, 0},
    {'P', INT, "pop-partitions", "N", "most partitions in one pop (1)", FIELD(pop_partitions),
     1, 1, 100000},
    {'O', FLAG, "own-partition", NULL, "consumer i pops partition i only, not any",
     FIELD(own_partition), 0, 0, 0},
    {'s', INT, "payload", "BYTES", "JSON payload of a message (100; at least about 70)",
     FIELD(payload), 100, 1, 16 << 20},
    {'R', FLAG, "random", NULL, "fill payloads with random characters (do not compress)",
     FIELD(random), 0, 0, 0},
    {'r', REAL, "rate", "N",
     "messages a second in total, open loop: latency counts from the\n"
     "moment a message was due; 0: as fast as answers come (0)",
     FIELD(rate), 0, 0, 1000000000},
    {'d', REAL, "duration", "S", "measured seconds (10)", FIELD(duration_s), 10, 0, 1000000},
    {'W', REAL, "warmup", "S", "seconds before that (1; pop and popack: 0)", FIELD(warmup_s),
     -1, 0, 1000000},
    {'D', REAL, "drain", "S", "give up on missing messages after S seconds without any (5)",
     FIELD(drain_s), 5, 0, 1000000},
    {'g', INT, "groups", "N",
     "consumer groups, each gets everything; 0: queue mode\n"
     "(0; fanout: 10)",
     FIELD(groups), -1, 0, 10000},
    {'F', INT, "prefill", "N",
     "messages pushed beforehand (0; pop and popack without\n"
     "--queue: 100000)",
     FIELD(prefill), -1, 0, 4000000000},
    {'a', FLAG, "ack", NULL, "consumers of e2e and fanout: pop, then ack/batch", FIELD(ack), 0,
     0, 0},
    {'A', FLAG, "auto-ack", NULL, "consumers: acknowledge on delivery (the default)",
     FIELD(auto_ack), 0, 0, 0},
    {'m', INT, "wait-ms", "MS",
     "long poll for that long; 0: do not wait (pop and popack: 0,\n"
     "idle: 30000, else 2000)",
     FIELD(wait_ms), -1, 0, 3600000},
    {'q', TEXT, "queue", "NAME", "queue (a fresh one)", FIELD(queue), 0, 0, 0},
    {'Q', INT, "queues", "N", "queues of idle (10000)", FIELD(queues), 10000, 1, 1000000},
    {'L', INT, "lease", "S",
     "configure the queue with this lease; 0: leave it as it is\n"
     "(60; with --queue: 0)",
     FIELD(lease_s), -1, 0, 1000000},
    {'K', FLAG, "work-queue", NULL,
     "configure a work queue (ordering none); order is not checked", FIELD(work_queue), 0, 0,
     0},
    {'H', INT, "handle-ms", "MS",
     "consumers that acknowledge wait so long before they do, as a\nhandler would (0)",
     FIELD(handle_ms), 0, 0, 3600000},
    {'T', TEXT, "token", "JWT", "bearer token (QUEEN_TOKEN, which other users do not see)",
     FIELD(token), 0, 0, 0},
    {0, TEXT, "ca-file", "FILE", "authorities that an https server must have (the system's)",
     FIELD(ca_file), 0, 0, 0},
    {0, TEXT, "fingerprint", "HEX",
     "accept only the certificate with this SHA-256\n(QUEEN_FINGERPRINT)", FIELD(fingerprint),
     0, 0, 0},
    {'t', INT, "threads", "N", "threads of the generator (1)", FIELD(threads), 1, 1, 256},
    {0, INT, "pid", "PID", "broker, for its CPU time (the process that listens on the port)",
     FIELD(pid), 0, 0, 1 << 30},
    {0, INT, "pg-pid", "PID", "postmaster (the broker's child, or the only one here)",
     FIELD(pg_pid), 0, 0, 1 << 30},
    {0, TEXT, "probe", "CMD",
     "prints a number before and after the run; the difference is\n"
     "reported per message (for example a WAL position)",
     FIELD(probe), 0, 0, 0},
    {'j', TEXT, "json", "FILE", "append the result as one line of JSON; - is standard output",
     FIELD(json), 0, 0, 0},
    {'l', TEXT, "label", "TEXT", "name of the run in the report", FIELD(label), 0, 0, 0},
    {0, FLAG, "quiet", NULL, "no progress line", FIELD(quiet), 0, 0, 0},
    {'h', FLAG, "help", NULL, "this text", FIELD(help), 0, 0, 0},
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
            shorts[n++] = (char)rows[i].letter;
            if (has_arg == required_argument)
                shorts[n++] = ':';
        }
    }
    shorts[n] = '\0';

    set_fallbacks(c);
    optind = 0; // getopt may have been used before; 0 resets glibc's
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
        fprintf(stderr, "queen bench: unexpected argument \"%s\"; see --help\n", argv[optind]);
        return BENCH_CONF_WRONG;
    }
    if (c->ack && c->auto_ack) {
        fprintf(stderr, "queen bench: --ack and --auto-ack must not be combined\n");
        return BENCH_CONF_WRONG;
    }
    if (!read_workload(c) || !read_url(c))
        return BENCH_CONF_WRONG;
    choose_defaults(c);
    if (c->handle_ms > 0 && !c->ack) {
        fprintf(stderr, "queen bench: --handle-ms needs --ack or the workload popack\n");
        return BENCH_CONF_WRONG;
    }
    if (c->work_queue && c->lease_s == 0) {
        fprintf(stderr, "queen bench: --work-queue with --queue needs --lease, because it "
                        "configures the queue\n");
        return BENCH_CONF_WRONG;
    }
    return BENCH_CONF_OK;
}

static void print_help(void)
{
    puts("Usage: queen bench [options]\n"
         "\n"
         "Puts load on a server, checks that every message arrives once and in order, and\n"
         "reports throughput, latency and the CPU time of broker and PostgreSQL.\n"
         "\n"
         "Exit: 0 success, 1 wrong options, 2 server unreachable or requests failed,\n"
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
    *c = (struct bench_conf){.workload_name = "e2e"};
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
    fprintf(stderr, "queen bench: --%s must be a number from %lld to %lld, not \"%s\"\n",
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
            "queen bench: unknown workload \"%s\"; it must be push, pop, popack, e2e, fanout "
            "or idle\n",
            c->workload_name);
    return false;
}

// http[s]://host[:port][/], host may be an IPv6 address in brackets.
static bool read_url(struct bench_conf *c)
{
    const char *named = getenv("QUEEN_URL"), *source = c->url ? "--url" : "QUEEN_URL";
    uint64_t number = 0;

    if (!c->url)
        c->url = named && named[0] ? named : "http://127.0.0.1:6632";
    c->is_tls = strncmp(c->url, "https://", 8) == 0;
    span port = c->is_tls ? SPAN("443") : SPAN("80");
    if (!c->is_tls && strncmp(c->url, "http://", 7) != 0)
        goto out;
    const char *host = c->url + (c->is_tls ? 8 : 7);
    size_t len = strcspn(host, "/");
    if (host[len] == '/' && host[len + 1] != '\0')
        goto out;

    const char *colon = memrchr(host, ':', len);
    if (colon && !memchr(colon, ']', len - (size_t)(colon - host))) {
        port = (span){colon + 1, len - (size_t)(colon - host) - 1};
        len = (size_t)(colon - host);
    }
    if (len >= 2 && host[0] == '[' && host[len - 1] == ']')
        host++, len -= 2;
    if (len == 0 || len >= sizeof c->host || !str_parse_u64(port, &number) || number == 0 ||
        number > 65535)
        goto out;
    memcpy(c->host, host, len); // the rest is zero
    snprintf(c->port, sizeof c->port, "%u", (unsigned)number);
    return true;
out:
    fprintf(stderr,
            "queen bench: %s must be http://host:port or https://host:port, not \"%s\"\n",
            source, c->url);
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
    // Configuring resets every option: never do that to an existing queue without a request.
    if (c->lease_s < 0)
        c->lease_s = c->queue && c->workload != BENCH_IDLE ? 0 : 60;
    if (c->workload == BENCH_POPACK)
        c->ack = true;
    const char *token = getenv("QUEEN_TOKEN");
    if (!c->token && token && token[0])
        c->token = token;
    if (!c->fingerprint && !c->ca_file)
        c->fingerprint = getenv("QUEEN_FINGERPRINT");
    // At least one consumer per group; otherwise that group would wait for ever.
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
