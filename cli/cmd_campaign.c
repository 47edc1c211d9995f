// `queen campaign`: campaigns of a platform's tenant, and their runs.
#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"

static int cmd_campaign_list(struct cli *cli)
{
    static const struct column columns[] = {
        {"NAME", "name", CELL_TEXT},         {"SEGMENT", "segment", CELL_TEXT},
        {"WHEN", "when.kind", CELL_TEXT},    {"AT", "when.at", CELL_TIME},
        {"CRON", "when.cron", CELL_TEXT},    {"CHANNEL", "channel", CELL_TEXT},
        {"QUEUE", "queue", CELL_TEXT},       {"RUNS", "runs", CELL_COUNT},
        {"CREATED", "createdAt", CELL_TIME},
    };
    struct buf path = {0};
    span body;

    path_of_tenant(&path, cli->args.rest[0], "/campaigns");
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "campaigns"), columns, countof(columns), "no campaigns");
    buf_free(&path);
    return rc;
}

static int cmd_campaign_runs(struct cli *cli)
{
    static const struct column columns[] = {
        {"RUN", "run", CELL_TEXT},
        {"STARTED", "createdAt", CELL_TIME},
        {"FINISHED", "finishedAt", CELL_TIME},
        {"RECIPIENTS", "recipients", CELL_COUNT},
        {"SENT", "sent", CELL_COUNT},
        {"BLOCKED", "skipped.blocked", CELL_COUNT},
        {"NO CONSENT", "skipped.noConsent", CELL_COUNT},
        {"NO ADDRESS", "skipped.noAddress", CELL_COUNT},
        {"DELETED", "skipped.deleted", CELL_COUNT},
        {"TRIGGER", "status", CELL_TEXT},
        {"LAST ERROR", "lastError", CELL_LONG},
    };
    struct buf path = {0};
    span body;

    path_of_tenant(&path, cli->args.rest[0], "/campaigns");
    path_part(&path, cli->args.rest[1]);
    buf_put_lit(&path, "/runs");
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "runs"), columns, countof(columns), "no runs");
    buf_free(&path);
    return rc;
}

static const struct cli_command campaign_ls = {
    .name = "ls",
    .args = "TENANT",
    .summary = "list campaigns",
    .examples = "queen campaign ls acme|with their segments and times",
    .platform = true,
    .run = cmd_campaign_list,
};
static const struct cli_command campaign_runs = {
    .name = "runs",
    .args = "TENANT CAMPAIGN",
    .summary = "list the runs of a campaign: recipients, sent and skipped ones",
    .examples = "queen campaign runs acme hello|newest first",
    .platform = true,
    .run = cmd_campaign_runs,
};
static const struct cli_command *const subs[] = {&campaign_ls, &campaign_runs, NULL};
const struct cli_command cli_campaign = {
    .name = "campaign",
    .summary = "campaigns of a tenant, and their runs",
    .subs = subs,
};
