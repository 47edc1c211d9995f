// `queen export`: copies all messages of a queue to a file, resumable.
//
// A consumer group made for the export records on the server which messages the file holds: a
// batch is written, then acknowledged, then recorded in FILE.export. After a crash the file
// may hold a batch that was not acknowledged; its messages are skipped when they are delivered
// again.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <queen/message.h>

#include "base/attrs.h"
#include "base/str.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/file.h"
#include "cli/message.h"
#include "cli/own_group.h"
#include "cli/pick.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "json/write.h"

enum { BATCH = OWN_GROUP_BATCH };

struct exporting {
    struct cli *cli;
    const char *queue, *path, *state_path;
    const char *group;
    FILE *file;
    uint64_t messages, bytes; // in the file and acknowledged
    span *seen;               // ids in the file after `bytes`
    size_t n_seen;
    struct progress progress;
    bool waited;
};

static int cmd_export_start(struct exporting *e);
static int cmd_export_resume(struct exporting *e);
static int read_rest(struct exporting *e);
static int cmd_export_copy(struct exporting *e);
static int write_batch(struct exporting *e, const struct queen_batch *batch);
static int cmd_export_note(struct exporting *e);
static int lag(struct exporting *e, int64_t *n);
static int cmd_export_finish(struct exporting *e);

static const char *with_suffix(struct cli *cli, const char *path, const char *suffix)
{
    struct buf b = {0};

    buf_printf(&b, "%s%s", path, suffix);
    const char *text = arena_cstr(&cli->arena, buf_span(&b));
    buf_free(&b);
    return text;
}

static int export(struct cli *cli)
{
    struct exporting e = {.cli = cli, .queue = cli->args.rest[0], .path = cli->args.rest[1]};

    e.state_path = with_suffix(cli, e.path, ".export");
    bool again = args_has(&cli->args, "resume");
    int64_t total;
    int rc = again ? cmd_export_resume(&e) : CLI_OK;
    if (rc == CLI_OK)
        rc = lag(&e, &total); // checks that the queue exists
    if (rc == CLI_OK && !again)
        rc = cmd_export_start(&e);
    if (rc != CLI_OK)
        return rc;
    progress_begin(&e.progress, &cli->out, e.messages + (uint64_t)total);
    stop_watch(NULL, NULL);
    rc = cmd_export_copy(&e);
    stop_unwatch();
    progress_end(&e.progress, e.messages, e.messages);
    if (fclose(e.file) != 0 && rc == CLI_OK)
        rc = ask_complain(cli, CLI_FAILED, "cannot write %s: %s", e.path, strerror(errno));
    if (rc == CLI_OK && stop_was_asked())
        return ask_complain(cli, CLI_FAILED,
                            "stopped after %llu messages; continue with --resume",
                            (unsigned long long)e.messages);
    return rc == CLI_OK ? cmd_export_finish(&e) : rc;
}

// ---- starting ----

static int open_file(struct exporting *e, const char *mode)
{
    e->file = fopen(e->path, mode);
    if (!e->file)
        return ask_complain(e->cli, errno == EEXIST ? CLI_USAGE : CLI_FAILED,
                            errno == EEXIST ? "%s already exists (%s); --resume continues "
                                              "an interrupted export"
                                            : "cannot write %s: %s",
                            e->path, strerror(errno));
    return CLI_OK;
}

static int cmd_export_start(struct exporting *e)
{
    int rc = open_file(e, "wxe");

    if (rc != CLI_OK)
        return rc;
    e->group = own_group_name(e->cli, "export");
    return cmd_export_note(e);
}

static int cmd_export_resume(struct exporting *e)
{
    struct buf text = {0};
    struct fault f;
    bool exists;

    if (file_read(e->state_path, &text, &exists, &f) != 0)
        return ask_complain(e->cli, CLI_FAILED, "%s", f.text);
    span state = arena_copy(&e->cli->arena, buf_span(&text));
    buf_free(&text);
    if (!exists)
        return ask_complain(e->cli, CLI_NOTHING,
                            "%s does not exist: no export was interrupted here", e->state_path);
    e->group = pick_cstr(state, "group", &e->cli->arena);
    e->messages = (uint64_t)pick_int(state, "messages");
    e->bytes = (uint64_t)pick_int(state, "bytes");
    const char *queue = pick_cstr(state, "queue", &e->cli->arena);
    if (!e->group || !queue || strcmp(queue, e->queue) != 0)
        return ask_complain(e->cli, CLI_USAGE, "%s does not belong to an export of %s",
                            e->state_path, e->queue);
    return read_rest(e);
}

// Reads the file after the recorded position: complete lines count, an incomplete one is cut
// off.
static int read_rest(struct exporting *e)
{
    struct stat st;
    int rc = open_file(e, "r+e");

    if (rc != CLI_OK)
        return rc;
    if (fstat(fileno(e->file), &st) != 0 || (uint64_t)st.st_size < e->bytes)
        return ask_complain(e->cli, CLI_FAILED,
                            "%s is shorter than it was; start again without --resume", e->path);
    size_t len = (size_t)((uint64_t)st.st_size - e->bytes);
    char *rest = arena_alloc(&e->cli->arena, len + 1);
    if (fseeko(e->file, (off_t)e->bytes, SEEK_SET) != 0 || fread(rest, 1, len, e->file) != len)
        return ask_complain(e->cli, CLI_FAILED, "cannot read %s", e->path);
    span lines = {rest, len}, line;
    uint64_t whole = e->bytes;
    e->seen = arena_new_array(&e->cli->arena, span, BATCH + 1);
    while (lines.ptr && e->n_seen < BATCH && str_split(&lines, '\n', &line) && lines.ptr) {
        e->seen[e->n_seen++] = pick_text(line, "id", &e->cli->arena);
        whole += line.len + 1;
    }
    if (ftruncate(fileno(e->file), (off_t)whole) != 0 ||
        fseeko(e->file, (off_t)whole, SEEK_SET) != 0)
        return ask_complain(e->cli, CLI_FAILED, "cannot cut %s: %s", e->path, strerror(errno));
    e->messages += e->n_seen;
    return CLI_OK;
}

// ---- copying ----

static int cmd_export_copy(struct exporting *e)
{
    struct queen_pop pop = {
        .queue = e->queue,
        .group = e->group,
        .batch = BATCH,
        .partitions = BATCH,
        .subscription_from = "1970-01-01T00:00:00Z",
    };
    struct queen_error err;

    while (!stop_was_asked()) {
        struct queen_batch *batch = queen_pop(e->cli->client, &pop, &err);
        if (!batch)
            return ask_failed(e->cli, &err);
        size_t n = batch->n;
        int rc = n > 0 ? write_batch(e, batch) : CLI_OK;
        queen_batch_free(batch);
        if (rc != CLI_OK)
            return rc;
        progress_update(&e->progress, e->messages, e->messages);
        pop.wait = false;
        if (n > 0)
            continue;
        int64_t left;
        rc = lag(e, &left);
        if (rc != CLI_OK || left == 0)
            return rc;
        // Delayed messages, or messages still leased to a killed export: wait for them.
        if (!e->waited && !e->cli->out.quiet)
            ask_complain(e->cli, 0, "waiting for %lld messages that cannot be delivered yet",
                         (long long)left);
        e->waited = true;
        pop.wait = true;
        pop.timeout_ms = 1000;
    }
    return CLI_OK;
}

static bool was_seen(const struct exporting *e, const char *id)
{
    for (size_t i = 0; i < e->n_seen; i++)
        if (span_eq(e->seen[i], span_of(id)))
            return true;
    return false;
}

static int write_batch(struct exporting *e, const struct queen_batch *batch)
{
    struct buf b = {0};
    uint64_t fresh = 0;

    for (size_t i = 0; i < batch->n; i++) {
        if (was_seen(e, batch->items[i].id))
            continue;
        message_write(&b, &batch->items[i]);
        buf_putc(&b, '\n');
        fresh++;
    }
    bool ok = fwrite(b.ptr, 1, b.len, e->file) == b.len && fflush(e->file) == 0 &&
              fdatasync(fileno(e->file)) == 0;
    buf_free(&b);
    if (!ok)
        return ask_complain(e->cli, CLI_FAILED, "cannot write %s: %s; continue with --resume",
                            e->path, strerror(errno));
    int rc = own_group_settle(e->cli, batch, QUEEN_ACK_COMPLETED);
    if (rc != CLI_OK)
        return rc;
    e->messages += fresh;
    e->bytes = (uint64_t)ftello(e->file);
    return cmd_export_note(e);
}

static int cmd_export_note(struct exporting *e)
{
    struct buf b = {0};
    struct fault f;

    buf_put_lit(&b, "{\"queue\":");
    js_put_text(&b, span_of(e->queue));
    buf_printf(&b, ",\"group\":\"%s\",\"messages\":%llu,\"bytes\":%llu}\n", e->group,
               (unsigned long long)e->messages, (unsigned long long)e->bytes);
    int rc = file_replace(e->state_path, buf_span(&b), 0644, &f);
    buf_free(&b);
    return rc == 0 ? CLI_OK : ask_complain(e->cli, CLI_FAILED, "%s", f.text);
}

// Number of messages not exported yet.
static int lag(struct exporting *e, int64_t *n)
{
    struct buf path = {0};
    span body, item;

    *n = 0;
    path_start(&path, "/api/v1/status/queues");
    path_part(&path, e->queue);
    int rc = ask(e->cli, "GET", buf_span(&path), SPAN_NONE, &body);
    buf_free(&path);
    if (rc == CLI_OK && e->messages == 0)
        // nothing was popped yet, so the group does not exist
        *n = pick_int(body, "totals.total");
    if (rc == CLI_OK)
        rc = ask(e->cli, "GET", SPAN("/api/v1/consumer-groups"), SPAN_NONE, &body);
    while (rc == CLI_OK && e->group && pick_next(&body, &item))
        if (span_eq(pick_text(item, "name", &e->cli->arena), span_of(e->group)))
            *n = pick_int(item, "totalLag");
    return rc;
}

static int cmd_export_finish(struct exporting *e)
{
    own_group_forget(e->cli, e->group);
    if (unlink(e->state_path) != 0)
        return ask_complain(e->cli, CLI_FAILED, "cannot remove %s", e->state_path);
    if (e->cli->out.json)
        printf("{\"messages\":%llu,\"bytes\":%llu}\n", (unsigned long long)e->messages,
               (unsigned long long)e->bytes);
    else
        out_note(&e->cli->out, "%llu messages of %s are in %s", (unsigned long long)e->messages,
                 e->queue, e->path);
    return CLI_OK;
}

static const struct cli_option options[] = {
    {"resume", 'r', CLI_FLAG, NULL, "continue an interrupted export into this file"},
};

const struct cli_command cli_export = {
    .name = "export",
    .args = "QUEUE FILE",
    .summary = "copy all messages of a queue into a file",
    .about = "Writes one message per line, like tail, without consuming messages. The order "
             "within a partition is kept. FILE.export records the progress until it is done; "
             "after an interruption --resume adds the missing messages, and none twice.",
    .examples = "queen export orders orders.ndjson|all stored messages\n"
                "queen export orders orders.ndjson --resume|after an interruption",
    CLI_OPTIONS(options),
    .run = export,
};
