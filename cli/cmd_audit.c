// `queen audit`: administrative actions and denied requests.
#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"

enum { PAGE = 100 };

static int cmd_audit(struct cli *cli)
{
    static const struct column columns[] = {
        {"AT", "at", CELL_TIME},           {"SUBJECT", "subject", CELL_TEXT},
        {"ADDRESS", "address", CELL_TEXT}, {"OPERATION", "operation", CELL_TEXT},
        {"TARGET", "target", CELL_TEXT},   {"STATUS", "status", CELL_COUNT},
        {"RESULT", "result", CELL_TEXT},   {"COUNT", "count", CELL_COUNT},
        {"PATH", "path", CELL_LONG},
    };
    static const char *const filters[] = {"subject", "address", "operation", "target",
                                          "result"};
    const struct args *a = &cli->args;
    char when[ARGS_TIME_SIZE];
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/audit");
    for (unsigned i = 0; i < countof(filters); i++)
        path_param(&path, filters[i], args_text(a, filters[i]));
    if (args_time(a, "from", when))
        path_param(&path, "from", when);
    if (args_time(a, "to", when))
        path_param(&path, "to", when);
    path_param(&path, "before", args_text(a, "before"));
    buf_printf(&path, "%climit=%llu", memchr(path.ptr, '?', path.len) ? '&' : '?',
               (unsigned long long)args_count(a, "limit", PAGE));
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK) {
        table_show(cli, pick(body, "records"), columns, countof(columns), "no records");
        int64_t next = pick_int(body, "next");
        if (next > 0 && !cli->out.json)
            out_note(&cli->out, "there are more: --before %lld", (long long)next);
    }
    buf_free(&path);
    return rc;
}

static const struct cli_option audit_options[] = {
    {"subject", 0, CLI_TEXT, "NAME", "only of this sender: key:ci, or the subject of a token"},
    {"address", 0, CLI_TEXT, "IP", "only from this address"},
    {"operation", 0, CLI_TEXT, "NAME", "only this one: delete_queue, seek_group, ..."},
    {"target", 0, CLI_TEXT, "NAME", "only of this queue, key, group, ..."},
    {"result", 0, CLI_TEXT, "RESULT", "only ok, failed or denied"},
    {"from", 0, CLI_TIME, "TIME", "not earlier than this"},
    {"to", 0, CLI_TIME, "TIME", "earlier than this"},
    {"limit", 0, CLI_COUNT, "N", "maximum number of records, up to 1000 (100)"},
    {"before", 0, CLI_COUNT, "ID", "the next page"},
};
const struct cli_command cli_audit = {
    .name = "audit",
    .args = "",
    .summary = "list administrative actions and denied requests",
    .about = "Newest first. Requests that failed or were denied repeatedly are counted.",
    .examples =
        "queen audit --result denied|who was refused\n"
        "queen audit --target orders --from 2026-11-01T00:00:00Z|what was done to a queue",
    CLI_OPTIONS(audit_options),
    .run = cmd_audit,
};
