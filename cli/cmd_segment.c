// `queen segment`: segments of a platform's tenant.
#include <stdio.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/file.h"
#include "cli/pick.h"
#include "cli/table.h"
#include "json/scan.h"
#include "json/write.h"

// A filter: JSON, @FILE, or the name of a saved segment.  CLI_OK: *filter is JSON.
static int read_filter(struct cli *cli, const char *text, span *filter)
{
    struct buf b = {0}, path = {0};
    struct fault why;
    span body;
    int rc = CLI_OK;

    if (text[0] == '@' && file_read(text + 1, &b, NULL, &why) != 0) {
        rc = ask_complain(cli, CLI_FAILED, "%s", why.text);
    } else if (text[0] == '@' || text[0] == '{') {
        if (text[0] == '{')
            buf_put(&b, span_of(text));
        struct js j = js_read(buf_span(&b));
        js_skip(&j);
        if (js_finish(&j) != 0)
            rc = ask_complain(cli, CLI_USAGE, "the filter is not JSON");
        *filter = arena_copy(&cli->arena, buf_span(&b));
    } else {
        path_of_tenant(&path, cli->args.rest[0], "/segments");
        path_part(&path, text);
        rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
        if (rc == CLI_OK)
            *filter = pick(body, "filter");
    }
    buf_free(&b);
    buf_free(&path);
    return rc;
}

// Sends the filter in argument `at`; more: further members of the request.
static int question(struct cli *cli, const char *what, size_t at, span more, span *answer)
{
    const struct args *a = &cli->args;
    struct buf b = {0}, path = {0};
    span filter = SPAN_NONE;

    int rc = read_filter(cli, a->rest[at], &filter);
    if (rc == CLI_OK) {
        buf_put_lit(&b, "{\"filter\":");
        buf_put(&b, filter);
        ask_put_text(&b, "path", args_text(a, "path"));
        buf_put(&b, more);
        buf_putc(&b, '}');
        path_of_tenant(&path, cli->args.rest[0], what);
        rc = ask(cli, "POST", buf_span(&path), buf_span(&b), answer);
    }
    buf_free(&b);
    buf_free(&path);
    return rc;
}

static int cmd_segment_list(struct cli *cli)
{
    static const struct column columns[] = {
        {"NAME", "name", CELL_TEXT},
        {"COUNT", "lastCount.count", CELL_COUNT},
        {"COUNTED", "lastCount.at", CELL_TIME},
        {"TELLS", "subscription.queue", CELL_TEXT},
        {"CHANGED", "updatedAt", CELL_TIME},
        {"FILTER", "filter", CELL_LONG},
    };
    struct buf path = {0};
    span body;

    path_of_tenant(&path, cli->args.rest[0], "/segments?limit=1000");
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "segments"), columns, countof(columns),
                   "no saved segments; add one with queen segment save");
    buf_free(&path);
    return rc;
}

static int count(struct cli *cli)
{
    static const struct column columns[] = {
        {"count", "count", CELL_COUNT}, {"answered by", "path", CELL_TEXT},
        {"as of", "asOf", CELL_TIME},   {"behind (ms)", "staleMs", CELL_COUNT},
        {"cached", "cached", CELL_YES}, {"took (ms)", "tookMs", CELL_TEXT},
    };
    span body;
    int rc = question(cli, "/segments/count", 1, SPAN_NONE, &body);

    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    return rc;
}

static int preview(struct cli *cli)
{
    static const struct column columns[] = {
        {"ID", "id", CELL_TEXT},           {"CUSTOMER", "customer", CELL_TEXT},
        {"FIRST", "firstName", CELL_TEXT}, {"LAST", "lastName", CELL_TEXT},
        {"EMAIL", "email", CELL_LONG},     {"CITY", "city", CELL_TEXT},
    };
    struct buf more = {0};
    span body;

    buf_printf(&more, ",\"limit\":%llu,\"after\":%llu",
               (unsigned long long)args_count(&cli->args, "limit", 20),
               (unsigned long long)args_count(&cli->args, "after", 0));
    int rc = question(cli, "/segments/preview", 1, buf_span(&more), &body);
    if (rc == CLI_OK) {
        table_show(cli, pick(body, "customers"), columns, countof(columns), "no customers");
        if (js_type_of(pick(body, "next")) == JS_NUMBER)
            out_note(&cli->out, "there are more: --after " SPAN_FMT,
                     SPAN_ARG(pick(body, "next")));
    }
    buf_free(&more);
    return rc;
}

static int explain(struct cli *cli)
{
    static const struct column columns[] = {
        {"AT", "at", CELL_TEXT},
        {"FILTER", "label", CELL_LONG},
        {"VERDICT", "verdict", CELL_TEXT},
        {"VALUE", "value", CELL_LONG},
        {"IN TABLES", "writeModel.verdict", CELL_TEXT},
    };
    struct buf more = {0};
    span body;

    buf_put_lit(&more, ",\"customer\":");
    js_put_text(&more, span_of(cli->args.rest[1]));
    int rc = question(cli, "/segments/explain", 2, buf_span(&more), &body);
    buf_free(&more);
    if (rc != CLI_OK)
        return rc;
    if (cli->out.json) {
        out_line(body);
        return CLI_OK;
    }
    span inside = pick(body, "inSegment");
    printf("%s: " SPAN_FMT "\n",
           span_eq(inside, SPAN("true"))    ? "inside"
           : span_eq(inside, SPAN("false")) ? "not inside"
                                            : "unknown",
           SPAN_ARG(pick_text(body, "because", &cli->arena)));
    table_show(cli, pick(body, "filters"), columns, countof(columns), NULL);
    return CLI_OK;
}

static int save(struct cli *cli)
{
    static const struct column columns[] = {{"id", "id", CELL_TEXT},
                                            {"name", "name", CELL_TEXT},
                                            {"filter", "filter", CELL_LONG},
                                            {"changed", "updatedAt", CELL_TIME}};
    struct buf b = {0}, path = {0};
    span filter = SPAN_NONE, body;

    int rc = read_filter(cli, cli->args.rest[2], &filter);
    if (rc == CLI_OK) {
        buf_put_lit(&b, "{\"filter\":");
        buf_put(&b, filter);
        ask_put_text(&b, "name", cli->args.rest[1]);
        buf_putc(&b, '}');
        path_of_tenant(&path, cli->args.rest[0], "/segments");
        rc = ask(cli, "POST", buf_span(&path), buf_span(&b), &body);
    }
    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    buf_free(&b);
    buf_free(&path);
    return rc;
}

static int attributes(struct cli *cli)
{
    static const struct column columns[] = {
        {"ATTRIBUTE", "name", CELL_TEXT},      {"TYPE", "type", CELL_TEXT},
        {"TABLE", "table", CELL_TEXT},         {"IS", "label", CELL_LONG},
        {"OPERATORS", "operators", CELL_LONG},
    };
    span body;
    int rc = ask(cli, "GET", SPAN("/api/v1/segments/attributes"), SPAN_NONE, &body);

    if (rc == CLI_OK)
        table_show(cli, pick(body, "attributes"), columns, countof(columns), NULL);
    return rc;
}

#define PATH_OPTION                                                                     \
    {                                                                                   \
        "path", 0, CLI_TEXT, "PATH", "use live, views or fallback (the best available)" \
    }
static const struct cli_option ask_options[] = {PATH_OPTION};
static const struct cli_option preview_options[] = {
    PATH_OPTION,
    {"limit", 'n', CLI_COUNT, "N", "maximum number of customers (20)"},
    {"after", 0, CLI_COUNT, "ID", "customers after this id"},
};
#define ABOUT_FILTER                                                                           \
    "FILTER is JSON ({\"attribute\": ..., \"operator\": ..., \"value\": ...}), @FILE, or the " \
    "name of "                                                                                 \
    "a saved segment; {\"all\": true} matches every customer."

static const struct cli_command segment_ls = {
    .name = "ls",
    .args = "TENANT",
    .summary = "list saved segments",
    .examples = "queen segment ls acme|with their last counts",
    .platform = true,
    .run = cmd_segment_list,
};
static const struct cli_command segment_count = {
    .name = "count",
    .args = "TENANT FILTER",
    .summary = "count the customers of a segment",
    .about = ABOUT_FILTER,
    .examples =
        "queen segment count acme '{\"attribute\": \"wallet_balance\", \"operator\": \"gt\", "
        "\"value\": 50}'|now\nqueen segment count acme rich --path fallback|from the tables",
    CLI_OPTIONS(ask_options),
    .platform = true,
    .run = count,
};
static const struct cli_command segment_preview = {
    .name = "preview",
    .args = "TENANT FILTER",
    .summary = "show a page of its customers",
    .about = ABOUT_FILTER,
    .examples = "queen segment preview acme rich -n 5|the first five",
    CLI_OPTIONS(preview_options),
    .platform = true,
    .run = preview,
};
static const struct cli_command segment_explain = {
    .name = "explain",
    .args = "TENANT CUSTOMER FILTER",
    .summary = "explain why a customer is in a segment or not",
    .about = ABOUT_FILTER,
    .examples =
        "queen segment explain acme 5a0e1c9e-0000-4000-8000-000000000001 rich|each filter's "
        "verdict",
    CLI_OPTIONS(ask_options),
    .platform = true,
    .run = explain,
};
static const struct cli_command segment_save = {
    .name = "save",
    .args = "TENANT NAME FILTER",
    .summary = "save a segment under a name",
    .about = ABOUT_FILTER,
    .examples = "queen segment save acme rich @rich.json|or change the one of that name",
    .platform = true,
    .run = save,
};
static const struct cli_command segment_attributes = {
    .name = "attributes",
    .args = "",
    .summary = "list the attributes for filters",
    .examples = "queen segment attributes --json | jq -r .name|only the names",
    .platform = true,
    .run = attributes,
};
static const struct cli_command *const subs[] = {&segment_ls,
                                                 &segment_count,
                                                 &segment_preview,
                                                 &segment_explain,
                                                 &segment_save,
                                                 &segment_attributes,
                                                 NULL};
const struct cli_command cli_segment = {
    .name = "segment",
    .summary = "segments of a tenant: list, count, preview, explain, save",
    .subs = subs,
};
