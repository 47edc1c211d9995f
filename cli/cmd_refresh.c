// `queen refresh`: read models of a platform's tenants.
#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"

// State of the refreshes, from the control database.
static int list_all(struct cli *cli)
{
    static const struct column columns[] = {
        {"TENANT", "tenant", CELL_TEXT},      {"MODEL", "model", CELL_TEXT},
        {"MODE", "effectiveMode", CELL_TEXT}, {"CHANGED", "changedAt", CELL_TIME},
        {"VISITED", "visitedAt", CELL_TIME},  {"BY", "visitedBy", CELL_TEXT},
        {"FAILURES", "failures", CELL_COUNT}, {"ERROR", "error", CELL_LONG},
    };
    span body;
    int rc = ask(cli, "GET", SPAN("/api/v1/read-models"), SPAN_NONE, &body);

    if (rc == CLI_OK)
        table_show(cli, pick(body, "readModels"), columns, countof(columns),
                   "no tenants with read models");
    return rc;
}

// The read models of one tenant, from its own database.
static int list_tenant(struct cli *cli)
{
    static const struct column columns[] = {
        {"MODEL", "model", CELL_TEXT},
        {"SOURCE", "source", CELL_TEXT},
        {"BEHIND (MS)", "staleMs", CELL_COUNT},
        {"REFRESHED", "view.refreshedAt", CELL_TIME},
        {"TOOK (MS)", "view.durationMs", CELL_COUNT},
        {"ROWS", "view.rows", CELL_COUNT},
        {"REFRESHING", "view.refreshingBy", CELL_TEXT},
        {"CHECKED", "live.checkedRows", CELL_COUNT},
        {"DIFFERED", "live.differingRows", CELL_COUNT},
        {"ERROR", "view.error", CELL_LONG},
    };
    struct buf path = {0};
    span body;

    path_of_tenant(&path, cli->args.rest[0], "/read-models");
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK) {
        span unknown = pick(body, "unknownColumns");
        table_show(cli, pick(body, "models"), columns, countof(columns),
                   "no read models: its segments read the write model");
        if (!span_eq(unknown, SPAN("[]")))
            out_note(&cli->out, "columns without a read model: " SPAN_FMT, SPAN_ARG(unknown));
    }
    buf_free(&path);
    return rc;
}

static int cmd_refresh_list(struct cli *cli)
{
    return cli->args.n_rest > 0 ? list_tenant(cli) : list_all(cli);
}

static int wish(struct cli *cli, const char *method, const char *rest, const char *member)
{
    struct buf path = {0}, b = {0};
    span body;

    path_of_tenant(&path, cli->args.rest[0], rest);
    buf_putc(&b, '{');
    ask_put_text(&b, member, cli->args.n_rest > 1 ? cli->args.rest[1] : NULL);
    buf_putc(&b, '}');
    int rc = ask(cli, method, buf_span(&path), buf_span(&b), &body);
    if (rc == CLI_OK)
        out_note(&cli->out, "requested; see queen refresh ls %s", cli->args.rest[0]);
    buf_free(&path);
    buf_free(&b);
    return rc;
}

static int cmd_refresh_run(struct cli *cli)
{
    return wish(cli, "POST", "/read-models/refresh", "model");
}

static int mode(struct cli *cli) { return wish(cli, "PUT", "/read-models", "mode"); }

static const struct cli_command refresh_ls = {
    .name = "ls",
    .args = "[TENANT]",
    .summary = "show how fresh read models are",
    .examples = "queen refresh ls|the state of all tenants\n"
                "queen refresh ls acme|one tenant",
    .platform = true,
    .run = cmd_refresh_list,
};
static const struct cli_command refresh_run = {
    .name = "run",
    .args = "TENANT [MODEL]",
    .summary = "refresh the views of a tenant soon",
    .about = "MODEL is customer_attributes or customer_transactions; both without it.",
    .examples = "queen refresh run acme|both, if data changed",
    .platform = true,
    .run = cmd_refresh_run,
};
static const struct cli_command refresh_mode = {
    .name = "mode",
    .args = "TENANT MODE",
    .summary = "choose live tables or views for a tenant",
    .about = "MODE is live, views, or default (the setting of the platform).",
    .examples = "queen refresh mode acme views|materialized views, refreshed",
    .platform = true,
    .run = mode,
};
static const struct cli_command *const subs[] = {&refresh_ls, &refresh_run, &refresh_mode,
                                                 NULL};
const struct cli_command cli_refresh = {
    .name = "refresh",
    .summary = "read models of tenants: how fresh, refresh now, mode",
    .subs = subs,
};
