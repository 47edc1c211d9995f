// stop.c: shutdown: drain, hang up, close the brokers, stop the database.
//
// The short cuts below lose nothing: every answered request has been committed.
#include "server/server_int.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "net/addresses.h"
#include "spool/spool.h"
#include "trace/collector.h"
#include "transfer/transfer.h"

enum {
    // Requests that are unanswered when the grace is over depend on the database; this
    // is how long they get after their clients were cut off.
    HANG_UP_MS = 3000,
    CLOSE_MS = 5000, // for brokers to close their connections to the database
};

// In order.
static void enter(struct server *s, enum server_phase phase, uint64_t limit_ms);
static void on_drained(void *ctx);
static void hang_up(struct server *s);
static void on_hung_up(void *ctx);
static void stop_workers(struct server *s);
static void on_stopped(void *ctx);
static void on_limit(uv_timer_t *limit);
static void stop_database(struct server *s);
static void on_database_stopped(void *ctx);

const struct worker_events server_worker_events = {
    .on_drained = on_drained,
    .on_hung_up = on_hung_up,
    .on_stopped = on_stopped,
};

const char *server_phase_name(const struct server *s)
{
    static const char *const names[] = {
        [STARTING] = "starting", [SERVING] = "serving",
        [DRAINING] = "draining", [HANGING_UP] = "hanging_up",
        [STOPPING] = "stopping", [STOPPING_DATABASE] = "stopping_database",
    };

    return names[s->phase];
}

static void enter(struct server *s, enum server_phase phase, uint64_t limit_ms)
{
    s->phase = phase;
    log_debug("stop.phase", "phase=%s", server_phase_name(s));
    s->n_awaited = s->n_workers;
    uv_timer_start(&s->limit, on_limit, limit_ms > 0 ? limit_ms : 1, 0);
}

void server_stop(struct server *s)
{
    s->stop_ms = uv_now(&s->loop);
    atomic_store(&s->shared.stopping, true);
    listeners_close(&s->listeners);
    if (s->phase == STARTING) {
        for (unsigned i = 0; i < s->n_early; i++)
            close(s->early[i].fd);
        free(s->early);
        stop_database(s);
        return;
    }
    sql_wake_stop(s->sql_wake);
    enter(s, DRAINING, (uint64_t)s->conf->stop_timeout_ms);
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_drain(s->workers[i]);
}

static bool is_last(struct server *s, enum server_phase phase)
{
    return s->phase == phase && --s->n_awaited == 0;
}

static void on_drained(void *ctx)
{
    struct server *s = ctx;

    if (is_last(s, DRAINING))
        hang_up(s);
}

static void hang_up(struct server *s)
{
    enter(s, HANGING_UP, HANG_UP_MS);
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_hang_up(s->workers[i]);
}

static void on_hung_up(void *ctx)
{
    struct server *s = ctx;

    if (is_last(s, HANGING_UP))
        stop_workers(s);
}

static void stop_workers(struct server *s)
{
    enter(s, STOPPING, CLOSE_MS);
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_stop(s->workers[i]);
}

static void on_stopped(void *ctx)
{
    struct server *s = ctx;

    if (!is_last(s, STOPPING))
        return;
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_free(s->workers[i]);
    free(s->workers);
    free(s->shared.workers);
    house_free(s->house);
    s->house = NULL;
    pg_transfer_free(s->shared.transfer);
    http_routes_free(s->routes);
    collector_free(s->shared.collector);
    s->shared.collector = NULL;
    addresses_free(s->addresses);
    s->addresses = NULL;
    stop_database(s);
}

static void on_limit(uv_timer_t *limit)
{
    struct server *s = limit->data;

    switch (s->phase) {
    case STARTING:
    case SERVING:
        BUG("no limit is set while %s", server_phase_name(s));
    case DRAINING:
        log_warn("stop.timeout", "why=\"requests are unanswered after the grace\" ms=%d",
                 s->conf->stop_timeout_ms);
        hang_up(s);
        break;
    case HANGING_UP:
    case STOPPING:
        log_warn("stop.forced", "phase=%s", server_phase_name(s));
        s->forced = true;
        stop_database(s);
        break;
    case STOPPING_DATABASE: // a migration is running on an external server
        log_warn("stop.forced", "phase=%s", server_phase_name(s));
        _exit(s->exit_code);
    }
}

static void stop_database(struct server *s)
{
    enter(s, STOPPING_DATABASE, CLOSE_MS);
    if (database_is_embedded(s->database))
        uv_timer_stop(&s->limit); // has a limit of its own, and is worth waiting for
    database_stop(s->database, on_database_stopped, s);
}

static void on_database_stopped(void *ctx)
{
    struct server *s = ctx;

    if (s->forced)
        _exit(s->exit_code); // worker threads still run: nothing may be freed under them
    database_free(s->database);
    spool_close(s->spool); // brokers have ended: there are no more writers
    server_close_handles(s);
}

void server_close_handles(struct server *s)
{
    if (s->peers)
        peers_close(s->peers);
    sql_wake_close(s->sql_wake);
    tls_files_close(s->tls);
    signals_close(&s->signals, NULL);
    uv_close((uv_handle_t *)&s->limit, NULL);
    mailbox_close(&s->reports, NULL, NULL);
}
