// `queen dlq`: dead-lettered messages.
#include <stdio.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"
#include "json/write.h"

enum { PAGE = 100 };

static void path_page(struct cli *cli, struct buf *path, const char *queue, uint64_t limit,
                      uint64_t offset)
{
    char when[ARGS_TIME_SIZE];

    path_start(path, "/api/v1/dlq");
    path_param(path, "queue", queue);
    path_param(path, "partition", args_text(&cli->args, "partition"));
    path_param(path, "consumerGroup", args_text(&cli->args, "group"));
    if (args_time(&cli->args, "from", when))
        path_param(path, "from", when);
    if (args_time(&cli->args, "to", when))
        path_param(path, "to", when);
    buf_printf(path, "%climit=%llu&offset=%llu", memchr(path->ptr, '?', path->len) ? '&' : '?',
               (unsigned long long)limit, (unsigned long long)offset);
}

static int cmd_dlq_list(struct cli *cli)
{
    static const struct column columns[] = {
        {"FAILED", "failedAt", CELL_TIME},
        {"QUEUE", "queue", CELL_TEXT},
        {"PARTITION", "partition", CELL_TEXT},
        {"GROUP", "consumerGroup", CELL_TEXT},
        {"TRANSACTION ID", "transactionId", CELL_LONG},
        {"RETRIES", "retryCount", CELL_COUNT},
        {"ERROR", "errorMessage", CELL_LONG},
    };
    const char *queue = cli->args.n_rest > 0 ? cli->args.rest[0] : NULL;
    uint64_t wanted = args_count(&cli->args, "limit", PAGE);
    uint64_t offset = args_count(&cli->args, "offset", 0);
    struct buf path = {0};
    span body;

    path_page(cli, &path, queue, wanted, offset);
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK) {
        table_show(cli, pick(body, "messages"), columns, countof(columns), "no dead letters");
        uint64_t total = (uint64_t)pick_int(body, "total");
        if (total > wanted && total - wanted > offset && !cli->out.json)
            out_note(&cli->out, "%llu in total; --limit shows more", (unsigned long long)total);
    }
    buf_free(&path);
    return rc;
}

static int cmd_dlq_groups(struct cli *cli)
{
    static const struct column columns[] = {
        {"COUNT", "count", CELL_COUNT},      {"QUEUE", "queue", CELL_TEXT},
        {"LAST", "lastFailedAt", CELL_TIME}, {"FIRST", "firstFailedAt", CELL_TIME},
        {"ERROR", "error", CELL_LONG},
    };
    struct buf path = {0};
    char when[ARGS_TIME_SIZE];
    span body;

    path_start(&path, "/api/v1/dlq/groups");
    path_param(&path, "queue", cli->args.n_rest > 0 ? cli->args.rest[0] : NULL);
    path_param(&path, "partition", args_text(&cli->args, "partition"));
    path_param(&path, "consumerGroup", args_text(&cli->args, "group"));
    if (args_time(&cli->args, "from", when))
        path_param(&path, "from", when);
    if (args_time(&cli->args, "to", when))
        path_param(&path, "to", when);
    int rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
    if (rc == CLI_OK) {
        table_show(cli, pick(body, "groups"), columns, countof(columns), "no dead letters");
        if (pick_bool(body, "truncated") && !cli->out.json)
            out_note(&cli->out, "only the newest %lld were counted",
                     (long long)pick_int(body, "counted"));
    }
    buf_free(&path);
    return rc;
}

// Searches the pages, newest first, for a transaction id or message id.
static int cmd_dlq_find(struct cli *cli, const char *queue, const char *id, span *found)
{
    struct buf path = {0};
    uint64_t offset = 0;
    int rc;

    *found = SPAN_NONE;
    do {
        span body, rest, item;
        uint64_t seen = 0;
        path_page(cli, &path, queue, PAGE, offset);
        rc = ask(cli, "GET", buf_span(&path), SPAN_NONE, &body);
        rest = rc == CLI_OK ? pick(body, "messages") : SPAN_NONE;
        while (!found->ptr && pick_next(&rest, &item)) {
            seen++;
            if (span_eq(pick_text(item, "transactionId", &cli->arena), span_of(id)) ||
                span_eq(pick_text(item, "id", &cli->arena), span_of(id)))
                *found = item;
        }
        offset += PAGE;
        if (seen < PAGE)
            break;
    } while (rc == CLI_OK && !found->ptr);
    buf_free(&path);
    return rc;
}

static int cmd_dlq_show(struct cli *cli)
{
    static const struct column columns[] = {
        {"queue", "queue", CELL_TEXT},
        {"partition", "partition", CELL_TEXT},
        {"partition id", "partitionId", CELL_TEXT},
        {"transaction id", "transactionId", CELL_TEXT},
        {"message id", "id", CELL_TEXT},
        {"group", "consumerGroup", CELL_TEXT},
        {"pushed", "createdAt", CELL_TIME},
        {"failed", "failedAt", CELL_TIME},
        {"retries", "retryCount", CELL_COUNT},
        {"error", "errorMessage", CELL_TEXT},
        {"payload", "data", CELL_TEXT},
    };
    span letter;
    int rc = cmd_dlq_find(cli, cli->args.rest[0], cli->args.rest[1], &letter);

    if (rc == CLI_OK && !letter.ptr)
        return ask_complain(cli, CLI_NOTHING,
                            "no dead letter \"%s\" in %s; see queen dlq ls %s",
                            cli->args.rest[1], cli->args.rest[0], cli->args.rest[0]);
    if (rc == CLI_OK)
        record_show(cli, letter, columns, countof(columns));
    return rc;
}

// ---- redrive ----

// The request without its end; *chosen: it selects dead letters.
static void put_request(struct cli *cli, struct buf *b, bool *chosen)
{
    const struct args *a = &cli->args;
    char when[ARGS_TIME_SIZE];

    buf_putc(b, '{');
    ask_put_text(b, "queue", a->n_rest > 0 ? a->rest[0] : NULL);
    ask_put_text(b, "partition", args_text(a, "partition"));
    ask_put_text(b, "consumerGroup", args_text(a, "group"));
    ask_put_text(b, "error", args_text(a, "error"));
    ask_put_text(b, "exactError", args_text(a, "exact-error"));
    if (args_time(a, "from", when))
        ask_put_text(b, "from", when);
    if (args_time(a, "to", when))
        ask_put_text(b, "to", when);
    for (size_t i = 1; i < a->n_rest; i++) {
        buf_put(b, i == 1 ? SPAN(",\"ids\":[") : SPAN(","));
        js_put_text(b, span_of(a->rest[i]));
    }
    if (a->n_rest > 1)
        buf_putc(b, ']');
    *chosen = b->len > 1;
    if (!*chosen)
        buf_put_lit(b, "\"all\":true");
    ask_put_text(b, "targetQueue", args_text(a, "into"));
    if (args_has(a, "rate"))
        buf_printf(b, ",\"ratePerSecond\":%llu", (unsigned long long)args_count(a, "rate", 1));
}

// The server processes bounded batches; each is all or nothing.
static int redrive(struct cli *cli)
{
    uint64_t left = args_count(&cli->args, "limit", UINT64_MAX), done = 0;
    struct buf fixed = {0}, request = {0};
    const char *last_due = NULL;
    bool chosen, more = true;

    put_request(cli, &fixed, &chosen);
    int rc = CLI_OK;
    if (!chosen && !args_has(&cli->args, "all"))
        rc = ask_complain(cli, CLI_USAGE, "specify a QUEUE, a filter like --group, or --all");
    while (rc == CLI_OK && more && left > 0) {
        span body;
        buf_reset(&request);
        buf_put(&request, buf_span(&fixed));
        buf_printf(&request, ",\"limit\":%llu}",
                   (unsigned long long)(left < 1000 ? left : 1000));
        rc = ask_patiently(cli, "POST", SPAN("/api/v1/dlq/redrive"), buf_span(&request), 120000,
                           &body);
        if (rc != CLI_OK)
            break;
        uint64_t n = (uint64_t)pick_int(body, "redriven");
        done += n;
        left -= n < left ? n : left;
        more = pick_bool(body, "more") && n > 0;
        const char *due = pick_cstr(body, "lastDueAt", &cli->arena);
        last_due = due ? due : last_due;
    }
    buf_free(&fixed);
    buf_free(&request);
    if (rc != CLI_OK && done == 0)
        return rc;
    if (cli->out.json)
        printf("{\"redriven\":%llu,\"lastDueAt\":%s%s%s}\n", (unsigned long long)done,
               last_due ? "\"" : "", last_due ? last_due : "null", last_due ? "\"" : "");
    else
        out_note(&cli->out, "%llu redriven", (unsigned long long)done);
    return rc == CLI_OK && done == 0 ? CLI_NOTHING : rc;
}

#define FILTERS                                                                  \
    {"group", 'g', CLI_TEXT, "NAME", "of this consumer group"},                  \
        {"partition", 'p', CLI_TEXT, "NAME", "of this partition"},               \
        {"from", 0, CLI_TIME, "TIME", "failed at this time or later; also -2h"}, \
    {                                                                            \
        "to", 0, CLI_TIME, "TIME", "failed at this time or earlier"              \
    }

static const struct cli_option list_options[] = {
    FILTERS,
    {"limit", 'n', CLI_COUNT, "N", "maximum number of entries (100)"},
    {"offset", 0, CLI_COUNT, "N", "number of entries to skip (0)"},
};
static const struct cli_option show_options[] = {FILTERS};
static const struct cli_option redrive_options[] = {
    FILTERS,
    {"error", 0, CLI_TEXT, "TEXT", "whose error contains this, ignoring case"},
    {"exact-error", 0, CLI_TEXT, "TEXT", "whose error is this, as queen dlq groups shows it"},
    {"into", 0, CLI_TEXT, "QUEUE",
     "push them there as new messages (default: deliver to the same group)"},
    {"rate", 0, CLI_COUNT, "N", "deliver this many per second (all at once)"},
    {"limit", 'n', CLI_COUNT, "N", "redrive at most this many, oldest failures first (all)"},
    {"all", 0, CLI_FLAG, NULL, "all dead letters"},
};

static const struct cli_command dlq_ls = {
    .name = "ls",
    .args = "[QUEUE]",
    .summary = "list dead letters, the newest failure first",
    .examples = "queen dlq ls orders --group ledger|of one consumer group\n"
                "queen dlq ls --from -1h --json | jq -r .errorMessage | sort | uniq "
                "-c|which errors there were",
    CLI_OPTIONS(list_options),
    .run = cmd_dlq_list,
};
static const struct cli_command dlq_groups = {
    .name = "groups",
    .args = "[QUEUE]",
    .summary = "count dead letters by queue and error, the most frequent first",
    .examples = "queen dlq groups --from -1h|what failed in the last hour",
    CLI_OPTIONS(show_options),
    .run = cmd_dlq_groups,
};
static const struct cli_command dlq_show = {
    .name = "show",
    .args = "QUEUE ID",
    .summary = "show a dead letter with its payload and error",
    .about = "ID is the transaction id or the message id.",
    .examples = "queen dlq show orders inv-41|the payload of what failed",
    CLI_OPTIONS(show_options),
    .run = cmd_dlq_show,
};
static const struct cli_command dlq_redrive = {
    .name = "redrive",
    .args = "[QUEUE] [ID]...",
    .summary = "deliver dead letters again",
    .about =
        "They are delivered again to the consumer group that failed, and only to it, or "
        "pushed with --into as new messages of another queue. ID is a message id. Each dead "
        "letter is redriven once, even if the command is repeated. Exit code 4: none matched.",
    .examples = "queen dlq redrive orders --error timeout --rate 50|what timed out, slowly\n"
                "queen dlq redrive --all --into repair|everything, to look at it",
    CLI_OPTIONS(redrive_options),
    .run = redrive,
};
static const struct cli_command *const subs[] = {&dlq_ls, &dlq_groups, &dlq_show, &dlq_redrive,
                                                 NULL};
const struct cli_command cli_dlq = {
    .name = "dlq",
    .summary = "list, count, show and redrive dead letters",
    .subs = subs,
};
