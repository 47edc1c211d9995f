// `queen group`: consumer groups, their lag, and seeking.
#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/confirm.h"
#include "cli/pick.h"
#include "cli/table.h"
#include "json/scan.h"
#include "json/write.h"

static int cmd_group_list(struct cli *cli)
{
    static const struct column columns[] = {
        {"GROUP", "name", CELL_TEXT},
        {"QUEUE", "queueName", CELL_TEXT},
        {"PARTITIONS", "partitions", CELL_COUNT},
        {"LAG", "totalLag", CELL_COUNT},
        {"BEHIND", "maxTimeLag", CELL_SECONDS},
        {"STATE", "activity", CELL_TEXT},
        {"SUBSCRIBED", "subscriptionMode", CELL_TEXT},
    };
    const char *queue = args_text(&cli->args, "queue"),
               *search = args_text(&cli->args, "search");
    struct buf path = {0};
    span body, item;

    path_start(&path, "/api/v1/consumer-groups");
    path_param(&path, "queue", queue);
    path_param(&path, "search", search);
    path_param(&path, "limit", args_text(&cli->args, "limit"));
    path_param(&path, "sort", args_has(&cli->args, "lag") ? "lag" : NULL);
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    buf_free(&path);
    if (rc != CLI_OK)
        return rc;
    struct table *t = table_new(cli, columns, countof(columns));
    while (pick_next(&body, &item))
        table_add(t, item);
    if (table_rows(t) == 0)
        out_note(&cli->out, queue || search
                                ? "no consumer group matches"
                                : "no consumer groups; a pop with --group creates one");
    table_free(t);
    return CLI_OK;
}

// Converts {"orders": {"partitions": [...]}, ...} to rows that name group and queue.
static void lag_of_group(struct cli *cli, const char *group, span body)
{
    static const struct column columns[] = {
        {"QUEUE", "queue", CELL_TEXT},
        {"PARTITION", "partition", CELL_LONG},
        {"LAG", "offsetLag", CELL_COUNT},
        {"BEHIND", "timeLagSeconds", CELL_SECONDS},
        {"CONSUMED", "totalConsumed", CELL_COUNT},
        {"LAST", "lastConsumedAt", CELL_TIME},
        {"LEASED", "leaseActive", CELL_YES},
        {"WORKER", "workerId", CELL_LONG},
    };
    struct table *t = table_new(cli, columns, countof(columns));
    struct js j = js_read(body);
    struct buf row = {0};
    span key, item;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span rest = pick(js_skip(&j), "partitions");
        while (pick_next(&rest, &item)) {
            buf_reset(&row);
            buf_put_lit(&row, "{\"group\":");
            js_put_text(&row, span_of(group));
            buf_put_lit(&row, ",\"queue\":\"");
            buf_put(&row, key); // raw, as between the quotes
            buf_put_lit(&row, "\",");
            buf_put(&row, (span){item.ptr + 1, item.len - 1});
            table_add(t, buf_span(&row));
        }
    }
    buf_free(&row);
    if (table_rows(t) == 0)
        out_note(&cli->out, "%s has consumed nothing yet", group);
    table_free(t);
}

// One page of the partitions of one queue, most messages first.
static int lag_on_queue(struct cli *cli, const char *group, const char *queue)
{
    static const struct column columns[] = {
        {"PARTITION", "partition", CELL_LONG},     {"LAG", "lag", CELL_COUNT},
        {"BEHIND", "lagSeconds", CELL_SECONDS},    {"CURSOR", "cursor", CELL_COUNT},
        {"CONSUMED", "totalConsumed", CELL_COUNT}, {"LAST", "lastConsumedAt", CELL_TIME},
        {"LEASE", "leaseId", CELL_LONG},           {"EXPIRES", "leaseExpiresAt", CELL_TIME},
    };
    struct buf path = {0};
    span body;

    path_start(&path, "/api/v1/consumer-groups");
    path_part(&path, group);
    buf_put_lit(&path, "/queues");
    path_part(&path, queue);
    buf_put_lit(&path, "/partitions");
    path_param(&path, "search", args_text(&cli->args, "search"));
    path_param(&path, "limit", args_text(&cli->args, "limit"));
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        table_show(cli, pick(body, "partitions"), columns, countof(columns),
                   "the group has received nothing from these partitions");
    buf_free(&path);
    return rc;
}

static int lag(struct cli *cli)
{
    static const struct column columns[] = {
        {"GROUP", "consumer_group", CELL_TEXT},
        {"QUEUE", "queue_name", CELL_TEXT},
        {"PARTITION", "partition_name", CELL_LONG},
        {"LAG", "offset_lag", CELL_COUNT},
        {"BEHIND", "time_lag_seconds", CELL_SECONDS},
        {"OLDEST", "oldest_unconsumed_at", CELL_TIME},
    };
    const char *queue = args_text(&cli->args, "queue");
    struct buf path = {0};
    span body;

    if (cli->args.n_rest == 0 && queue)
        return ask_complain(cli, CLI_USAGE, "--queue needs a GROUP");
    if (!queue && (args_has(&cli->args, "search") || args_has(&cli->args, "limit")))
        return ask_complain(cli, CLI_USAGE, "--search and --limit need --queue");
    if (queue)
        return lag_on_queue(cli, cli->args.rest[0], queue);
    if (cli->args.n_rest > 0 && args_has(&cli->args, "min"))
        return ask_complain(cli, CLI_USAGE, "--min is for the lag of all groups");
    if (cli->args.n_rest > 0) {
        path_start(&path, "/api/v1/consumer-groups");
        path_part(&path, cli->args.rest[0]);
    } else {
        path_start(&path, "/api/v1/consumer-groups/lagging");
        buf_printf(&path, "?minLagSeconds=%llu",
                   (unsigned long long)args_ms(&cli->args, "min", 0) / 1000);
    }
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK && cli->args.n_rest > 0)
        lag_of_group(cli, cli->args.rest[0], body);
    else if (rc == CLI_OK)
        table_show(cli, body, columns, countof(columns), "no group is behind");
    buf_free(&path);
    return rc;
}

// What a seek would do: path ends with "/seek".
static int seek_preview(struct cli *cli, struct buf *path, const char *when)
{
    static const struct column columns[] = {
        {"partitions moved back", "partitionsBack", CELL_COUNT},
        {"partitions moved ahead", "partitionsAhead", CELL_COUNT},
        {"delivered again", "again", CELL_COUNT},
        {"skipped", "skipped", CELL_COUNT},
        {"lag afterwards", "waiting", CELL_COUNT},
        {"leases that end", "leases", CELL_COUNT},
    };
    span body;

    if (when)
        path_param(path, "timestamp", when);
    else
        path_param(path, "toEnd", "true");
    int rc = ask(cli, "GET", buf_span(path), SPAN_NONE, &body);
    if (rc == CLI_OK)
        record_show(cli, body, columns, countof(columns));
    return rc;
}

static int seek(struct cli *cli)
{
    const char *group = cli->args.rest[0], *queue = cli->args.rest[1];
    const char *partition = args_text(&cli->args, "partition");
    bool end = args_has(&cli->args, "to-end"), start = args_has(&cli->args, "to-start");
    char when[ARGS_TIME_SIZE] = "1970-01-01T00:00:00Z";
    bool timed = args_time(&cli->args, "to", when);
    struct buf path = {0}, request = {0};
    span body;

    if (end + start + timed != 1)
        return ask_complain(cli, CLI_USAGE, "specify --to-start, --to-end or --to TIME");
    if (partition && !end)
        return ask_complain(cli, CLI_USAGE, "with --partition only --to-end is possible");
    if (partition && args_has(&cli->args, "dry-run"))
        return ask_complain(cli, CLI_USAGE, "--dry-run and --partition exclude each other");
    path_start(&path, "/api/v1/consumer-groups");
    path_part(&path, group);
    buf_put_lit(&path, "/queues");
    path_part(&path, queue);
    if (partition) {
        buf_put_lit(&path, "/partitions");
        path_part(&path, partition);
    }
    buf_put_lit(&path, "/seek");
    if (args_has(&cli->args, "dry-run")) {
        int rc = seek_preview(cli, &path, end ? NULL : when);
        buf_free(&path);
        return rc;
    }
    if (end)
        buf_put_lit(&request, "{\"toEnd\":true}");
    else
        buf_printf(&request, "{\"timestamp\":\"%s\"}", when);
    int rc = ask(cli, "POST", buf_span(&path), buf_span(&request), &body);
    bool moved = rc == CLI_OK && (partition ? pick_bool(body, "updated")
                                            : pick_int(body, "partitionsUpdated") > 0);
    if (rc == CLI_OK && cli->out.json)
        out_line(body);
    if (rc == CLI_OK && !moved)
        rc = ask_complain(cli, CLI_NOTHING, "the group %s has no position in %s%s%s", group,
                          queue, partition ? "/" : "", partition ? partition : "");
    else if (cli->out.json)
        ; // the answer says it all
    else if (rc == CLI_OK && partition)
        out_note(&cli->out, "%s is at the end of %s/%s", group, queue, partition);
    else if (rc == CLI_OK)
        out_note(&cli->out, "%s was moved on %lld partitions of %s", group,
                 (long long)pick_int(body, "partitionsUpdated"), queue);
    buf_free(&path);
    buf_free(&request);
    return rc;
}

static int cmd_group_forget(struct cli *cli)
{
    const char *group = cli->args.rest[0], *queue = args_text(&cli->args, "queue");
    struct buf path = {0};
    span body;
    int rc = confirm(cli, "remove the position of the group %s%s%s", group, queue ? " on " : "",
                     queue ? queue : "");

    if (rc != CLI_OK)
        return rc;
    path_start(&path, "/api/v1/consumer-groups");
    path_part(&path, group);
    if (queue) {
        buf_put_lit(&path, "/queues");
        path_part(&path, queue);
    }
    rc = ask(cli, "DELETE", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK && cli->out.json)
        out_line(body);
    else if (rc == CLI_OK)
        out_note(&cli->out, "%s was removed from %lld partitions", group,
                 (long long)pick_int(body, "deletedPartitions"));
    buf_free(&path);
    return rc;
}

static const struct cli_option list_options[] = {
    {"queue", 0, CLI_TEXT, "NAME", "only groups of this queue"},
    {"search", 0, CLI_TEXT, "TEXT", "only names of groups or queues that contain it"},
    {"lag", 0, CLI_FLAG, NULL, "furthest behind first (by name)"},
    {"limit", 'n', CLI_COUNT, "N", "maximum number of entries (all)"},
};
static const struct cli_option lag_options[] = {
    {"min", 0, CLI_DURATION, "TIME", "without GROUP: at least this far behind (0s)"},
    {"queue", 0, CLI_TEXT, "NAME", "on this queue only, most messages behind first"},
    {"search", 0, CLI_TEXT, "TEXT", "with --queue: only names that contain it"},
    {"limit", 'n', CLI_COUNT, "N", "with --queue: maximum number of partitions (100)"},
};
static const struct cli_option seek_options[] = {
    {"to-start", 0, CLI_FLAG, NULL, "deliver all stored messages again"},
    {"to-end", 0, CLI_FLAG, NULL, "skip all stored messages"},
    {"to", 0, CLI_TIME, "TIME", "after the last message of this time: ISO 8601, now or -2h"},
    {"partition", 'p', CLI_TEXT, "NAME", "only this partition, with --to-end"},
    {"dry-run", 0, CLI_FLAG, NULL, "only show how many messages would be repeated or skipped"},
};
static const struct cli_option rm_options[] = {
    {"queue", 0, CLI_TEXT, "NAME", "on this queue only"},
    CONFIRM_OPTION,
};

static const struct cli_command group_ls = {
    .name = "ls",
    .args = "",
    .summary = "list consumer groups with their lag",
    .examples = "queen group ls --queue orders|the consumers of orders\n"
                "queen group ls --lag -n 10|the ten that are furthest behind",
    CLI_OPTIONS(list_options),
    .run = cmd_group_list,
};
static const struct cli_command group_lag = {
    .name = "lag",
    .args = "[GROUP]",
    .summary = "list partitions with lag, of one group or all",
    .examples = "queen group lag ledger|partition by partition\n"
                "queen group lag ledger --queue orders -n 20|the worst 20 of one queue\n"
                "queen group lag --min 10m|all groups that are ten minutes behind",
    CLI_OPTIONS(lag_options),
    .run = lag,
};
static const struct cli_command group_seek = {
    .name = "seek",
    .args = "GROUP QUEUE",
    .summary = "move a group to a position in a queue",
    .about =
        "Leases of the group end. Queue mode is the group __QUEUE_MODE__. Exit code 4: the "
        "group has no position there.",
    .examples = "queen group seek ledger orders --to -2h|two hours back\n"
                "queen group seek ledger orders --to-end|skip everything",
    CLI_OPTIONS(seek_options),
    .run = seek,
};
static const struct cli_command group_rm = {
    .name = "rm",
    .args = "GROUP",
    .summary = "remove a group: its position and its subscriptions",
    .examples = "queen group rm ledger --queue orders --yes|on one queue",
    CLI_OPTIONS(rm_options),
    .run = cmd_group_forget,
};
static const struct cli_command *const subs[] = {&group_ls, &group_lag, &group_seek, &group_rm,
                                                 NULL};
const struct cli_command cli_group = {
    .name = "group",
    .summary = "list, move and remove consumer groups",
    .subs = subs,
};
