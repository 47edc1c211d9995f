// `queen pop` and `queen ack`: pop messages and acknowledge them.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <queen/message.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/message.h"
#include "cli/pick.h"
#include "cli/stream.h"
#include "cli/table.h"
#include "json/write.h"

// ---- pop ----

static void path_of_pop(struct cli *cli, struct buf *path, uint64_t wait_ms)
{
    const struct args *a = &cli->args;
    const char *partition = args_text(a, "partition");

    path_start(path, "/api/v1/pop/queue");
    path_part(path, a->rest[0]);
    if (partition) {
        buf_put_lit(path, "/partition");
        path_part(path, partition);
    }
    buf_printf(path, "?batch=%llu&partitions=%llu&wait=%s&timeout=%llu&autoAck=%s",
               (unsigned long long)args_count(a, "batch", 1),
               (unsigned long long)args_count(a, "partitions", 1), wait_ms ? "true" : "false",
               (unsigned long long)wait_ms, args_has(a, "ack") ? "true" : "false");
    path_param(path, "consumerGroup", args_text(a, "group"));
    path_param(path, "subscriptionMode", args_has(a, "new") ? "new" : NULL);
}

static int pop(struct cli *cli)
{
    uint64_t wait_ms = args_ms(&cli->args, "wait", 0);
    bool data_only = args_has(&cli->args, "data");
    struct buf path = {0};
    span body = SPAN_NONE;
    size_t n = 0;

    if (args_has(&cli->args, "partition") && args_has(&cli->args, "partitions"))
        return ask_complain(cli, CLI_USAGE,
                            "--partition and --partitions must not be combined");
    path_of_pop(cli, &path, wait_ms);
    int rc = ask_patiently(cli, "GET", buf_span(&path), SPAN_NONE,
                           wait_ms ? (unsigned)wait_ms + 5000 : 0, &body);
    buf_free(&path);
    if (rc != CLI_OK)
        return rc;
    span rest = pick(body, "messages"), message;
    while (pick_next(&rest, &message)) {
        message_show(cli, message, data_only);
        n++;
    }
    if (n == 0) {
        out_note(&cli->out, "no message available in %s", cli->args.rest[0]);
        return CLI_NOTHING;
    }
    if (!args_has(&cli->args, "ack") && !cli->out.json)
        out_note(&cli->out,
                 "%zu popped under a lease; acknowledge them with queen pop %s | queen ack", n,
                 cli->args.rest[0]);
    return CLI_OK;
}

static const struct cli_option pop_options[] = {
    {"batch", 'n', CLI_COUNT, "N", "maximum number of messages (1)"},
    {"group", 'g', CLI_TEXT, "NAME", "as this consumer group (queue mode)"},
    {"partition", 'p', CLI_TEXT, "NAME", "from this partition (any)"},
    {"partitions", 0, CLI_COUNT, "N", "maximum number of partitions (1)"},
    {"wait", 'w', CLI_DURATION, "TIME", "wait this long for the first message (0s)"},
    {"ack", 'a', CLI_FLAG, NULL, "acknowledge on delivery; no lease"},
    {"new", 0, CLI_FLAG, NULL, "a new group starts with messages from now on"},
    {"data", 'd', CLI_FLAG, NULL, "payloads alone"},
};

const struct cli_command cli_pop = {
    .name = "pop",
    .args = "QUEUE",
    .summary = "take messages",
    .about = "Messages are leased until queen ack acknowledges them, or until the lease "
             "expires and they are delivered again. Exit code 4: no message was available.",
    .examples = "queen pop orders --ack|pop and acknowledge one message\n"
                "queen pop orders -n 10 -g ledger --wait 30s | ./book && echo done|ten for a "
                "program\n"
                "queen pop orders | queen ack|pop and acknowledge in two steps",
    CLI_OPTIONS(pop_options),
    .run = pop,
};

// ---- ack ----

enum { ACK_BATCH = 1000 };

struct acking {
    struct cli *cli;
    enum queen_ack_status status;
    struct queen_ack acks[ACK_BATCH];
    size_t n;
    const char *group; // of the acknowledgements not sent yet
    struct arena texts;
    uint64_t done, refused, retrying, dead;
    int next_attempt; // of the scheduled retries, the one that is due first
    char next_at[40]; // "": none was scheduled
};

static bool read_status(const char *text, enum queen_ack_status *out)
{
    static const char *const names[] = {[QUEEN_ACK_COMPLETED] = "completed",
                                        [QUEEN_ACK_FAILED] = "failed",
                                        [QUEEN_ACK_DLQ] = "dlq",
                                        [QUEEN_ACK_RETRY] = "retry"};

    for (unsigned i = 0; i < countof(names); i++)
        if (strcmp(names[i], text) == 0) {
            *out = (enum queen_ack_status)i;
            return true;
        }
    return false;
}

// Times of the server have one format, so their texts compare like the times.
static void note_retry(struct acking *a, const struct queen_ack_result *r)
{
    a->dead += r->dlq;
    if (!r->next_attempt_at)
        return;
    a->retrying++;
    if (a->next_at[0] == '\0' || strcmp(r->next_attempt_at, a->next_at) < 0) {
        snprintf(a->next_at, sizeof a->next_at, "%s", r->next_attempt_at);
        a->next_attempt = r->next_attempt;
    }
}

static int cmd_pop_flush(struct acking *a)
{
    struct queen_error err;

    if (a->n == 0)
        return CLI_OK;
    struct queen_ack_results *r = queen_ack(a->cli->client, a->group, a->acks, a->n, &err);
    if (!r)
        return ask_failed(a->cli, &err);
    for (size_t i = 0; i < r->n; i++) {
        if (!r->items[i].success)
            ask_complain(a->cli, 0, "%s: %s", a->acks[i].transaction_id,
                         r->items[i].error ? r->items[i].error : "refused");
        note_retry(a, &r->items[i]);
    }
    a->done += r->n - r->n_refused;
    a->refused += r->n_refused;
    queen_ack_results_free(r);
    a->n = 0;
    arena_deinit(&a->texts);
    return CLI_OK;
}

// All acknowledgements of one request are for one group.
static int add_message(struct acking *a, span message)
{
    const char *asked = args_text(&a->cli->args, "group");
    const char *group = asked ? asked : pick_cstr(message, "consumerGroup", &a->cli->arena);
    int rc = CLI_OK;

    if (group && strcmp(group, "__QUEUE_MODE__") == 0)
        group = NULL;
    bool other = a->n > 0 && (!group != !a->group || (group && strcmp(group, a->group) != 0));
    if (other || a->n == ACK_BATCH)
        rc = cmd_pop_flush(a);
    a->group = group;
    struct queen_ack *ack = &a->acks[a->n];
    *ack = (struct queen_ack){
        .transaction_id = pick_cstr(message, "transactionId", &a->texts),
        .partition_id = pick_cstr(message, "partitionId", &a->texts),
        .lease_id = pick_cstr(message, "leaseId", &a->texts),
        .status = a->status,
        .error = args_text(&a->cli->args, "error"),
        .error_code = args_text(&a->cli->args, "error-code"),
        .worker = args_text(&a->cli->args, "worker"),
    };
    if (rc == CLI_OK && (!ack->transaction_id || !ack->partition_id))
        return ask_complain(a->cli, CLI_FAILED,
                            "a value has no transactionId or no partitionId; give what queen "
                            "pop --json writes");
    a->n++;
    return rc;
}

static int ack_stream(struct acking *a)
{
    struct stream s;
    struct fault f;
    span value;
    int more, rc = CLI_OK;

    stream_init(&s, STDIN_FILENO, "stdin", false);
    while (rc == CLI_OK && (more = stream_next(&s, &value, &f)) != 0)
        rc = more == 1 ? add_message(a, value) : ask_complain(a->cli, CLI_FAILED, "%s", f.text);
    stream_deinit(&s);
    return rc;
}

static void report_acks(struct acking *a)
{
    static const struct column next = {"", "nextAttemptAt", CELL_TIME};
    const struct out *o = &a->cli->out;
    struct buf b = {0}, text = {0};

    buf_printf(&b,
               "{\"acknowledged\":%llu,\"refused\":%llu,\"retrying\":%llu,"
               "\"deadLettered\":%llu,\"nextAttempt\":",
               (unsigned long long)a->done, (unsigned long long)a->refused,
               (unsigned long long)a->retrying, (unsigned long long)a->dead);
    if (a->retrying > 0)
        buf_printf(&b, "%d", a->next_attempt);
    else
        buf_put_lit(&b, "null");
    buf_put_lit(&b, ",\"nextAttemptAt\":");
    js_put_text_or_null(&b, a->retrying > 0 ? span_of(a->next_at) : SPAN_NONE);
    buf_putc(&b, '}');
    if (o->json && !o->quiet) {
        out_line(buf_span(&b));
    } else if (!o->json) {
        buf_printf(&text, "%llu acknowledged", (unsigned long long)a->done);
        if (a->retrying > 0) {
            buf_printf(&text, ", %llu will be retried; attempt %d at ",
                       (unsigned long long)a->retrying, a->next_attempt);
            cell_put(&text, buf_span(&b), &next, a->cli);
        }
        if (a->dead > 0)
            buf_printf(&text, ", %llu dead-lettered", (unsigned long long)a->dead);
        out_note(o, SPAN_FMT, SPAN_ARG(buf_span(&text)));
    }
    buf_free(&b);
    buf_free(&text);
}

static int ack(struct cli *cli)
{
    const struct args *args = &cli->args;
    const char *status = args_text(args, "status");
    struct acking *a = arena_new(&cli->arena, struct acking);
    int rc;

    a->cli = cli;
    if (status && !read_status(status, &a->status))
        return ask_complain(cli, CLI_USAGE,
                            "--status must be completed, failed, dlq or retry, not \"%s\"",
                            status);
    if (args->n_rest == 1)
        return ask_complain(cli, CLI_USAGE, "TRANSACTION_ID is missing; see --help");
    if (args->n_rest == 0 && args_has(args, "lease"))
        return ask_complain(cli, CLI_USAGE,
                            "--lease is for one message given as arguments; messages from "
                            "stdin have theirs");
    if (args->n_rest == 0 && isatty(STDIN_FILENO))
        return ask_complain(cli, CLI_USAGE,
                            "nothing to acknowledge: queen pop QUEUE | queen ack");
    arena_init(&a->texts);
    if (args->n_rest == 2) {
        a->group = args_text(args, "group");
        a->acks[a->n++] = (struct queen_ack){
            .partition_id = args->rest[0],
            .transaction_id = args->rest[1],
            .lease_id = args_text(args, "lease"),
            .status = a->status,
            .error = args_text(args, "error"),
            .error_code = args_text(args, "error-code"),
            .worker = args_text(args, "worker"),
        };
        rc = CLI_OK;
    } else {
        rc = ack_stream(a);
    }
    int flushed = cmd_pop_flush(a); // also for values before an unreadable one
    arena_deinit(&a->texts);
    rc = rc != CLI_OK ? rc : flushed;
    report_acks(a);
    return rc == CLI_OK && a->refused > 0 ? CLI_REFUSED : rc;
}

static const struct cli_option ack_options[] = {
    {"status", 's', CLI_TEXT, "WHAT", "completed, failed, dlq or retry (completed)"},
    {"error", 0, CLI_TEXT, "TEXT", "why it failed"},
    {"error-code", 0, CLI_TEXT, "CODE", "short code; the retry policy may list it"},
    {"worker", 0, CLI_TEXT, "NAME", "name of the failed consumer, for the timeline"},
    {"group", 'g', CLI_TEXT, "NAME", "of the pop (that of the message, or queue mode)"},
    {"lease", 0, CLI_TEXT, "ID", "fail unless this lease is still valid"},
};

const struct cli_command cli_ack = {
    .name = "ack",
    .args = "[PARTITION_ID] [TRANSACTION_ID]",
    .summary = "acknowledge messages",
    .about =
        "Without arguments, reads messages from stdin as queen pop writes them. failed "
        "counts against the retries of the queue, retry does not, dlq dead-letters at once. "
        "An --error-code that the queue's retryPolicy lists as nonRetryable dead-letters, too. "
        "The result has the number and the time of the next attempt; of several messages, "
        "of the first one due.",
    .examples = "queen pop orders -n 100 | tee work.ndjson | queen ack|pop and acknowledge\n"
                "queen ack -s failed --error 'no stock' $PARTITION_ID inv-41 -g ledger|one "
                "message\n"
                "queen pop orders | queen ack -s failed --error-code TIMEOUT|let the retry "
                "policy decide",
    CLI_OPTIONS(ack_options),
    .run = ack,
};
