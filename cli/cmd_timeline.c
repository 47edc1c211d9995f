// `queen timeline` and `queen owners`: the history of a message, and the owners of partitions.
#include <stdio.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"

// ---- timeline ----

static const char *status_style(struct cli *cli, span status)
{
    enum out_style style = span_eq(status, SPAN("FAILED"))      ? OUT_RED
                           : span_eq(status, SPAN("RETRYING"))  ? OUT_YELLOW
                           : span_eq(status, SPAN("DELIVERED")) ? OUT_GREEN
                                                                : OUT_CYAN;
    return out_on(&cli->out, style);
}

static void show_message(struct cli *cli, span message)
{
    static const struct column events[] = {
        {"TIME", "at", CELL_TIME},
        {"EVENT", "event", CELL_TEXT},
        {"GROUP", "consumerGroup", CELL_TEXT},
        {"ATTEMPT", "attempt", CELL_COUNT},
        {"NEXT ATTEMPT", "nextAttemptAt", CELL_TIME},
        {"WORKER", "worker", CELL_LONG},
        {"ERROR", "error", CELL_LONG},
    };
    static const struct column next = {"", "nextAttemptAt", CELL_TIME};
    span status = pick_text(message, "status", &cli->arena);
    span due = pick_text(message, "nextAttemptAt", &cli->arena);
    struct buf b = {0};

    printf("\n%s" SPAN_FMT "%s  " SPAN_FMT "/" SPAN_FMT "  " SPAN_FMT,
           status_style(cli, status), SPAN_ARG(status), out_off(&cli->out),
           SPAN_ARG(pick_text(message, "queue", &cli->arena)),
           SPAN_ARG(pick_text(message, "partition", &cli->arena)),
           SPAN_ARG(pick_text(message, "transactionId", &cli->arena)));
    printf(", attempt %lld of %lld", (long long)pick_int(message, "attempt"),
           (long long)pick_int(message, "maxAttempts"));
    if (due.ptr) {
        cell_put(&b, message, &next, cli);
        printf(", next at " SPAN_FMT, SPAN_ARG(buf_span(&b)));
    }
    printf("\n");
    buf_free(&b);
    table_show(cli, pick(message, "events"), events, countof(events), NULL);
}

static int timeline(struct cli *cli)
{
    const struct args *a = &cli->args;
    bool by_message = args_has(a, "message"), by_transaction = args_has(a, "transaction");
    struct buf path = {0};
    span body;

    if (by_message && by_transaction)
        return ask_complain(cli, CLI_USAGE, "--message and --transaction must not be combined");
    if (by_transaction && !args_has(a, "queue"))
        return ask_complain(cli, CLI_USAGE, "--transaction requires --queue");
    path_start(&path, "/api/v1/messages/timeline");
    path_param(&path,
               by_message       ? "messageId"
               : by_transaction ? "transactionId"
                                : "correlationId",
               a->rest[0]);
    path_param(&path, "queue", args_text(a, "queue"));
    path_param(&path, "partition", args_text(a, "partition"));
    path_param(&path, "consumerGroup", args_text(a, "group"));
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    buf_free(&path);
    if (rc != CLI_OK)
        return rc;
    if (cli->out.json) {
        out_line(body);
        return CLI_OK;
    }
    span status = pick_text(body, "status", &cli->arena);
    span messages = pick(body, "messages"), message;
    printf("%s%s" SPAN_FMT "%s\n", out_on(&cli->out, OUT_BOLD), status_style(cli, status),
           SPAN_ARG(status), out_off(&cli->out));
    while (pick_next(&messages, &message))
        show_message(cli, message);
    return CLI_OK;
}

static const struct cli_option timeline_options[] = {
    {"transaction", 't', CLI_FLAG, NULL, "ID is a transaction id; requires --queue"},
    {"message", 'm', CLI_FLAG, NULL, "ID is a message id"},
    {"queue", 0, CLI_TEXT, "NAME", "only messages of this queue"},
    {"partition", 'p', CLI_TEXT, "NAME", "only of this partition"},
    {"group", 'g', CLI_TEXT, "NAME", "only entries of this consumer group"},
};

const struct cli_command cli_timeline = {
    .name = "timeline",
    .args = "ID",
    .summary = "show the history of a message and its next retry",
    .about = "ID is the correlation id: as it was pushed, else, once it has failed, its "
             "transaction id.",
    .examples = "queen timeline campaign-7|all messages of a correlation\n"
                "queen timeline -t inv-41 --queue orders|one message\n"
                "queen timeline campaign-7 --json | jq -r .nextAttemptAt|only when",
    CLI_OPTIONS(timeline_options),
    .run = timeline,
};

// ---- owners ----

static int owners(struct cli *cli)
{
    static const struct column columns[] = {
        {"PARTITION", "partition", CELL_TEXT},    {"OWNER", "owner", CELL_LONG},
        {"EPOCH", "epoch", CELL_COUNT},           {"SINCE", "since", CELL_TIME},
        {"EXPIRES", "expiresAt", CELL_TIME},      {"EXPIRED", "expired", CELL_YES},
        {"CHECKPOINT", "checkpoint", CELL_COUNT}, {"LAG", "lag", CELL_COUNT},
    };
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/consumer-groups");
    path_part(&path, cli->args.rest[1]);
    buf_put_lit(&path, "/queues");
    path_part(&path, cli->args.rest[0]);
    buf_put_lit(&path, "/owners");
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "owners"), columns, countof(columns), "no partitions");
    buf_free(&path);
    return rc;
}

const struct cli_command cli_owners = {
    .name = "owners",
    .args = "QUEUE GROUP",
    .summary = "show the owner of each partition, since when, and its position",
    .about = "For queues with a fixed set of partitions and groups of event processors.",
    .examples = "queen owners orders billing|as a table\n"
                "queen owners orders billing --json | jq -r 'select(.expired).partition'|those "
                "nobody has",
    .run = owners,
};
