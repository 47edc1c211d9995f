// `queen whoami`: the sender of the requests, and what it may do.
#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/table.h"

static int cmd_whoami(struct cli *cli)
{
    static const struct column columns[] = {
        {"subject", "subject", CELL_TEXT},
        {"role", "role", CELL_TEXT},
        {"rules", "allow", CELL_TEXT},
        {"operations", "operations", CELL_TEXT},
    };
    span body;
    int rc = ask(cli, "GET", SPAN("/api/v1/identity"), SPAN_NONE, &body);

    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    return rc;
}

const struct cli_command cli_whoami = {
    .name = "whoami",
    .args = "",
    .summary = "show your identity and permissions on the server",
    .examples = "queen whoami --json | jq -r '.operations[]'|every permitted operation",
    .run = cmd_whoami,
};
