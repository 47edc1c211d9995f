// `queen cron`: recurring messages.
#include <string.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/confirm.h"
#include "cli/pick.h"
#include "cli/table.h"
#include "json/scan.h"

static const struct column columns[] = {
    {"NAME", "name", CELL_TEXT},          {"QUEUE", "queue", CELL_TEXT},
    {"CRON", "cron", CELL_TEXT},          {"ZONE", "timezone", CELL_TEXT},
    {"NEXT RUN", "nextRunAt", CELL_TIME}, {"LAST RUN", "lastRunAt", CELL_TIME},
    {"RUNS", "runs", CELL_COUNT},         {"PAUSED", "paused", CELL_YES},
    {"MISSED", "missed", CELL_TEXT},      {"PAYLOAD", "payload", CELL_LONG},
};

static int cmd_cron_list(struct cli *cli)
{
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/schedules");
    path_param(&path, "queue", cli->args.n_rest > 0 ? cli->args.rest[0] : NULL);
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "schedules"), columns, countof(columns),
                   "no recurring messages; add one with queen cron add");
    buf_free(&path);
    return rc;
}

static int cmd_cron_add(struct cli *cli)
{
    const struct args *a = &cli->args;
    const char *text = a->n_rest > 3 ? a->rest[3] : "null";
    struct js j = js_read(span_of(text));
    span payload = js_skip(&j), body;
    struct buf b = {0};

    if (js_finish(&j) != 0)
        return ask_complain(cli, CLI_USAGE, "\"%s\" is not JSON", text);
    buf_put_lit(&b, "{\"payload\":");
    buf_put(&b, payload);
    ask_put_text(&b, "name", a->rest[0]);
    ask_put_text(&b, "queue", a->rest[1]);
    ask_put_text(&b, "cron", a->rest[2]);
    ask_put_text(&b, "partition", args_text(a, "partition"));
    ask_put_text(&b, "timezone", args_text(a, "zone"));
    ask_put_text(&b, "missed", args_text(a, "missed"));
    buf_putc(&b, '}');
    int rc = ask(cli, "POST", SPAN("/api/v1/schedules"), buf_span(&b), &body);
    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    buf_free(&b);
    return rc;
}

// POST /api/v1/schedules/NAME/verb
static int do_to_one(struct cli *cli, const char *method, const char *verb, span *body)
{
    struct buf path = {0};

    path_start(&path, "/api/v1/schedules");
    path_part(&path, cli->args.rest[0]);
    if (verb)
        path_part(&path, verb);
    int rc = ask(cli, method, buf_span(&path), SPAN_NONE, body);
    buf_free(&path);
    return rc;
}

static int cmd_cron_show(struct cli *cli)
{
    static const struct column all[] = {
        {"NAME", "name", CELL_TEXT},           {"QUEUE", "queue", CELL_TEXT},
        {"PARTITION", "partition", CELL_TEXT}, {"CRON", "cron", CELL_TEXT},
        {"ZONE", "timezone", CELL_TEXT},       {"NEXT RUNS", "nextRuns", CELL_LONG},
        {"LAST RUN", "lastRunAt", CELL_TIME},  {"LAST MESSAGE", "lastMessageId", CELL_TEXT},
        {"RUNS", "runs", CELL_COUNT},          {"PAUSED", "paused", CELL_YES},
        {"MISSED", "missed", CELL_TEXT},       {"PAYLOAD", "payload", CELL_LONG},
    };
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/schedules");
    path_part(&path, cli->args.rest[0]);
    path_param(&path, "runs", "5");
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        record_show(cli, body, all, countof(all));
    buf_free(&path);
    return rc;
}

// pause and resume have the names of their verbs.
static int change(struct cli *cli)
{
    span body;
    int rc = do_to_one(cli, "POST", cli->command->name, &body);

    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    return rc;
}

static int run_now(struct cli *cli)
{
    static const struct column pushed[] = {{"message id", "messageId", CELL_TEXT},
                                           {"transaction id", "transactionId", CELL_TEXT}};
    span body;
    int rc = do_to_one(cli, "POST", "run", &body);

    if (rc == CLI_OK)
        record_show(cli, body, pushed, countof(pushed));
    return rc;
}

static int cmd_cron_forget(struct cli *cli)
{
    span body;
    int rc = confirm(cli, "remove the recurring message %s", cli->args.rest[0]);

    if (rc == CLI_OK)
        rc = do_to_one(cli, "DELETE", NULL, &body);
    if (rc == CLI_OK && cli->out.json)
        out_line(body);
    else if (rc == CLI_OK)
        out_note(&cli->out, "%s was removed", cli->args.rest[0]);
    return rc;
}

static const struct cli_option add_options[] = {
    {"zone", 'z', CLI_TEXT, "ZONE", "IANA time zone of the expression (UTC)"},
    {"missed", 0, CLI_TEXT, "WHAT",
     "runs missed while the server was down: skip, once or all (skip)"},
    {"partition", 'p', CLI_TEXT, "NAME", "into this partition (Default)"},
};
static const struct cli_option rm_options[] = {CONFIRM_OPTION};

static const struct cli_command cron_ls = {
    .name = "ls",
    .args = "[QUEUE]",
    .summary = "list recurring messages",
    .examples = "queen cron ls|with their next runs",
    .run = cmd_cron_list,
};
static const struct cli_command cron_show = {
    .name = "show",
    .args = "NAME",
    .summary = "show a recurring message and its next five runs",
    .examples = "queen cron show nightly|by name or id",
    .run = cmd_cron_show,
};
static const struct cli_command cron_add = {
    .name = "add",
    .args = "NAME QUEUE CRON [PAYLOAD]",
    .summary = "add a recurring message",
    .about = "CRON is five fields, six with seconds in front, or @hourly, @daily, @weekly, "
             "@monthly, @yearly.",
    .examples = "queen cron add nightly reports '30 2 * * *' '{\"kind\": \"daily\"}' --zone "
                "Europe/Berlin|every night, also when the clocks change",
    CLI_OPTIONS(add_options),
    .run = cmd_cron_add,
};
static const struct cli_command cron_pause = {
    .name = "pause",
    .args = "NAME",
    .summary = "pause a recurring message",
    .examples = "queen cron pause nightly|by name or id",
    .run = change,
};
static const struct cli_command cron_resume = {
    .name = "resume",
    .args = "NAME",
    .summary = "resume a recurring message from its next time on",
    .examples = "queen cron resume nightly|by name or id",
    .run = change,
};
static const struct cli_command cron_run = {
    .name = "run",
    .args = "NAME",
    .summary = "push it once now, even if it is paused",
    .examples = "queen cron run nightly|to try it",
    .run = run_now,
};
static const struct cli_command cron_rm = {
    .name = "rm",
    .args = "NAME",
    .summary = "remove a recurring message",
    .examples = "queen cron rm nightly --yes|without a prompt",
    CLI_OPTIONS(rm_options),
    .run = cmd_cron_forget,
};
static const struct cli_command *const subs[] = {
    &cron_ls, &cron_show, &cron_add, &cron_pause, &cron_resume, &cron_run, &cron_rm, NULL};
const struct cli_command cli_cron = {
    .name = "cron",
    .summary = "recurring messages: list, show, add, pause, resume, run, remove",
    .subs = subs,
};
