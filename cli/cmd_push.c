// `queen push`: pushes messages from arguments, files and pipes, with the library's producer.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <queen/producer.h>

#include "base/attrs.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/envelope.h"
#include "cli/progress.h"
#include "cli/stream.h"
#include "json/scan.h"
#include "json/write.h"

enum { LARGE_BYTES = 1 << 20 }; // files from this size on get a progress bar

// Results of the messages; written by the client's thread.
struct pushing {
    struct cli *cli;
    struct queen_producer *producer;
    const char *queue;
    bool envelope, text;
    struct queen_message model; // fields that the options set for all messages
    char when[ARGS_TIME_SIZE];
    struct progress progress;
    bool large;
    uint64_t bytes; // of files read before the current one
    pthread_mutex_t lock;
    uint64_t queued, scheduled, duplicates, buffered, failed;
    struct queen_error first_error;
    bool silent; // the server is unavailable, and that was printed
};

static int read_options(struct pushing *p);
static int find_server(struct cli *cli);
static void push_measure(struct pushing *p, const char *files);
static int send_arguments(struct pushing *p);
static int send_files(struct pushing *p, const char *files);
static int send_stream(struct pushing *p, int fd, const char *name);
static int send_value(struct pushing *p, span value);
static void on_result(const struct queen_push_result *r, const struct queen_error *err,
                      void *tag, void *ctx);
static void on_retry(const struct queen_error *err, void *ctx);
static int cmd_push_report(struct pushing *p, int rc);

static int cmd_push_send(struct cli *cli)
{
    const struct args *a = &cli->args;
    const char *files = args_text(a, "file");
    struct pushing p = {
        .cli = cli,
        .queue = a->rest[0],
        .envelope = args_has(a, "envelope"),
        .text = args_has(a, "text"),
        .lock = PTHREAD_MUTEX_INITIALIZER,
    };
    struct queen_error err;
    int rc = read_options(&p);

    if (rc != CLI_OK)
        return rc;
    if (p.envelope && p.text)
        return ask_complain(cli, CLI_USAGE, "--envelope and --text must not be combined");
    if (args_has(a, "transaction-id") && (a->n_rest != 2 || files))
        return ask_complain(cli, CLI_USAGE,
                            "--transaction-id is for one message given as argument");
    if (a->n_rest < 2 && !files && isatty(STDIN_FILENO))
        return ask_complain(cli, CLI_USAGE,
                            "no message: give it as argument, with --file, or on stdin");
    rc = find_server(cli);
    if (rc != CLI_OK)
        return rc;
    p.producer =
        queen_producer_new(cli->client,
                           &(struct queen_producer_options){
                               .batch_count = (unsigned)args_count(a, "batch", 1000),
                               .linger_ms = 50,
                               .max_count = 10 * args_count(a, "batch", 1000),
                               .close_timeout_ms = (unsigned)args_ms(a, "timeout", 30000),
                               .on_result = on_result,
                               .on_retry = on_retry,
                               .ctx = &p,
                           },
                           &err);
    if (!p.producer)
        return ask_failed(cli, &err);
    setvbuf(stdout, NULL, _IOLBF, 0); // print each result at once
    push_measure(&p, files);
    if (a->n_rest > 1)
        rc = send_arguments(&p);
    if (rc == CLI_OK && files)
        rc = send_files(&p, files);
    if (rc == CLI_OK && a->n_rest < 2 && !files)
        rc = send_stream(&p, STDIN_FILENO, "stdin");
    queen_producer_free(p.producer); // waits until each message has its result
    if (p.large)
        progress_end(&p.progress, p.bytes, p.queued + p.scheduled + p.duplicates + p.buffered);
    return cmd_push_report(&p, rc);
}

static int read_options(struct pushing *p)
{
    const struct args *a = &p->cli->args;
    bool at = args_time(a, "at", p->when);

    if (at && args_has(a, "in"))
        return ask_complain(p->cli, CLI_USAGE, "--at and --in must not be combined");
    if (args_count(a, "priority", 0) > 9)
        return ask_complain(p->cli, CLI_USAGE, "--priority must be from 0 to 9");
    p->model = (struct queen_message){
        .queue = p->queue,
        .partition = args_text(a, "partition"),
        .partition_key = args_text(a, "key"),
        .transaction_id = args_text(a, "transaction-id"),
        .trace_id = args_text(a, "trace-id"),
        .traceparent = args_text(a, "traceparent"),
        .scheduled_at = at ? p->when : NULL,
        .delay_ms = args_ms(a, "in", 0),
        .correlation_id = args_text(a, "correlation-id"),
        .event_type = args_text(a, "event-type"),
        .retry_policy = args_text(a, "retry-policy"),
        .concurrency_key = args_text(a, "concurrency-key"),
        .priority = (unsigned)args_count(a, "priority", 0),
    };
    return CLI_OK;
}

// The producer retries for as long as it takes, which is right for a server that restarts and
// wrong for one that does not exist. Any answer will do.
static int find_server(struct cli *cli)
{
    struct queen_error err;
    struct queen_response *r =
        queen_request(cli->client, &(struct queen_request){.path = "/live"}, &err);
    int rc = r ? CLI_OK : ask_failed(cli, &err);

    queen_response_free(r);
    return rc;
}

// Begins a progress bar if the files are large. A pipe has no size.
static void push_measure(struct pushing *p, const char *files)
{
    span rest = span_of(files), name;
    uint64_t total = 0;
    struct stat st;

    while (files && str_split(&rest, ',', &name))
        if (stat(arena_cstr(&p->cli->arena, name), &st) == 0 && S_ISREG(st.st_mode))
            total += (uint64_t)st.st_size;
    p->large = total >= LARGE_BYTES;
    if (p->large)
        progress_begin(&p->progress, &p->cli->out, total);
}

static int send_arguments(struct pushing *p)
{
    const struct args *a = &p->cli->args;

    for (size_t i = 1; i < a->n_rest; i++) {
        span value = span_of(a->rest[i]);
        struct js j = js_read(value);
        js_skip(&j);
        if (!p->text && js_finish(&j) != 0)
            return ask_complain(p->cli, CLI_USAGE,
                                "\"%s\" is not JSON; --text sends it as a string", a->rest[i]);
        int rc = send_value(p, value);
        if (rc != CLI_OK)
            return rc;
    }
    return CLI_OK;
}

static int send_files(struct pushing *p, const char *files)
{
    span rest = span_of(files), name;
    int rc = CLI_OK;

    while (rc == CLI_OK && str_split(&rest, ',', &name)) {
        const char *path = arena_cstr(&p->cli->arena, name);
        if (strcmp(path, "-") == 0) {
            rc = send_stream(p, STDIN_FILENO, "stdin");
            continue;
        }
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        if (fd < 0)
            return ask_complain(p->cli, CLI_FAILED, "cannot open %s: %s", path,
                                strerror(errno));
        rc = send_stream(p, fd, path);
        close(fd);
    }
    return rc;
}

static void show_progress(struct pushing *p, uint64_t offset)
{
    pthread_mutex_lock(&p->lock);
    uint64_t stored = p->queued + p->scheduled + p->duplicates + p->buffered;
    pthread_mutex_unlock(&p->lock);
    progress_update(&p->progress, p->bytes + offset, stored);
}

static int send_stream(struct pushing *p, int fd, const char *name)
{
    struct stream s;
    struct fault f;
    span value;
    int more, rc = CLI_OK;

    stream_init(&s, fd, name, p->text);
    while (rc == CLI_OK && (more = stream_next(&s, &value, &f)) != 0) {
        rc = more == 1 ? send_value(p, value)
                       : ask_complain(p->cli, CLI_FAILED, "%s; --text sends lines as strings",
                                      f.text);
        if (p->large)
            show_progress(p, stream_offset(&s));
    }
    p->bytes += stream_offset(&s);
    stream_deinit(&s);
    return rc;
}

// Blocks while the buffer is full, so that a pipe is read at the speed of the server.
static int send_value(struct pushing *p, span value)
{
    struct queen_message m = p->model;
    struct queen_error err = {0};
    struct buf quoted = {0};
    struct arena scratch;
    int rc = CLI_OK;

    m.payload = value.ptr;
    m.payload_len = value.len;
    arena_init(&scratch);
    if (p->text) {
        js_put_text(&quoted, value);
        m.payload = quoted.ptr;
        m.payload_len = quoted.len;
    }
    if (p->envelope && !envelope_read(&m, value, &scratch))
        rc = ask_complain(p->cli, CLI_FAILED,
                          "a value has neither \"data\" nor \"payload\"; without --envelope "
                          "it is the payload itself");
    else if (queen_producer_send(p->producer, &m, NULL, &err) != 0)
        rc = ask_failed(p->cli, &err);
    arena_deinit(&scratch);
    buf_free(&quoted);
    return rc;
}

static void push_put_counts(const struct queen_push_result *r)
{
    static const char *const names[] = {[QUEEN_QUEUED] = "queued",
                                        [QUEEN_DUPLICATE] = "duplicate",
                                        [QUEEN_BUFFERED] = "buffered",
                                        [QUEEN_FAILED] = "failed",
                                        [QUEEN_SCHEDULED] = "scheduled"};
    struct buf b = {0};

    buf_printf(&b, "{\"status\":\"%s\",\"transactionId\":", names[r->status]);
    js_put_text(&b, span_of(r->transaction_id));
    buf_put_lit(&b, ",\"messageId\":");
    js_put_text_or_null(&b, span_of(r->message_id));
    buf_put_lit(&b, ",\"partitionId\":");
    js_put_text_or_null(&b, span_of(r->partition_id));
    if (r->scheduled_at) {
        buf_put_lit(&b, ",\"scheduledAt\":");
        js_put_text(&b, span_of(r->scheduled_at));
    }
    if (r->error) {
        buf_put_lit(&b, ",\"error\":");
        js_put_text(&b, span_of(r->error));
    }
    buf_putc(&b, '}');
    out_line(buf_span(&b));
    buf_free(&b);
}

static void on_result(const struct queen_push_result *r, const struct queen_error *err,
                      void *tag, void *ctx)
{
    struct pushing *p = ctx;
    (void)tag;

    pthread_mutex_lock(&p->lock);
    if (err->code != QUEEN_OK) {
        if (p->failed++ == 0)
            p->first_error = *err;
    } else {
        p->silent = false;
        p->queued += r->status == QUEEN_QUEUED;
        p->scheduled += r->status == QUEEN_SCHEDULED;
        p->duplicates += r->status == QUEEN_DUPLICATE;
        p->buffered += r->status == QUEEN_BUFFERED;
    }
    if (r && p->cli->out.json && !p->cli->out.quiet)
        push_put_counts(r);
    pthread_mutex_unlock(&p->lock);
}

// Once per outage.
static void on_retry(const struct queen_error *err, void *ctx)
{
    struct pushing *p = ctx;

    pthread_mutex_lock(&p->lock);
    bool say = !p->silent && !p->cli->out.quiet;
    p->silent = true;
    pthread_mutex_unlock(&p->lock);
    if (say)
        ask_complain(p->cli, 0, "%s; retrying", err->text);
}

static int cmd_push_report(struct pushing *p, int rc)
{
    struct cli *cli = p->cli;

    if (p->failed > 0) {
        if (p->failed > 1)
            ask_complain(cli, 0, "%llu messages were not stored; the first because:",
                         (unsigned long long)p->failed);
        rc = ask_failed(cli, &p->first_error);
    }
    if (cli->out.json)
        return rc;
    struct buf b = {0};
    if (p->scheduled > 0)
        buf_printf(&b, "%llu scheduled for %s", (unsigned long long)p->scheduled, p->queue);
    if (p->queued > 0 || p->scheduled == 0)
        buf_printf(&b, "%s%llu queued in %s", b.len > 0 ? ", " : "",
                   (unsigned long long)p->queued, p->queue);
    if (p->duplicates > 0)
        buf_printf(&b, ", %llu duplicates", (unsigned long long)p->duplicates);
    if (p->buffered > 0)
        buf_printf(&b, ", %llu wait in the server's file buffer",
                   (unsigned long long)p->buffered);
    out_note(&cli->out, SPAN_FMT, SPAN_ARG(buf_span(&b)));
    buf_free(&b);
    return rc;
}

static const struct cli_option options[] = {
    {"partition", 'p', CLI_TEXT, "NAME", "into this partition (Default)"},
    {"key", 'k', CLI_TEXT, "KEY", "into the partition of this key (queues with a fixed set)"},
    {"concurrency-key", 0, CLI_TEXT, "KEY", "counts against the limits per key of the queue"},
    {"priority", 0, CLI_COUNT, "N", "0 to 9: higher ones are delivered first (0)"},
    {"file", 'f', CLI_TEXT, "FILES", "JSON values from files; commas between, - is stdin"},
    {"text", 't', CLI_FLAG, NULL, "arguments and lines are text, sent as JSON strings"},
    {"envelope", 'e', CLI_FLAG, NULL, "values are whole messages, as pop, tail, export write"},
    {"transaction-id", 0, CLI_TEXT, "ID", "of a single message, which is stored only once"},
    {"at", 0, CLI_TIME, "TIME", "deliver at this time: ISO 8601 with a zone, or +2h"},
    {"in", 0, CLI_DURATION, "TIME", "deliver after this delay: 30s, 10m, 2h, 1d"},
    {"correlation-id", 0, CLI_TEXT, "ID", "for looking up the timeline"},
    {"event-type", 0, CLI_TEXT, "TYPE", "selects a retry policy of the queue"},
    {"retry-policy", 0, CLI_TEXT, "JSON", "how failures of these messages are retried"},
    {"trace-id", 0, CLI_TEXT, "UUID", "stored with the message, for finding its traces"},
    {"traceparent", 0, CLI_TEXT, "TEXT", "W3C Trace Context, delivered with the message"},
    {"batch", 0, CLI_COUNT, "N", "maximum number of messages per request (1000)"},
};

const struct cli_command cli_push = {
    .name = "push",
    .args = "QUEUE [PAYLOAD]...",
    .summary = "store messages: from arguments, files or stdin",
    .about = "Without PAYLOAD and --file, JSON values are read from stdin: one per line, or "
             "as jq writes them. Reading waits while the buffer is full, so a pipe is no "
             "faster than the server. With --envelope partition and transaction id of each "
             "message are kept, so that a second run stores nothing twice.\n"
             "In a pipe the command prints a line of JSON per message, on a terminal one "
             "summary.",
    .examples = "queen push orders '{\"no\": 41}'|one message\n"
                "queen push orders -p acct-7 -f orders.ndjson|a file, into one partition\n"
                "queen push reminders '{\"call\": 7}' --in 2h|delivered in two hours\n"
                "queen push log --text hello|the JSON string \"hello\"\n"
                "queen tail orders --data | jq -c 'select(.total > 100)' | queen push "
                "audit|copy large orders to audit",
    CLI_OPTIONS(options),
    .run = cmd_push_send,
};
