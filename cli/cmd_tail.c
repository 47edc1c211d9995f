// `queen tail`: shows the last messages of a queue, and new ones as they arrive.
//
// Without --group no other consumer is affected: the last messages are read without consuming
// them, and new ones are delivered to a consumer group that exists while the command runs.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <queen/consumer.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/message.h"
#include "cli/own_group.h"
#include "cli/pick.h"
#include "cli/reader.h"
#include "cli/stop.h"

enum { BATCH = 100 }; // at most OWN_GROUP_BATCH

struct tailing {
    struct cli *cli;
    bool data_only;
    pthread_mutex_t lock; // guards the fields below
    struct queen_consumer *consumer;
    bool silent; // the server is unavailable, and that was printed
    span *shown; // ids of messages shown before following began
    size_t n_shown;
};

static int begin_group(struct cli *cli, const char *name);
static int show_last(struct tailing *t, uint64_t n);
static int consume(struct tailing *t, const char *group, const char *from, bool forget);
static int drain(struct tailing *t, struct queen_pop *pop);
static int follow(struct tailing *t, const struct queen_pop *pop);
static enum queen_verdict on_messages(struct queen_job *job, void *ctx);
static void on_error(const struct queen_error *err, void *ctx);
static void on_cmd_tail_stop(void *ctx);

static int tail(struct cli *cli)
{
    const struct args *a = &cli->args;
    const char *group = args_text(a, "group");
    char from[ARGS_TIME_SIZE];
    bool timed = args_time(a, "from", from);
    bool all = args_has(a, "all");
    struct tailing t = {
        .cli = cli, .data_only = args_has(a, "data"), .lock = PTHREAD_MUTEX_INITIALIZER};

    if (timed && all)
        return ask_complain(cli, CLI_USAGE, "--from and --all must not be combined");
    bool chosen = group || timed || all; // which messages, other than the last ones
    if (chosen && args_has(a, "last"))
        return ask_complain(cli, CLI_USAGE, "--last must not be combined with --%s",
                            group   ? "group"
                            : timed ? "from"
                                    : "all");
    if (!chosen && args_has(a, "partition"))
        return ask_complain(cli, CLI_USAGE, "--partition needs --all, --from or --group");
    if (!chosen && !args_has(a, "follow") && args_has(a, "limit"))
        return ask_complain(cli, CLI_USAGE,
                            "--limit needs --follow, --all, --from or --group; --last limits "
                            "the last messages");
    if (group)
        return consume(&t, group, all ? "1970-01-01T00:00:00Z" : timed ? from : NULL, false);

    const char *name = own_group_name(cli, "tail");
    if (!all && !timed) {
        // Create the group first: messages that arrive while the last ones are read are not
        // missed, and those already shown are not shown again.
        bool endless = args_has(a, "follow");
        int rc = endless ? begin_group(cli, name) : CLI_OK;
        if (rc == CLI_OK)
            rc = show_last(&t, args_count(a, "last", 10));
        if (rc != CLI_OK && endless) {
            cli->out.quiet |= rc == CLI_UNREACHABLE; // that was said
            own_group_forget(cli, name);
        }
        if (rc != CLI_OK || !endless)
            return rc;
        (void)out_is_broken(); // flushes; following detects a closed pipe
    }
    return consume(&t, name, all ? "1970-01-01T00:00:00Z" : timed ? from : "now", true);
}

// A new consumer group that gets messages from now on.
static int begin_group(struct cli *cli, const char *name)
{
    struct queen_error err;
    struct queen_batch *batch =
        queen_pop(cli->client,
                  &(struct queen_pop){
                      .queue = cli->args.rest[0], .group = name, .subscription_from = "now"},
                  &err);
    int rc = batch ? CLI_OK : ask_failed(cli, &err);

    if (batch && batch->n > 0) // a message arrived at once: it is delivered again later
        rc = own_group_settle(cli, batch, QUEEN_ACK_RETRY);
    queen_batch_free(batch);
    return rc;
}

// ---- the last messages ----

static void tail_put_field(struct buf *b, const char *name, span message)
{
    span raw = pick(message, name);

    buf_printf(b, "\"%s\":", name);
    buf_put(b, raw.ptr ? raw : SPAN("null"));
    buf_putc(b, ',');
}

// Converts a message of the read endpoints to the format of a pop.
static void show_read(struct tailing *t, span message)
{
    static const char *const fields[] = {"id",        "transactionId", "queue",
                                         "partition", "partitionId",   "createdAt",
                                         "traceId",   "producerSub"};
    struct buf b = {0};

    buf_putc(&b, '{');
    for (unsigned i = 0; i < countof(fields); i++)
        tail_put_field(&b, fields[i], message);
    buf_put_lit(&b, "\"data\":");
    buf_put(&b, pick(message, "payload"));
    buf_putc(&b, '}');
    message_show(t->cli, buf_span(&b), t->data_only);
    buf_free(&b);
}

static int show_last(struct tailing *t, uint64_t n)
{
    struct cli *cli = t->cli;
    struct buf path = {0};
    span body, item;

    if (n == 0)
        return CLI_OK;
    path_start(&path, "/api/v1/status/queues");
    path_part(&path, cli->args.rest[0]);
    buf_printf(&path, "/messages?limit=%llu", (unsigned long long)n);
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK) {
        t->shown = arena_new_array(&cli->arena, span, n);
        span *found = arena_new_array(&cli->arena, span, n);
        while (t->n_shown < n && pick_next(&body, &item))
            found[t->n_shown++] = item;
        for (size_t i = t->n_shown; i-- > 0 && rc == CLI_OK;) { // the newest comes first
            span message;
            t->shown[i] = pick_text(found[i], "id", &cli->arena);
            path_start(&path, "/api/v1/messages");
            path_part(&path, pick_cstr(found[i], "partitionId", &cli->arena));
            path_part(&path, pick_cstr(found[i], "transactionId", &cli->arena));
            rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &message);
            if (rc == CLI_OK)
                show_read(t, message);
        }
    }
    buf_free(&path);
    return rc;
}

// ---- through a consumer group ----

static int consume(struct tailing *t, const char *group, const char *from, bool forget)
{
    struct cli *cli = t->cli;
    struct queen_pop pop = {
        .queue = cli->args.rest[0],
        .partition = args_text(&cli->args, "partition"),
        .group = group,
        .batch = BATCH,
        .partitions = BATCH,
        // A group named by the user is acknowledged after the message is written.
        .auto_ack = forget,
        .subscription_from = from,
    };
    int rc = args_has(&cli->args, "follow") ? follow(t, &pop) : drain(t, &pop);

    if (forget)
        own_group_forget(cli, group);
    return rc;
}

static bool was_shown(const struct tailing *t, const char *id)
{
    for (size_t i = 0; i < t->n_shown; i++)
        if (span_eq(t->shown[i], span_of(id)))
            return true;
    return false;
}

// Writing blocks while the reader of the pipe is busy, and no pop happens meanwhile. false: the
// reader has closed the pipe.
static bool show_batch(struct tailing *t, const struct queen_batch *batch)
{
    struct cli mine = *t->cli; // with an arena for this batch: a tail may run for weeks
    struct buf b = {0};

    arena_init(&mine.arena);
    for (size_t i = 0; i < batch->n; i++)
        if (!was_shown(t, batch->items[i].id)) {
            buf_reset(&b);
            message_write(&b, &batch->items[i]);
            message_show(&mine, buf_span(&b), t->data_only);
        }
    buf_free(&b);
    arena_deinit(&mine.arena);
    return !out_is_broken();
}

// Shows all messages that are available now.
static int drain(struct tailing *t, struct queen_pop *pop)
{
    uint64_t left = args_count(&t->cli->args, "limit", UINT64_MAX);
    bool more = true;
    int rc = CLI_OK;

    stop_watch(NULL, NULL);
    while (more && left > 0 && !stop_was_asked()) {
        struct queen_error err;
        pop->batch = left < BATCH ? (unsigned)left : BATCH;
        struct queen_batch *batch = queen_pop(t->cli->client, pop, &err);
        if (!batch) {
            rc = ask_failed(t->cli, &err);
            break;
        }
        more = batch->n > 0;
        left -= batch->n;
        bool written = show_batch(t, batch);
        if (more && !pop->auto_ack)
            rc = own_group_settle(t->cli, batch,
                                  written ? QUEEN_ACK_COMPLETED : QUEEN_ACK_RETRY);
        queen_batch_free(batch);
        more = more && written && rc == CLI_OK;
    }
    stop_unwatch();
    return rc;
}

// ---- new messages ----

static int follow(struct tailing *t, const struct queen_pop *pop)
{
    struct cli *cli = t->cli;
    struct queen_error err;
    struct queen_consumer_options o = {
        .pop = *pop,
        .limit = args_count(&cli->args, "limit", 0),
        .handler = on_messages,
        .on_error = on_error,
        .ctx = t,
    };

    pthread_mutex_lock(&t->lock); // a handler may run before we have the pointer
    t->consumer = queen_consumer_new(cli->client, &o, &err);
    pthread_mutex_unlock(&t->lock);
    if (!t->consumer)
        return ask_failed(cli, &err);
    stop_watch(on_cmd_tail_stop, t);
    reader_watch(on_cmd_tail_stop, t); // as in: queen tail -f q | head -1
    int rc = queen_consumer_wait(t->consumer, &err) != 0 ? ask_failed(cli, &err) : CLI_OK;
    reader_unwatch();
    stop_unwatch();
    queen_consumer_free(t->consumer);
    return rc;
}

static enum queen_verdict on_messages(struct queen_job *job, void *ctx)
{
    struct tailing *t = ctx;
    bool written = show_batch(t, queen_job_batch(job));

    pthread_mutex_lock(&t->lock);
    t->silent = false;
    if (!written)
        queen_consumer_stop(t->consumer);
    pthread_mutex_unlock(&t->lock);
    return written ? QUEEN_DONE : QUEEN_RETRY;
}

static void on_error(const struct queen_error *err, void *ctx)
{
    struct tailing *t = ctx;

    pthread_mutex_lock(&t->lock);
    bool say = err->retryable && !t->silent && !t->cli->out.quiet;
    t->silent = true;
    pthread_mutex_unlock(&t->lock);
    if (say)
        ask_complain(t->cli, 0, "%s; trying on", err->text);
}

static void on_cmd_tail_stop(void *ctx)
{
    struct tailing *t = ctx;

    queen_consumer_stop(t->consumer);
}

static const struct cli_option options[] = {
    {"follow", 'f', CLI_FLAG, NULL, "continue with new messages until interrupted"},
    {"last", 'n', CLI_COUNT, "N", "start with the last N messages (10)"},
    {"all", 0, CLI_FLAG, NULL, "start with the oldest message"},
    {"from", 0, CLI_TIME, "TIME", "start after this time: ISO 8601, now, -2h"},
    {"group", 'g', CLI_TEXT, "NAME",
     "consume as this group; messages are acknowledged once written"},
    {"partition", 'p', CLI_TEXT, "NAME", "with --all, --from, --group: this partition only"},
    {"limit", 0, CLI_COUNT, "N", "with --follow, --all, --from, --group: stop after N"},
    {"data", 'd', CLI_FLAG, NULL, "payloads alone"},
};

const struct cli_command cli_tail = {
    .name = "tail",
    .args = "QUEUE",
    .summary = "watch the messages of a queue",
    .about = "Does not consume messages unless --group is given. With --group each message is "
             "acknowledged once it is written, and unwritten messages are released. A slow "
             "reader slows it down. --follow without --group creates a temporary consumer "
             "group and removes it at the end (requires admin access; else it prints a note).",
    .examples = "queen tail -f orders|the last ten messages and all new ones\n"
                "queen tail orders --all --data > orders.ndjson|all stored messages\n"
                "queen tail -f orders -g audit --data | jq . | queen push audit|copy as they "
                "come",
    CLI_OPTIONS(options),
    .run = tail,
};
