// `queen queue` and `queen partition`: lists and configures queues.
#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "base/known.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/confirm.h"
#include "cli/pick.h"
#include "cli/table.h"
#include "json/scan.h"
#include "json/write.h"

static int cmd_queue_list(struct cli *cli)
{
    static const struct column columns[] = {
        {"QUEUE", "name", CELL_TEXT},
        {"PARTITIONS", "partitionCount", CELL_COUNT},
        {"PENDING", "pending", CELL_COUNT},
        {"PROCESSING", "processing", CELL_COUNT},
        {"COMPLETED", "completed", CELL_COUNT},
        {"DEAD", "dlq", CELL_COUNT},
        {"LAG", "lagSeconds", CELL_SECONDS},
        {"NAMESPACE", "namespace", CELL_LONG},
        {"TASK", "task", CELL_LONG},
    };
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/resources/queues");
    path_param(&path, "namespace", args_text(&cli->args, "namespace"));
    path_param(&path, "task", args_text(&cli->args, "task"));
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "queues"), columns, countof(columns),
                   "no queues yet; queen push QUEUE PAYLOAD creates one");
    buf_free(&path);
    return rc;
}

static const struct column partition_columns[] = {
    {"PARTITION", "name", CELL_LONG},
    {"PENDING", "pending", CELL_COUNT},
    {"PROCESSING", "processing", CELL_COUNT},
    {"COMPLETED", "completed", CELL_COUNT},
    {"DEAD", "dlq", CELL_COUNT},
    {"LAST MESSAGE", "newestMessage", CELL_TIME},
};

static int queue_read(struct cli *cli, span *body)
{
    struct buf path = {0};

    path_start(&path, "/api/v1/status/queues");
    path_part(&path, cli->args.rest[0]);
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, body);
    buf_free(&path);
    return rc;
}

static int cmd_queue_show(struct cli *cli)
{
    static const struct column columns[] = {
        {"queue", "queue.name", CELL_TEXT},
        {"id", "queue.id", CELL_TEXT},
        {"created", "queue.createdAt", CELL_TIME},
        {"namespace", "queue.namespace", CELL_TEXT},
        {"task", "queue.task", CELL_TEXT},
        {"priority", "queue.priority", CELL_COUNT},
        {"options", "queue.options", CELL_TEXT},
        {"messages", "totals.total", CELL_COUNT},
        {"pending", "totals.pending", CELL_COUNT},
        {"processing", "totals.processing", CELL_COUNT},
        {"completed", "totals.completed", CELL_COUNT},
        {"dead letters", "totals.deadLetter", CELL_COUNT},
    };
    span body;
    int rc = queue_read(cli, &body);

    if (rc != CLI_OK)
        return rc;
    record_show(cli, body, columns, countof(columns));
    if (!cli->out.json) {
        putchar('\n');
        table_show(cli, pick(body, "partitions"), partition_columns, countof(partition_columns),
                   "no partitions");
    }
    return rc;
}

// The server ignores others, because clients send such.  tests/e2e/broker/test_unknown_names.py
// compares this list with that of the server.
static const char *const option_names[] = {"leaseTime",
                                           "retryLimit",
                                           "retryDelay",
                                           "maxSize",
                                           "ttl",
                                           "deadLetterQueue",
                                           "priority",
                                           "dlqAfterMaxRetries",
                                           "delayedProcessing",
                                           "windowBuffer",
                                           "retentionSeconds",
                                           "completedRetentionSeconds",
                                           "retentionEnabled",
                                           "encryptionEnabled",
                                           "allowUnencrypted",
                                           "maxWaitTimeSeconds",
                                           "retryPolicy",
                                           "partitions",
                                           "maxDeliveries",
                                           "ordering",
                                           "settlement",
                                           "maxInFlight",
                                           "rateLimit",
                                           "rateBurst",
                                           "keyMaxInFlight",
                                           "keyRateLimit",
                                           "keyRateBurst",
                                           NULL};

// Converts KEY=VALUE to members of a JSON object; a value that is not JSON becomes a string.
static int put_options(struct cli *cli, struct buf *b, char **pairs, size_t n)
{
    const struct known_names known = {.texts = option_names};
    struct fault f;

    for (size_t i = 0; i < n; i++) {
        const char *equals = strchr(pairs[i], '=');
        if (!equals || equals == pairs[i])
            return ask_complain(cli, CLI_USAGE, "\"%s\" must have the form OPTION=VALUE",
                                pairs[i]);
        span name = {pairs[i], (size_t)(equals - pairs[i])};
        if (known_check(name, &known, KNOWN_ONLY, "option", &f) != 0)
            return ask_complain(cli, CLI_USAGE, "%s", f.text);
        if (i > 0)
            buf_putc(b, ',');
        js_put_text(b, name);
        buf_putc(b, ':');
        struct js j = js_read(span_of(equals + 1));
        span value = js_skip(&j);
        if (js_finish(&j) == 0)
            buf_put(b, value);
        else
            js_put_text(b, span_of(equals + 1));
    }
    return CLI_OK;
}

// Converts the options of the command and KEY=VALUE to the body of a configure request.
static int put_configuration(struct cli *cli, struct buf *b)
{
    buf_putc(b, '{');
    ask_put_text(b, "queue", cli->args.rest[0]);
    ask_put_text(b, "namespace", args_text(&cli->args, "namespace"));
    ask_put_text(b, "task", args_text(&cli->args, "task"));
    buf_put_lit(b, ",\"options\":{");
    if (args_has(&cli->args, "work-queue"))
        buf_put_lit(b, "\"ordering\":\"none\"");
    if (args_has(&cli->args, "work-queue") && cli->args.n_rest > 1)
        buf_putc(b, ',');
    int rc = put_options(cli, b, cli->args.rest + 1, cli->args.n_rest - 1);
    buf_put_lit(b, "}}");
    return rc;
}

// The answer of a configure request contains options that do not act, as the contract has it.
static int show_options(struct cli *cli, span answer)
{
    static const struct column columns[] = {{"queue", "queue.name", CELL_TEXT},
                                            {"namespace", "queue.namespace", CELL_TEXT},
                                            {"task", "queue.task", CELL_TEXT},
                                            {"options", "queue.options", CELL_TEXT}};
    span body;
    struct buf b = {0};
    int rc = queue_read(cli, &body);

    if (rc == CLI_OK && !cli->out.json) {
        record_show(cli, body, columns, countof(columns));
    } else if (rc == CLI_OK) {
        static const char *const kept[] = {"configured", "queueId",   "partitionId",
                                           "queue",      "namespace", "task"};
        for (unsigned i = 0; i < countof(kept); i++) {
            buf_printf(&b, "%s\"%s\":", i == 0 ? "{" : ",", kept[i]);
            buf_put(&b, pick(answer, kept[i]));
        }
        buf_put_lit(&b, ",\"options\":");
        buf_put(&b, pick(body, "queue.options"));
        buf_putc(&b, '}');
        out_line(buf_span(&b));
    }
    buf_free(&b);
    return rc;
}

static int configure(struct cli *cli)
{
    struct buf b = {0};
    span body;

    int rc = put_configuration(cli, &b);
    if (rc == CLI_OK)
        rc = ask(cli, "POST", SPAN("/api/v1/configure"), buf_span(&b), &body);
    buf_free(&b);
    if (rc == CLI_OK)
        rc = show_options(cli, body);
    return rc;
}

static int create(struct cli *cli)
{
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/resources/partitions");
    path_param(&path, "queue", cli->args.rest[0]);
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    buf_free(&path);
    if (rc == CLI_OK && pick(body, "partitions").len > 2) // not []
        rc = ask_complain(cli, CLI_USAGE,
                          "the queue \"%s\" exists; queen queue configure changes its options",
                          cli->args.rest[0]);
    return rc == CLI_OK ? configure(cli) : rc;
}

static int remove_queues(struct cli *cli)
{
    struct buf path = {0};
    int worst = CLI_OK;

    for (size_t i = 0; i < cli->args.n_rest; i++) {
        const char *name = cli->args.rest[i];
        span body;
        int rc = confirm(cli, "remove the queue %s with all its messages and groups", name);
        if (rc == CLI_OK) {
            path_start(&path, "/api/v1/resources/queues");
            path_part(&path, name);
            rc = ask(cli, "DELETE", buf_span(&path), SPAN_NONE, &body);
        }
        if (rc == CLI_OK && !pick_bool(body, "existed"))
            rc = ask_complain(cli, CLI_NOTHING,
                              "there is no queue \"%s\"; queen queue ls "
                              "shows them",
                              name);
        else if (rc == CLI_OK)
            out_note(&cli->out, "%s was removed", name);
        worst = rc != CLI_OK ? rc : worst;
    }
    buf_free(&path);
    return worst;
}

static int purge(struct cli *cli)
{
    const char *queue = cli->args.rest[0], *partition = args_text(&cli->args, "partition");
    struct buf path = {0};
    int rc = confirm(cli, "remove all messages of %s%s%s", queue, partition ? "/" : "",
                     partition ? partition : "");

    if (rc == CLI_OK) {
        span body;
        path_start(&path, "/api/v1/queues");
        path_part(&path, queue);
        buf_put_lit(&path, "/clear");
        path_param(&path, "partition", partition);
        rc = ask_patiently(cli, "DELETE", buf_span(&path), SPAN_NONE,
                           (unsigned)args_ms(&cli->args, "timeout", 300000), &body);
        if (rc == CLI_OK && cli->out.json)
            out_line(body);
        else if (rc == CLI_OK)
            out_note(&cli->out, "%s%s%s is empty", queue, partition ? "/" : "",
                     partition ? partition : "");
    }
    buf_free(&path);
    return rc;
}

static int list_partitions(struct cli *cli)
{
    static const struct column columns[] = {
        {"QUEUE", "queue", CELL_TEXT},
        {"PARTITION", "name", CELL_LONG},
        {"MESSAGES", "messages.total", CELL_COUNT},
        {"PENDING", "messages.pending", CELL_COUNT},
        {"PROCESSING", "messages.processing", CELL_COUNT},
        {"ID", "id", CELL_TEXT},
    };
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/resources/partitions");
    path_param(&path, "queue", cli->args.n_rest > 0 ? cli->args.rest[0] : NULL);
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "partitions"), columns, countof(columns), "no partitions");
    buf_free(&path);
    return rc;
}

static const struct cli_option labels[] = {
    {"namespace", 0, CLI_TEXT, "NAME", "of this namespace"},
    {"task", 0, CLI_TEXT, "NAME", "of this task"},
};
static const struct cli_option configure_options[] = {
    {"namespace", 0, CLI_TEXT, "NAME", "of this namespace"},
    {"task", 0, CLI_TEXT, "NAME", "of this task"},
    {"work-queue", 0, CLI_FLAG, NULL,
     "consumers share partitions and settle each message on its own"},
};
static const struct cli_option remove_options[] = {CONFIRM_OPTION};
static const struct cli_option purge_options[] = {
    {"partition", 'p', CLI_TEXT, "NAME", "of this partition only"},
    CONFIRM_OPTION,
};

static const struct cli_command queue_ls = {
    .name = "ls",
    .args = "",
    .summary = "list queues with their pending messages",
    .examples = "queen queue ls|all of them\n"
                "queen queue ls --json | jq -r 'select(.dlq > 0).name'|those with dead letters",
    CLI_OPTIONS(labels),
    .run = cmd_queue_list,
};
static const struct cli_command queue_show = {
    .name = "show",
    .args = "QUEUE",
    .summary = "show the options, counts and partitions of a queue",
    .examples = "queen queue show orders|as a table\n"
                "queen queue show orders --json | jq .queue.options|only its options",
    .run = cmd_queue_show,
};
static const struct cli_command queue_configure = {
    .name = "configure",
    .args = "QUEUE [OPTION=VALUE]...",
    .summary = "create a queue, or replace its whole configuration",
    .about = "Options that are not given get their defaults. The options are those of POST "
             "/api/v1/configure: leaseTime, retryLimit, retryDelay, maxSize, ttl, "
             "priority, delayedProcessing, windowBuffer, retentionSeconds, "
             "completedRetentionSeconds, encryptionEnabled, maxWaitTimeSeconds, settlement, of "
             "work queues "
             "maxInFlight, rateLimit, rateBurst, keyMaxInFlight, keyRateLimit, "
             "keyRateBurst, ... A value may be JSON.",
    .examples = "queen queue configure orders leaseTime=60 retryLimit=5|leases of a minute\n"
                "queen queue configure orders retentionSeconds=86400 --namespace shop|kept for "
                "a day",
    CLI_OPTIONS(configure_options),
    .run = configure,
};
static const struct cli_command queue_create = {
    .name = "create",
    .args = "QUEUE [OPTION=VALUE]...",
    .summary = "create a queue; fail if it exists",
    .about = "The options are those of queen queue configure.",
    .examples = "queen queue create jobs --work-queue|workers share all jobs\n"
                "queen queue create calls --work-queue maxInFlight=8 rateLimit=50|at most 8 at "
                "once, and 50 per second\n"
                "queen queue create orders leaseTime=60|an ordered queue",
    CLI_OPTIONS(configure_options),
    .run = create,
};
static const struct cli_command queue_rm = {
    .name = "rm",
    .args = "QUEUE...",
    .summary = "remove queues with everything in them",
    .examples = "queen queue rm old --yes|without a prompt",
    CLI_OPTIONS(remove_options),
    .run = remove_queues,
};
static const struct cli_command queue_purge = {
    .name = "purge",
    .args = "QUEUE",
    .summary = "remove all messages; the queue and its groups stay",
    .examples = "queen queue purge orders --partition acct-7|one partition only",
    CLI_OPTIONS(purge_options),
    .run = purge,
};
static const struct cli_command *const queue_subs[] = {
    &queue_ls, &queue_show, &queue_create, &queue_configure, &queue_rm, &queue_purge, NULL};
const struct cli_command cli_queue = {
    .name = "queue",
    .summary = "list, show, configure, remove and empty queues",
    .subs = queue_subs,
};

static const struct cli_command partition_ls = {
    .name = "ls",
    .args = "[QUEUE]",
    .summary = "list partitions, of one queue or of all",
    .examples = "queen partition ls orders|with the pending messages of each",
    .run = list_partitions,
};
static const struct cli_command *const partition_subs[] = {&partition_ls, NULL};
const struct cli_command cli_partition = {
    .name = "partition",
    .summary = "list partitions",
    .subs = partition_subs,
};
