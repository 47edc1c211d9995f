// `queen stream`: the queries that stream libraries have registered.
#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"

static int cmd_stream_list(struct cli *cli)
{
    static const struct column columns[] = {
        {"NAME", "name", CELL_TEXT},
        {"SOURCE", "sourceQueue", CELL_TEXT},
        {"SINK", "sinkQueue", CELL_TEXT},
        {"KEYS", "keys", CELL_COUNT},
        {"LAG", "lag", CELL_COUNT},
        {"BEHIND", "lagSeconds", CELL_SECONDS},
        {"REGISTERED", "createdAt", CELL_TIME},
        {"CHANGED", "updatedAt", CELL_TIME},
    };
    struct buf path = {0};
    span body;

    path_start(&path, "/streams/v1/queries");
    path_param(&path, "search", args_text(&cli->args, "search"));
    path_param(&path, "limit", args_text(&cli->args, "limit"));
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "queries"), columns, countof(columns), "no stream query");
    buf_free(&path);
    return rc;
}

static const struct cli_option list_options[] = {
    {"search", 0, CLI_TEXT, "TEXT", "only names that contain it"},
    {"limit", 'n', CLI_COUNT, "N", "maximum number of entries, up to 1000 (100)"},
};
static const struct cli_command stream_ls = {
    .name = "ls",
    .args = "",
    .summary = "list registered stream queries with the lag of their consumer group",
    .examples = "queen stream ls --search totals|some of them",
    CLI_OPTIONS(list_options),
    .run = cmd_stream_list,
};
static const struct cli_command *const subs[] = {&stream_ls, NULL};
const struct cli_command cli_stream = {
    .name = "stream",
    .summary = "list stream queries",
    .subs = subs,
};
