// `queen schedule`: scheduled messages.
#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/confirm.h"
#include "cli/pick.h"
#include "cli/table.h"
#include "json/scan.h"

static bool path_filters(struct cli *cli, struct buf *path, const char *queue)
{
    const struct args *a = &cli->args;
    char when[ARGS_TIME_SIZE];
    size_t before = path->len;

    path_param(path, "queue", queue);
    path_param(path, "partition", args_text(a, "partition"));
    if (args_time(a, "from", when))
        path_param(path, "from", when);
    if (args_time(a, "to", when))
        path_param(path, "to", when);
    path_param(path, "correlationId", args_text(a, "correlation-id"));
    path_param(path, "transactionIdPrefix", args_text(a, "prefix"));
    path_param(path, "kind", args_text(a, "kind"));
    return path->len > before;
}

static int check_kind(struct cli *cli)
{
    const char *kind = args_text(&cli->args, "kind");

    if (!kind || strcmp(kind, "push") == 0 || strcmp(kind, "retry") == 0)
        return CLI_OK;
    return ask_complain(cli, CLI_USAGE, "--kind must be push or retry, not \"%s\"", kind);
}

static int cmd_schedule_list(struct cli *cli)
{
    static const struct column columns[] = {
        {"DUE", "scheduledAt", CELL_TIME},
        {"QUEUE", "queue", CELL_TEXT},
        {"PARTITION", "partition", CELL_TEXT},
        {"KIND", "kind", CELL_TEXT},
        {"TRANSACTION ID", "transactionId", CELL_LONG},
        {"ATTEMPT", "attempt", CELL_COUNT},
        {"ID", "id", CELL_TEXT},
    };
    const char *queue = cli->args.n_rest > 0 ? cli->args.rest[0] : NULL;
    uint64_t wanted = args_count(&cli->args, "limit", 100);
    const char *cursor = NULL;
    struct buf path = {0};
    int rc = check_kind(cli);

    if (rc != CLI_OK)
        return rc;
    struct table *t = table_new(cli, columns, countof(columns));
    do { // pages of at most 1000
        uint64_t left = wanted - table_rows(t);
        span body, rest, item;
        path_start(&path, "/api/v1/scheduled");
        path_filters(cli, &path, queue);
        path_param(&path, "cursor", cursor);
        buf_printf(&path, "%climit=%llu", memchr(path.ptr, '?', path.len) ? '&' : '?',
                   (unsigned long long)(left < 1000 ? left : 1000));
        rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
        rest = rc == CLI_OK ? pick(body, "scheduled") : SPAN_NONE;
        while (pick_next(&rest, &item))
            table_add(t, item);
        cursor = rc == CLI_OK ? pick_cstr(body, "next", &cli->arena) : NULL;
    } while (cursor && table_rows(t) < wanted);
    bool none = rc == CLI_OK && table_rows(t) == 0;
    table_free(t);
    if (none)
        out_note(&cli->out, "nothing waits");
    else if (cursor && !cli->out.json)
        out_note(&cli->out, "more entries exist; raise --limit");
    buf_free(&path);
    return rc;
}

// ---- add ----

static int cmd_schedule_add(struct cli *cli)
{
    static const struct column columns[] = {{"due", "scheduledAt", CELL_TIME},
                                            {"id", "scheduleId", CELL_TEXT},
                                            {"transaction id", "transactionId", CELL_TEXT},
                                            {"status", "status", CELL_TEXT}};
    const struct args *a = &cli->args;
    char when[ARGS_TIME_SIZE];
    bool at = args_time(a, "at", when), in = args_has(a, "in");
    struct js j = js_read(span_of(a->rest[1]));
    struct buf b = {0};
    span payload = js_skip(&j), body, results, item;

    if (at + in != 1)
        return ask_complain(cli, CLI_USAGE, "say when: --at TIME or --in 10m");
    if (js_finish(&j) != 0)
        return ask_complain(cli, CLI_USAGE, "\"%s\" is not JSON", a->rest[1]);
    buf_put_lit(&b, "{\"items\":[{\"payload\":");
    buf_put(&b, payload);
    ask_put_text(&b, "queue", a->rest[0]);
    ask_put_text(&b, "partition", args_text(a, "partition"));
    ask_put_text(&b, "transactionId", args_text(a, "transaction-id"));
    ask_put_text(&b, "correlationId", args_text(a, "correlation-id"));
    if (at)
        ask_put_text(&b, "scheduledAt", when);
    else
        buf_printf(&b, ",\"delaySeconds\":%.3f", (double)args_ms(a, "in", 0) / 1000);
    buf_put_lit(&b, "}]}");
    int rc = ask(cli, "POST", SPAN("/api/v1/push"), buf_span(&b), &body);
    buf_free(&b);
    if (rc != CLI_OK)
        return rc;
    results = body;
    if (!pick_next(&results, &item))
        return ask_complain(cli, CLI_FAILED, "the server's answer has no result");
    if (span_eq(pick_text(item, "status", &cli->arena), SPAN("failed")))
        return ask_complain(cli, CLI_REFUSED, SPAN_FMT,
                            SPAN_ARG(pick_text(item, "error", &cli->arena)));
    record_show(cli, item, columns, countof(columns));
    return CLI_OK;
}

// ---- move ----

static int move_one(struct cli *cli, const char *id, span when)
{
    static const struct column columns[] = {{"due", "scheduledAt", CELL_TIME},
                                            {"queue", "queue", CELL_TEXT},
                                            {"kind", "kind", CELL_TEXT},
                                            {"id", "id", CELL_TEXT}};
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/scheduled");
    path_part(&path, id);
    int rc = ask(cli, "PATCH", buf_span(&path), when, &body);
    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    buf_free(&path);
    return rc;
}

static int cmd_schedule_move(struct cli *cli)
{
    const struct args *a = &cli->args;
    char when[ARGS_TIME_SIZE];
    bool at = args_time(a, "at", when), in = args_has(a, "in");
    struct buf b = {0};
    int rc = CLI_OK;

    if (at + in != 1)
        return ask_complain(cli, CLI_USAGE, "say when: --at TIME or --in 10m");
    buf_putc(&b, '{');
    if (at)
        ask_put_text(&b, "scheduledAt", when);
    else
        buf_printf(&b, "\"delaySeconds\":%.3f", (double)args_ms(a, "in", 0) / 1000);
    buf_putc(&b, '}');
    for (size_t i = 0; i < a->n_rest; i++) {
        int one = move_one(cli, a->rest[i], buf_span(&b));
        rc = one != CLI_OK ? one : rc;
    }
    buf_free(&b);
    return rc;
}

// ---- cancel ----

static int cancel_one(struct cli *cli, const char *id, uint64_t *n)
{
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/scheduled");
    path_part(&path, id);
    int rc = ask(cli, "DELETE", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        *n += (uint64_t)pick_int(body, "cancelled");
    buf_free(&path);
    return rc;
}

// With IDs a filter would not be applied.
static bool has_filter(struct cli *cli)
{
    struct buf path = {0};

    path_start(&path, "/");
    bool filtered = path_filters(cli, &path, args_text(&cli->args, "queue"));
    buf_free(&path);
    return filtered || args_has(&cli->args, "all");
}

static int cancel_filtered(struct cli *cli, uint64_t *n)
{
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/scheduled");
    bool filtered = path_filters(cli, &path, args_text(&cli->args, "queue"));
    int rc = check_kind(cli);
    if (rc == CLI_OK && !filtered && !args_has(&cli->args, "all"))
        rc = ask_complain(cli, CLI_USAGE, "specify IDs, a filter like --queue, or --all");
    if (rc == CLI_OK)
        rc = confirm(cli, filtered ? "cancel all scheduled messages that match"
                                   : "cancel all scheduled messages");
    if (!filtered)
        path_param(&path, "all", "true");
    if (rc == CLI_OK)
        rc = ask_patiently(cli, "DELETE", buf_span(&path), SPAN_NONE,
                           (unsigned)args_ms(&cli->args, "timeout", 300000), &body);
    if (rc == CLI_OK)
        *n = (uint64_t)pick_int(body, "cancelled");
    buf_free(&path);
    return rc;
}

static int cancel(struct cli *cli)
{
    uint64_t n = 0;
    int rc = CLI_OK;

    if (cli->args.n_rest == 0)
        rc = cancel_filtered(cli, &n);
    else if (has_filter(cli))
        return ask_complain(cli, CLI_USAGE, "IDs and filters must not be combined");
    for (size_t i = 0; i < cli->args.n_rest; i++) {
        int one = cancel_one(cli, cli->args.rest[i], &n);
        rc = one != CLI_OK ? one : rc;
    }
    if (rc != CLI_OK && n == 0)
        return rc;
    if (cli->out.json)
        printf("{\"cancelled\":%llu}\n", (unsigned long long)n);
    else
        out_note(&cli->out, "%llu cancelled", (unsigned long long)n);
    return rc;
}

#define FILTERS                                                                     \
    {"partition", 'p', CLI_TEXT, "NAME", "of this partition of the queue"},         \
        {"from", 0, CLI_TIME, "TIME", "due at this time or later; also now, +1h"},  \
        {"to", 0, CLI_TIME, "TIME", "due before this time"},                        \
        {"correlation-id", 0, CLI_TEXT, "ID", "of this correlation"},               \
        {"kind", 0, CLI_TEXT, "KIND", "push, or retry: of failed messages (both)"}, \
    {                                                                               \
        "prefix", 0, CLI_TEXT, "TEXT", "whose transaction id starts with this"      \
    }

static const struct cli_option list_options[] = {
    FILTERS,
    {"limit", 'n', CLI_COUNT, "N", "maximum number of entries (100)"},
};
static const struct cli_option add_options[] = {
    {"at", 0, CLI_TIME, "TIME", "deliver at this time: ISO 8601 with a zone, or +2h"},
    {"in", 0, CLI_DURATION, "TIME", "deliver after this delay: 30s, 10m, 2h, 1d"},
    {"partition", 'p', CLI_TEXT, "NAME", "into this partition (Default)"},
    {"transaction-id", 0, CLI_TEXT, "ID", "a message with this id is stored only once"},
    {"correlation-id", 0, CLI_TEXT, "ID", "for looking up the timeline"},
};
static const struct cli_option move_options[] = {
    {"at", 0, CLI_TIME, "TIME", "deliver at this time: ISO 8601 with a zone, or +2h"},
    {"in", 0, CLI_DURATION, "TIME", "deliver after this delay from now: 0s, 10m, 2h"},
};
static const struct cli_option cancel_options[] = {
    {"queue", 0, CLI_TEXT, "NAME", "without IDs: those of this queue"},
    FILTERS,
    {"all", 0, CLI_FLAG, NULL, "all scheduled messages"},
    CONFIRM_OPTION,
};

static const struct cli_command schedule_ls = {
    .name = "ls",
    .args = "[QUEUE]",
    .summary = "list scheduled messages, the next due first",
    .examples = "queen schedule ls reminders --to +1h|messages due within the hour\n"
                "queen schedule ls orders --kind retry|failed messages and their next attempt",
    CLI_OPTIONS(list_options),
    .run = cmd_schedule_list,
};
static const struct cli_command schedule_add = {
    .name = "add",
    .args = "QUEUE PAYLOAD",
    .summary = "push a message that is delivered later",
    .examples = "queen schedule add reminders '{\"call\": 7}' --in 10m|in ten minutes\n"
                "queen schedule add reminders '{}' --at 2030-01-31T08:00:00+01:00|years ahead",
    CLI_OPTIONS(add_options),
    .run = cmd_schedule_add,
};
static const struct cli_command schedule_move = {
    .name = "move",
    .args = "ID...",
    .summary = "give scheduled messages or retries another time",
    .examples =
        "queen schedule move 01a1e28e-42db-7e7c-8000-000000000001 --in 2h|in two hours\n"
        "queen schedule ls orders --kind retry --json | jq -r .id | xargs queen "
        "schedule move --in 0s|retry now",
    CLI_OPTIONS(move_options),
    .run = cmd_schedule_move,
};
static const struct cli_command schedule_cancel = {
    .name = "cancel",
    .args = "[ID]...",
    .summary = "cancel scheduled messages",
    .examples = "queen schedule cancel 01a1e28e-42db-7e7c-8000-000000000001|one of them\n"
                "queen schedule cancel --queue reminders --prefix campaign-7- --yes|many at "
                "once",
    CLI_OPTIONS(cancel_options),
    .run = cancel,
};
static const struct cli_command *const subs[] = {&schedule_ls, &schedule_add, &schedule_move,
                                                 &schedule_cancel, NULL};
const struct cli_command cli_schedule = {
    .name = "schedule",
    .summary = "list, add, move and cancel scheduled messages",
    .subs = subs,
};
