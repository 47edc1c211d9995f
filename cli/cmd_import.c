// `queen import`: stores messages of a file in a queue, resumable.
//
// Messages keep their partitions and transaction ids, so a message pushed twice is stored
// once. The position in FILE.import only saves the time of pushing them again.
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <queen/producer.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/envelope.h"
#include "cli/file.h"
#include "cli/pick.h"
#include "cli/progress.h"
#include "cli/stop.h"
#include "cli/stream.h"
#include "json/write.h"

struct importing {
    struct cli *cli;
    const char *queue, *path, *state_path;
    struct queen_producer *producer;
    struct progress progress;
    uint64_t skipped;     // bytes that were imported before
    pthread_mutex_t lock; // guards what the client's thread writes
    uint64_t settled;     // bytes of the file whose messages are stored
    uint64_t stored, duplicates, failed;
    struct queen_error first_error;
};

static int find_place(struct importing *m);
static int push_all(struct importing *m, int fd);
static void on_result(const struct queen_push_result *r, const struct queen_error *err,
                      void *tag, void *ctx);
static int cmd_import_note(struct importing *m);
static int cmd_import_report(struct importing *m, int rc);

static int import(struct cli *cli)
{
    struct importing m = {.cli = cli,
                          .queue = cli->args.rest[0],
                          .path = cli->args.rest[1],
                          .lock = PTHREAD_MUTEX_INITIALIZER};
    struct queen_error err;
    struct stat st;
    struct buf b = {0};

    buf_printf(&b, "%s.import", m.path);
    m.state_path = arena_cstr(&cli->arena, buf_span(&b));
    buf_free(&b);
    int rc = find_place(&m);
    if (rc != CLI_OK)
        return rc;
    int fd = open(m.path, O_RDONLY | O_CLOEXEC);
    if (fd < 0 || fstat(fd, &st) != 0 || lseek(fd, (off_t)m.skipped, SEEK_SET) < 0)
        return ask_complain(cli, CLI_FAILED, "cannot read %s: %s", m.path, strerror(errno));
    // One request in flight: results come in the order of the file.
    m.producer = queen_producer_new(
        cli->client,
        &(struct queen_producer_options){.batch_count = 1000,
                                         .linger_ms = 50,
                                         .close_timeout_ms =
                                             (unsigned)args_ms(&cli->args, "timeout", 30000),
                                         .on_result = on_result,
                                         .ctx = &m},
        &err);
    if (!m.producer) {
        close(fd);
        return ask_failed(cli, &err);
    }
    progress_begin(&m.progress, &cli->out, (uint64_t)st.st_size);
    stop_watch(NULL, NULL);
    rc = push_all(&m, fd);
    queen_producer_free(m.producer); // each message has its result after this
    stop_unwatch();
    close(fd);
    bool whole = rc == CLI_OK && m.failed == 0 && !stop_was_asked();
    progress_end(&m.progress, whole ? (uint64_t)st.st_size : m.settled,
                 m.stored + m.duplicates);
    return cmd_import_report(&m, rc);
}

static int find_place(struct importing *m)
{
    struct buf text = {0};
    struct fault f;
    bool exists;

    if (!args_has(&m->cli->args, "resume"))
        return CLI_OK;
    if (file_read(m->state_path, &text, &exists, &f) != 0)
        return ask_complain(m->cli, CLI_FAILED, "%s", f.text);
    span queue = pick_text(buf_span(&text), "queue", &m->cli->arena);
    bool same = exists && span_eq(queue, span_of(m->queue));
    m->skipped = m->settled = same ? (uint64_t)pick_int(buf_span(&text), "bytes") : 0;
    buf_free(&text);
    if (exists && !same)
        return ask_complain(m->cli, CLI_USAGE, "%s does not belong to an import into %s",
                            m->state_path, m->queue);
    return CLI_OK;
}

static int push_all(struct importing *m, int fd)
{
    struct stream s;
    struct fault f;
    span value;
    int more, rc = CLI_OK;

    stream_init(&s, fd, m->path, false);
    while (rc == CLI_OK && !stop_was_asked() && (more = stream_next(&s, &value, &f)) != 0) {
        struct queen_message message = {.queue = m->queue};
        struct queen_error err;
        struct arena scratch;
        uintptr_t end = (uintptr_t)(m->skipped + stream_offset(&s));

        arena_init(&scratch);
        if (more != 1)
            rc = ask_complain(m->cli, CLI_FAILED, "%s", f.text);
        else if (!envelope_read(&message, value, &scratch))
            rc = ask_complain(m->cli, CLI_FAILED,
                              "%s holds a value without \"data\" before byte %llu; queen push "
                              "-f accepts payloads alone",
                              m->path, (unsigned long long)end);
        // The tag is a number, not an address: nothing to allocate per message.
        else if (queen_producer_send(m->producer, &message, (void *)end, // NOLINT
                                     &err) != 0)
            rc = ask_failed(m->cli, &err);
        arena_deinit(&scratch);

        pthread_mutex_lock(&m->lock);
        uint64_t settled = m->settled, n = m->stored + m->duplicates;
        bool failed = m->failed > 0;
        pthread_mutex_unlock(&m->lock);
        progress_update(&m->progress, settled, n);
        if (failed)
            break;
    }
    stream_deinit(&s);
    return rc;
}

// tag: where the message ends in the file.
static void on_result(const struct queen_push_result *r, const struct queen_error *err,
                      void *tag, void *ctx)
{
    struct importing *m = ctx;

    pthread_mutex_lock(&m->lock);
    if (err->code != QUEEN_OK) {
        if (m->failed++ == 0)
            m->first_error = *err;
    } else {
        m->duplicates += r->status == QUEEN_DUPLICATE;
        m->stored += r->status != QUEEN_DUPLICATE;
        if (m->failed == 0)
            m->settled = (uint64_t)(uintptr_t)tag;
    }
    pthread_mutex_unlock(&m->lock);
}

static int cmd_import_note(struct importing *m)
{
    struct buf b = {0};
    struct fault f;

    buf_put_lit(&b, "{\"queue\":");
    js_put_text(&b, span_of(m->queue));
    buf_printf(&b, ",\"bytes\":%llu}\n", (unsigned long long)m->settled);
    int rc = file_replace(m->state_path, buf_span(&b), 0644, &f);
    buf_free(&b);
    return rc == 0 ? CLI_OK : ask_complain(m->cli, CLI_FAILED, "%s", f.text);
}

static int cmd_import_report(struct importing *m, int rc)
{
    struct cli *cli = m->cli;

    if (rc == CLI_OK && m->failed > 0)
        rc = ask_failed(cli, &m->first_error);
    if (rc == CLI_OK && stop_was_asked())
        rc = CLI_FAILED;
    if (rc != CLI_OK) {
        unsigned long long there = m->stored + m->duplicates;
        ask_complain(cli, 0, "%llu messages are stored; continue with --resume", there);
        (void)!cmd_import_note(m);
        return rc;
    }
    if (unlink(m->state_path) != 0 && errno != ENOENT)
        return ask_complain(cli, CLI_FAILED, "cannot remove %s", m->state_path);
    if (cli->out.json)
        printf("{\"stored\":%llu,\"duplicates\":%llu}\n", (unsigned long long)m->stored,
               (unsigned long long)m->duplicates);
    else
        out_note(&cli->out, "%llu stored in %s, %llu duplicates", (unsigned long long)m->stored,
                 m->queue, (unsigned long long)m->duplicates);
    return CLI_OK;
}

static const struct cli_option options[] = {
    {"resume", 'r', CLI_FLAG, NULL, "continue an interrupted import of this file"},
};

const struct cli_command cli_import = {
    .name = "import",
    .args = "QUEUE FILE",
    .summary = "store the messages of an export",
    .about = "Messages keep their partitions, their order in each, and their transaction ids: "
             "a second import stores nothing twice. When it is stopped, its place is in "
             "FILE.import.",
    .examples = "queen import orders orders.ndjson --context staging|into another server\n"
                "queen import orders orders.ndjson --resume|after an interruption",
    CLI_OPTIONS(options),
    .run = import,
};
