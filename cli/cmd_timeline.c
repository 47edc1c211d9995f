// `queen timeline` and `queen owners`: the history of a message, and the owners of partitions.
#include <stdio.h>
#include <string.h>

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
        {"CODE", "errorCode", CELL_TEXT},
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

// Whether the server can be asked for it as the id of a message.
static bool is_uuid(const char *text)
{
    static const char model[] = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";

    if (strlen(text) != sizeof model - 1)
        return false;
    for (size_t i = 0; i < sizeof model - 1; i++)
        if (model[i] == 'x' ? !strchr("0123456789abcdefABCDEF", text[i]) : text[i] != '-')
            return false;
    return true;
}

// Asks for ID as one kind of id. Finding nothing is not an error: *body is SPAN_NONE.
static int look_up(struct cli *cli, const char *kind, span *body)
{
    const struct args *a = &cli->args;
    struct queen_error err;
    struct buf path = {0};
    int rc = CLI_OK;

    *body = SPAN_NONE;
    path_start(&path, "/api/v1/messages/timeline");
    path_param(&path, kind, a->rest[0]);
    path_param(&path, "queue", args_text(a, "queue"));
    path_param(&path, "partition", args_text(a, "partition"));
    path_param(&path, "consumerGroup", args_text(a, "group"));
    struct queen_response *r = queen_request(
        cli->client, &(struct queen_request){.path = arena_cstr(&cli->arena, buf_span(&path))},
        &err);
    if (err.code == QUEEN_OK)
        *body = arena_copy(&cli->arena, (span){r->body, r->body_len});
    else if (err.code != QUEEN_E_NOT_FOUND)
        rc = ask_failed(cli, &err);
    queen_response_free(r);
    buf_free(&path);
    return rc;
}

// The kinds of id in the order of their meaning for people.
static int find_timeline(struct cli *cli, span *body)
{
    const char *id = cli->args.rest[0];
    bool message = args_has(&cli->args, "message"),
         transaction = args_has(&cli->args, "transaction");
    bool any = !message && !transaction;
    int rc = CLI_OK;

    *body = SPAN_NONE;
    if (any)
        rc = look_up(cli, "correlationId", body);
    if (rc == CLI_OK && !body->ptr && (message || (any && is_uuid(id))))
        rc = look_up(cli, "messageId", body);
    if (rc == CLI_OK && !body->ptr && (transaction || any))
        rc = look_up(cli, "transactionId", body);
    if (rc != CLI_OK || body->ptr)
        return rc;
    return ask_complain(cli, CLI_NOTHING, "no message with the %s %s",
                        message       ? "message id"
                        : transaction ? "transaction id"
                                      : "correlation id, message id or transaction id",
                        id);
}

static int timeline(struct cli *cli)
{
    span body;

    if (args_has(&cli->args, "message") && args_has(&cli->args, "transaction"))
        return ask_complain(cli, CLI_USAGE, "--message and --transaction must not be combined");
    int rc = find_timeline(cli, &body);
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
    {"transaction", 't', CLI_FLAG, NULL, "ID is a transaction id, and nothing else"},
    {"message", 'm', CLI_FLAG, NULL, "ID is a message id, and nothing else"},
    {"queue", 0, CLI_TEXT, "NAME", "only messages of this queue"},
    {"partition", 'p', CLI_TEXT, "NAME", "only of this partition"},
    {"group", 'g', CLI_TEXT, "NAME", "only entries of this consumer group"},
};

const struct cli_command cli_timeline = {
    .name = "timeline",
    .args = "ID",
    .summary = "show the history of a message and its next retry",
    .about = "ID is a correlation id, a message id or a transaction id; they are tried in "
             "this order. A server with more than 1,000 partitions needs --queue to find a "
             "transaction id, and a queue with more than 1,000 needs --partition.",
    .examples = "queen timeline campaign-7|all messages of a correlation\n"
                "queen timeline inv-41|a message, by its transaction id\n"
                "queen timeline -t inv-41 --queue orders|the same in a large installation\n"
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
                "queen owners orders billing --json | jq -r 'select(.expired).partition'|"
                "partitions without an owner",
    .run = owners,
};
