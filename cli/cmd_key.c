// `queen key`: API keys.
#include <string.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/confirm.h"
#include "cli/pick.h"
#include "cli/table.h"
#include "json/write.h"

static const struct column columns[] = {
    {"NAME", "name", CELL_TEXT},
    {"ID", "id", CELL_TEXT},
    {"ROLE", "role", CELL_TEXT},
    {"ALLOW", "allow", CELL_LONG},
    {"LIMITS", "limits", CELL_TEXT},
    {"CREATED", "createdAt", CELL_TIME},
    {"EXPIRES", "expiresAt", CELL_TIME},
    {"EXPIRED", "expired", CELL_YES},
    {"CREATED BY", "createdBy", CELL_TEXT},
};

static int cmd_key_list(struct cli *cli)
{
    span body;
    int rc = ask(cli, "GET", SPAN("/api/v1/keys"), SPAN_NONE, &body);

    if (rc == CLI_OK)
        table_show(cli, pick(body, "keys"), columns, countof(columns),
                   "no keys; create one with queen key create");
    return rc;
}

// "limits":"requests=100,bytes=1000000"
static void put_limits(struct buf *b, const struct args *a)
{
    static const char *const names[][2] = {{"limit-requests", "requests"},
                                           {"limit-bytes", "bytes"},
                                           {"limit-connections", "connections"},
                                           {"limit-stored", "stored"}};
    bool first = true;

    for (unsigned i = 0; i < countof(names); i++) {
        if (!args_has(a, names[i][0]))
            continue;
        buf_put(b, first ? SPAN(",\"limits\":\"") : SPAN(","));
        buf_printf(b, "%s=%llu", names[i][1],
                   (unsigned long long)args_count(a, names[i][0], 0));
        first = false;
    }
    if (!first)
        buf_putc(b, '"');
}

static int cmd_key_create(struct cli *cli)
{
    static const struct column created[] = {{"key", "key", CELL_LONG},
                                            {"name", "name", CELL_TEXT},
                                            {"id", "id", CELL_TEXT},
                                            {"role", "role", CELL_TEXT},
                                            {"allow", "allow", CELL_LONG},
                                            {"limits", "limits", CELL_TEXT},
                                            {"expires", "expiresAt", CELL_TIME}};
    const struct args *a = &cli->args;
    uint64_t expires_ms = args_ms(a, "expires", 0);
    struct buf b = {0};
    span body;

    buf_put_lit(&b, "{\"name\":");
    js_put_text(&b, span_of(a->rest[0]));
    ask_put_text(&b, "role", args_text(a, "role"));
    ask_put_text(&b, "allow", args_text(a, "allow"));
    put_limits(&b, a);
    if (args_has(a, "expires"))
        buf_printf(&b, ",\"expiresInSeconds\":%llu",
                   (unsigned long long)((expires_ms + 999) / 1000));
    buf_putc(&b, '}');
    int rc = ask(cli, "POST", SPAN("/api/v1/keys"), buf_span(&b), &body);
    if (rc == CLI_OK) {
        record_show(cli, body, created, countof(created));
        out_note(&cli->out, "the key is not shown again");
    }
    buf_free(&b);
    return rc;
}

static int cmd_key_revoke(struct cli *cli)
{
    struct buf path = {0};
    span body;
    int rc = confirm(cli, "revoke the key %s", cli->args.rest[0]);

    path_start(&path, "/api/v1/keys");
    path_part(&path, cli->args.rest[0]);
    if (rc == CLI_OK)
        rc = ask(cli, "DELETE", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK && cli->out.json)
        out_line(body);
    else if (rc == CLI_OK)
        out_note(&cli->out, "%s was revoked", cli->args.rest[0]);
    buf_free(&path);
    return rc;
}

static const struct cli_option create_options[] = {
    {"allow", 0, CLI_TEXT, "RULES", "rules, for example push:orders.*,pop:orders.*"},
    {"role", 0, CLI_TEXT, "ROLE", "instead: read-only, read-write or admin"},
    {"limit-requests", 0, CLI_COUNT, "N", "maximum requests per second and broker"},
    {"limit-bytes", 0, CLI_COUNT, "N", "maximum bytes per second and broker"},
    {"limit-connections", 0, CLI_COUNT, "N", "maximum number of connections to a broker"},
    {"limit-stored", 0, CLI_COUNT, "N", "maximum bytes of stored messages"},
    {"expires", 0, CLI_DURATION, "TIME", "how long it is valid: 12h, 90d (for ever)"},
};
static const struct cli_option revoke_options[] = {CONFIRM_OPTION};

static const struct cli_command key_ls = {
    .name = "ls",
    .args = "",
    .summary = "list API keys",
    .examples = "queen key ls|names, roles and expiry; never secrets",
    .run = cmd_key_list,
};
static const struct cli_command key_create = {
    .name = "create",
    .args = "NAME",
    .summary = "create an API key",
    .about =
        "The key is printed once; the server stores only its hash. Clients send it as a bearer "
        "token (QUEEN_TOKEN, QUEEN_TOKEN_FILE).",
    .examples =
        "queen key create ci --allow 'push:orders.*,pop:orders.*' --expires 90d|only some "
        "queues\n"
        "queen key create ops --role admin|everything",
    CLI_OPTIONS(create_options),
    .run = cmd_key_create,
};
static const struct cli_command key_revoke = {
    .name = "revoke",
    .args = "KEY",
    .summary = "revoke an API key, by name or id",
    .about =
        "All brokers of the database refuse it within two seconds. Its waiting requests lose "
        "their connections.",
    .examples = "queen key revoke ci --yes|without a prompt",
    CLI_OPTIONS(revoke_options),
    .run = cmd_key_revoke,
};
static const struct cli_command *const subs[] = {&key_ls, &key_create, &key_revoke, NULL};
const struct cli_command cli_key = {
    .name = "key",
    .summary = "API keys: list, create, revoke",
    .subs = subs,
};
