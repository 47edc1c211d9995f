// `queen timeline` and `queen owners`: the history of a message, and the owners of partitions.
#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"

enum { PAGE = 1000 }; // messages of one request

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

// Asks for a page of ID as one kind of id. Finding nothing is not an error: *body is SPAN_NONE.
static int look_up(struct cli *cli, const char *kind, uint64_t offset, uint64_t limit,
                   span *body)
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
    buf_printf(&path, "&limit=%llu&offset=%llu", (unsigned long long)limit,
               (unsigned long long)offset);
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

// The kinds of id in the order of their meaning for people. The first page.
static int find_timeline(struct cli *cli, uint64_t limit, const char **kind, span *body)
{
    const char *id = cli->args.rest[0];
    bool message = args_has(&cli->args, "message"),
         transaction = args_has(&cli->args, "transaction");
    bool any = !message && !transaction;
    int rc = CLI_OK;

    *body = SPAN_NONE;
    if (any)
        rc = look_up(cli, *kind = "correlationId", 0, limit, body);
    if (rc == CLI_OK && !body->ptr && (message || (any && is_uuid(id))))
        rc = look_up(cli, *kind = "messageId", 0, limit, body);
    if (rc == CLI_OK && !body->ptr && (transaction || any))
        rc = look_up(cli, *kind = "transactionId", 0, limit, body);
    if (rc != CLI_OK || body->ptr)
        return rc;
    return ask_complain(cli, CLI_NOTHING, "no message with the %s %s",
                        message       ? "message id"
                        : transaction ? "transaction id"
                                      : "correlation id, message id or transaction id",
                        id);
}

static void show_status(struct cli *cli, span body)
{
    span status = pick_text(body, "status", &cli->arena);
    int64_t total = pick_int(body, "total");
    struct buf b = {0};

    printf("%s%s" SPAN_FMT "%s", out_on(&cli->out, OUT_BOLD), status_style(cli, status),
           SPAN_ARG(status), out_off(&cli->out));
    if (total > 1) {
        cell_put_count(&b, total);
        printf("  %s" SPAN_FMT " messages", pick_bool(body, "truncated") ? "more than " : "",
               SPAN_ARG(buf_span(&b)));
    }
    putchar('\n');
    buf_free(&b);
}

// Returns the number of messages.
static uint64_t show_page(struct cli *cli, span body)
{
    span messages = pick(body, "messages"), message;
    uint64_t n = 0;

    if (cli->out.json)
        out_line(body);
    for (; pick_next(&messages, &message); n++)
        if (!cli->out.json)
            show_message(cli, message);
    return n;
}

static void note_rest(struct cli *cli, uint64_t shown, int64_t total)
{
    struct buf part = {0}, all = {0};

    cell_put_count(&part, (int64_t)shown);
    cell_put_count(&all, total);
    out_note(&cli->out, SPAN_FMT " of " SPAN_FMT " messages; --limit shows more",
             SPAN_ARG(buf_span(&part)), SPAN_ARG(buf_span(&all)));
    buf_free(&part);
    buf_free(&all);
}

static int timeline(struct cli *cli)
{
    uint64_t wanted = args_count(&cli->args, "limit", 100), shown = 0, n;
    const char *kind;
    span body;

    if (args_has(&cli->args, "message") && args_has(&cli->args, "transaction"))
        return ask_complain(cli, CLI_USAGE, "--message and --transaction must not be combined");
    if (wanted == 0)
        return ask_complain(cli, CLI_USAGE, "--limit must be at least 1");
    int rc = find_timeline(cli, wanted < PAGE ? wanted : PAGE, &kind, &body);
    if (rc != CLI_OK)
        return rc;
    int64_t total = pick_int(body, "total");
    if (!cli->out.json)
        show_status(cli, body);
    do {
        n = show_page(cli, body);
        shown += n;
        if (n == 0 || shown >= wanted || (int64_t)shown >= total)
            break;
        rc = look_up(cli, kind, shown, wanted - shown < PAGE ? wanted - shown : PAGE, &body);
    } while (rc == CLI_OK && body.ptr);
    if ((int64_t)shown < total && rc == CLI_OK && !cli->out.json)
        note_rest(cli, shown, total);
    return rc;
}

static const struct cli_option timeline_options[] = {
    {"transaction", 't', CLI_FLAG, NULL, "ID is a transaction id, and nothing else"},
    {"message", 'm', CLI_FLAG, NULL, "ID is a message id, and nothing else"},
    {"queue", 0, CLI_TEXT, "NAME", "only messages of this queue"},
    {"partition", 'p', CLI_TEXT, "NAME", "only of this partition"},
    {"group", 'g', CLI_TEXT, "NAME", "only entries of this consumer group"},
    {"limit", 'n', CLI_COUNT, "N", "maximum number of messages of a correlation id (100)"},
};

const struct cli_command cli_timeline = {
    .name = "timeline",
    .args = "ID",
    .summary = "show the history of a message and its next retry",
    .about =
        "ID is a correlation id, a message id or a transaction id; they are tried in "
        "this order. A server with more than 1,000 partitions needs --queue to find a "
        "transaction id, and a queue with more than 1,000 needs --partition. The status in "
        "the first line covers all messages of the id, at most 10,000.",
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
    static const struct column change_columns[] = {
        {"TIME", "at", CELL_TIME},       {"PARTITION", "partition", CELL_TEXT},
        {"FROM", "previous", CELL_LONG}, {"EXPIRED", "expired", CELL_YES},
        {"TO", "owner", CELL_LONG},      {"EPOCH", "epoch", CELL_COUNT},
    };
    char since[ARGS_TIME_SIZE];
    bool changes = args_time(&cli->args, "changes", since);
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/consumer-groups");
    path_part(&path, cli->args.rest[1]);
    buf_put_lit(&path, "/queues");
    path_part(&path, cli->args.rest[0]);
    buf_put_lit(&path, "/owners");
    if (changes) {
        buf_put_lit(&path, "/changes");
        path_param(&path, "from", since);
        path_param(&path, "limit", "1000");
    }
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK && changes)
        table_show(cli, pick(body, "changes"), change_columns, countof(change_columns),
                   "no partition has changed its owner since then");
    else if (rc == CLI_OK)
        table_show(cli, pick(body, "owners"), columns, countof(columns), "no partitions");
    buf_free(&path);
    return rc;
}

static const struct cli_option owners_options[] = {
    {"changes", 0, CLI_TIME, "TIME",
     "changes of owners since then, newest first, at most 1000"},
};

const struct cli_command cli_owners = {
    .name = "owners",
    .args = "QUEUE GROUP",
    .summary = "show the owner of each partition, since when, and its position",
    .about = "For queues with a fixed set of partitions and groups of event processors.",
    .examples = "queen owners orders billing|as a table\n"
                "queen owners orders billing --json | jq -r 'select(.expired).partition'|"
                "partitions without an owner\n"
                "queen owners orders billing --changes -2h|rebalances of the last two hours",
    CLI_OPTIONS(owners_options),
    .run = owners,
};
