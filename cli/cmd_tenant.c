// `queen tenant` and `queen pools`: the tenants of a platform, and their connections.
#include <stdio.h>
#include <stdlib.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/confirm.h"
#include "cli/pick.h"
#include "cli/table.h"

static const struct column tenant_columns[] = {
    {"TENANT", "tenant", CELL_TEXT},     {"STATE", "state", CELL_TEXT},
    {"KIND", "kind", CELL_TEXT},         {"VERSION", "schemaVersion", CELL_COUNT},
    {"DATABASE", "database", CELL_LONG}, {"URL", "url", CELL_LONG},
    {"ERROR", "error", CELL_LONG},
};

static void tenant_path(struct buf *path, const char *tenant, const char *below)
{
    path_start(path, "/api/v1/tenants");
    path_part(path, tenant);
    buf_put(path, span_of(below));
}

static int cmd_tenant_list(struct cli *cli)
{
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/tenants");
    path_param(&path, "search", cli->args.n_rest > 0 ? cli->args.rest[0] : NULL);
    path_param(&path, "sort", args_text(&cli->args, "sort"));
    path_param(&path, "limit", args_text(&cli->args, "limit"));
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "tenants"), tenant_columns, countof(tenant_columns),
                   cli->args.n_rest > 0 ? "no tenant matches"
                                        : "no tenants yet; queen tenant add NAME");
    buf_free(&path);
    return rc;
}

static int ask_one(struct cli *cli, const char *method, span request)
{
    static const struct column columns[] = {
        {"tenant", "tenant", CELL_TEXT},     {"state", "state", CELL_TEXT},
        {"kind", "kind", CELL_TEXT},         {"database", "database", CELL_TEXT},
        {"url", "url", CELL_TEXT},           {"credential", "credential", CELL_TEXT},
        {"made here", "made", CELL_YES},     {"schema", "schemaVersion", CELL_COUNT},
        {"created", "createdAt", CELL_TIME}, {"migrated", "migratedAt", CELL_TIME},
        {"error", "error", CELL_TEXT},
    };
    bool add = request.ptr && method[0] == 'P' && method[1] == 'O';
    struct buf path = {0};
    span body;

    if (add)
        path_start(&path, "/api/v1/tenants");
    else
        tenant_path(&path, cli->args.rest[0], "");
    int rc = ask_patiently(cli, method, buf_span(&path), request, 120000, &body);
    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    buf_free(&path);
    return rc;
}

static int cmd_tenant_show(struct cli *cli) { return ask_one(cli, "GET", SPAN_NONE); }

// Members used by both add and change.
static void tenant_put_place(struct cli *cli, struct buf *b)
{
    const struct args *a = &cli->args;

    ask_put_text(b, "url", args_text(a, "database"));
    ask_put_text(b, "credential", args_text(a, "credential"));
    if (args_has(a, "password"))
        ask_put_text(b, "password", getenv("TENANT_PASSWORD") ? getenv("TENANT_PASSWORD") : "");
}

static int cmd_tenant_add(struct cli *cli)
{
    struct buf b = {0};

    buf_putc(&b, '{');
    ask_put_text(&b, "name", cli->args.rest[0]);
    tenant_put_place(cli, &b);
    buf_putc(&b, '}');
    int rc = ask_one(cli, "POST", buf_span(&b));
    buf_free(&b);
    return rc;
}

static int change(struct cli *cli)
{
    struct buf b = {0};

    buf_putc(&b, '{');
    tenant_put_place(cli, &b);
    buf_putc(&b, '}');
    int rc = ask_one(cli, "PATCH", buf_span(&b));
    buf_free(&b);
    return rc;
}

static int cmd_tenant_forget(struct cli *cli)
{
    const char *name = cli->args.rest[0];
    bool drop = args_has(&cli->args, "drop");
    struct buf path = {0};
    span body;

    int rc = confirm(cli,
                     drop ? "remove the tenant %s and drop its database"
                          : "remove the tenant %s; its database is kept",
                     name);
    if (rc != CLI_OK)
        return rc;
    tenant_path(&path, name, drop ? "?drop=true" : "");
    rc = ask_patiently(cli, "DELETE", buf_span(&path), SPAN_NONE, 60000, &body);
    if (rc == CLI_OK && cli->out.json)
        out_line(body);
    else if (rc == CLI_OK)
        out_note(&cli->out, "%s was removed%s", name, drop ? " with its database" : "");
    buf_free(&path);
    return rc;
}

static int cmd_tenant_migrate(struct cli *cli)
{
    static const struct column columns[] = {
        {"TENANT", "tenant", CELL_TEXT},
        {"STATUS", "status", CELL_TEXT},
        {"MIGRATIONS", "migrations", CELL_COUNT},
        {"OBJECTS", "objects", CELL_COUNT},
        {"MS", "ms", CELL_COUNT},
        {"ERROR", "error", CELL_LONG},
    };
    span body;
    int rc =
        ask_patiently(cli, "POST", SPAN("/api/v1/tenants/migrate"), SPAN_NONE, 3600000, &body);

    if (rc != CLI_OK)
        return rc;
    table_show(cli, pick(body, "tenants"), columns, countof(columns), "no tenants yet");
    return pick_int(body, "failed") > 0 ? CLI_FAILED : CLI_OK;
}

static int health(struct cli *cli)
{
    static const struct column columns[] = {{"tenant", "tenant", CELL_TEXT},
                                            {"status", "status", CELL_TEXT},
                                            {"connection after ms", "getMs", CELL_TEXT},
                                            {"answer after ms", "answerMs", CELL_TEXT}};
    struct buf path = {0};
    span body;

    tenant_path(&path, cli->args.rest[0], "/health");
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    buf_free(&path);
    return rc;
}

static int pools(struct cli *cli)
{
    static const struct column columns[] = {
        {"TENANT", "tenant", CELL_TEXT},
        {"STATE", "state", CELL_TEXT},
        {"KIND", "kind", CELL_TEXT},
        {"IN USE", "refs", CELL_COUNT},
        {"CONNECTIONS", "connections", CELL_COUNT},
        {"WAITING", "waiting", CELL_COUNT},
        {"IDLE MS", "idleMs", CELL_COUNT},
        {"DOWN MS", "downMs", CELL_COUNT},
        {"ERROR", "error", CELL_LONG},
    };
    span body;
    int rc = ask(cli, "GET", SPAN("/api/v1/pools"), SPAN_NONE, &body);

    if (rc != CLI_OK)
        return rc;
    if (cli->out.json) {
        out_line(body);
        return CLI_OK;
    }
    printf("%lld of %lld pools, %lld in use, %lld waiting, %lld down; hit rate %.2f %%, "
           "evictions %lld\n",
           (long long)pick_int(body, "open"), (long long)pick_int(body, "max"),
           (long long)pick_int(body, "held"), (long long)pick_int(body, "waiting"),
           (long long)pick_int(body, "down"), 100 * pick_number(body, "hitRate"),
           (long long)pick_int(body, "evictions"));
    table_show(cli, pick(body, "tenants"), columns, countof(columns), "no connections");
    return CLI_OK;
}

#define PLACE                                                                           \
    {"database", 0, CLI_TEXT, "URL", "adopt this database: postgresql:// or mysql://"}, \
        {"credential", 0, CLI_TEXT, "REF",                                              \
         "location of its password: env:NAME or file:/path"},                           \
    {                                                                                   \
        "password", 0, CLI_FLAG, NULL, "its password is in TENANT_PASSWORD"             \
    }

static const struct cli_option add_options[] = {PLACE};
static const struct cli_option rm_options[] = {
    {"drop", 0, CLI_FLAG, NULL, "also drop its database, if the platform created it"},
    CONFIRM_OPTION,
};

static const struct cli_option ls_options[] = {
    {"sort", 0, CLI_TEXT, "ORDER",
     "name, trouble: not ready first, behind: oldest views first (name)"},
    {"limit", 'n', CLI_COUNT, "N", "maximum number of tenants (all)"},
};
static const struct cli_command tenant_ls = {
    .name = "ls",
    .args = "[TEXT]",
    .summary = "list tenants, or those with TEXT in their name",
    .examples = "queen tenant ls|names, versions of the schema, where they are\n"
                "queen tenant ls --sort trouble -n 10|those that need attention first",
    CLI_OPTIONS(ls_options),
    .platform = true,
    .run = cmd_tenant_list,
};
static const struct cli_command tenant_show = {
    .name = "show",
    .args = "TENANT",
    .summary = "show one tenant",
    .platform = true,
    .examples = "queen tenant show acme|where it is, its schema, its last error",
    .run = cmd_tenant_show,
};
static const struct cli_command tenant_add = {
    .name = "add",
    .args = "NAME",
    .summary = "add a tenant: create a database for it, or adopt one",
    .examples = "queen tenant add acme|with a database on the platform's own PostgreSQL\n"
                "queen tenant add old --database postgresql://app@db1/old --credential "
                "env:OLD_PASSWORD|adopts one",
    CLI_OPTIONS(add_options),
    .platform = true,
    .run = cmd_tenant_add,
};
static const struct cli_command tenant_change = {
    .name = "change",
    .args = "TENANT",
    .summary = "change address or password; connections in use are kept",
    .examples = "TENANT_PASSWORD=new queen tenant change old --password|rotate a password",
    CLI_OPTIONS(add_options),
    .platform = true,
    .run = change,
};
static const struct cli_command tenant_rm = {
    .name = "rm",
    .args = "TENANT",
    .summary = "remove a tenant",
    .examples = "queen tenant rm acme --drop --yes|and its database",
    CLI_OPTIONS(rm_options),
    .platform = true,
    .run = cmd_tenant_forget,
};
static const struct cli_command tenant_migrate = {
    .name = "migrate",
    .args = "",
    .summary = "migrate the schemas of all tenants",
    .platform = true,
    .examples = "queen tenant migrate|all of them, with a report",
    .run = cmd_tenant_migrate,
};
static const struct cli_command tenant_health = {
    .name = "health",
    .args = "TENANT",
    .summary = "check whether a tenant's database is available",
    .platform = true,
    .examples = "queen tenant health acme|connects now and measures the time",
    .run = health,
};
static const struct cli_command *const subs[] = {&tenant_ls,     &tenant_show, &tenant_add,
                                                 &tenant_change, &tenant_rm,   &tenant_migrate,
                                                 &tenant_health, NULL};
const struct cli_command cli_tenant = {
    .name = "tenant",
    .summary = "tenants of a platform: list, add, change, migrate, remove",
    .subs = subs,
};
const struct cli_command cli_pools = {
    .name = "pools",
    .args = "",
    .summary = "show the connections of a platform to its tenants",
    .examples = "queen pools|hit rate and connections",
    .platform = true,
    .run = pools,
};
