// stop.c: shuts down: drain, stop the parts, close connections, stop the database.
//
// Each step starts when the previous one has finished or has timed out.
#include <unistd.h>

#include "base/log.h"
#include "net/addresses.h"
#include "platform/platform_int.h"

enum {
    WATCH_MS = 5,      // interval at which a draining process checks whether it is done
    HANG_UP_MS = 3000, // for requests whose clients were disconnected
    CLOSE_MS = 5000,   // for parts, connections and a migration in progress
};

// In the order they run.
static void enter_phase(struct platform *p, enum platform_phase phase, uint64_t limit_ms);
static void on_drain_watch(uv_timer_t *limit);
static void stop_parts(struct platform *p);
static void close_all(struct platform *p);
static void on_stop_closed(void *ctx);
static void on_audit_closed(void *ctx);
static void on_pools_closed(void *ctx);
static void on_control_closed(void *ctx);
static void on_limit(uv_timer_t *limit);
static void stop_database(struct platform *p);
static void on_database_stopped(void *ctx);

static void enter_phase(struct platform *p, enum platform_phase phase, uint64_t limit_ms)
{
    p->phase = phase;
    log_debug("stop.phase", "phase=%s", platform_phase_name(p));
    uv_timer_start(&p->limit, on_limit, limit_ms > 0 ? limit_ms : 1, 0);
}

void platform_stop(struct platform *p)
{
    bool served = p->phase == SERVING;

    p->stop_ms = uv_now(&p->loop);
    p->phase = DRAINING;
    listeners_close(&p->listeners);
    if (!served)
        p->n_parts_running = 0; // none was started
    http_server_drain(p->http);
    uv_timer_start(&p->limit, on_drain_watch, 0, WATCH_MS);
}

static void on_drain_watch(uv_timer_t *limit)
{
    struct platform *p = limit->data;
    bool late = uv_now(&p->loop) - p->stop_ms >= (uint64_t)p->conf->stop_timeout_ms;

    if (http_server_connections(p->http) > 0 && !late)
        return;
    if (http_server_connections(p->http) > 0)
        log_warn("stop.timeout", "why=\"requests are still open\" ms=%d",
                 p->conf->stop_timeout_ms);
    stop_parts(p);
}

static void stop_parts(struct platform *p)
{
    bool started = p->n_parts_running > 0;

    enter_phase(p, STOPPING_PARTS, (uint64_t)p->conf->stop_timeout_ms + HANG_UP_MS);
    if (!started) {
        close_all(p);
        return;
    }
    for (unsigned i = 0; platform_parts[i]; i++)
        if (platform_parts[i]->stop)
            platform_parts[i]->stop(p);
}

void platform_part_stopped(struct platform *p)
{
    if (--p->n_parts_running == 0 && p->phase == STOPPING_PARTS)
        close_all(p);
}

// Requests use tenants' pools, which use the control database: close them in this order.
static void close_all(struct platform *p)
{
    enter_phase(p, CLOSING, CLOSE_MS);
    p->n_closing = 2;
    if (p->guard)
        guard_close(p->guard); // no request waits for keys any more
    http_server_close(p->http, on_stop_closed, p);
    queen_client_close(p->broker, on_stop_closed, p);
}

static void on_stop_closed(void *ctx)
{
    struct platform *p = ctx;

    if (--p->n_closing == 0)
        audit_close(p->audit, on_audit_closed, p);
}

static void on_audit_closed(void *ctx)
{
    struct platform *p = ctx;

    if (p->pools)
        tenant_pools_close(p->pools, on_pools_closed, p);
    else
        stop_database(p);
}

static void on_pools_closed(void *ctx)
{
    struct platform *p = ctx;

    p->pools = NULL;
    pg_pool_close(p->control, on_control_closed, p);
}

static void on_control_closed(void *ctx)
{
    struct platform *p = ctx;

    p->control = NULL;
    stop_database(p);
}

static void on_limit(uv_timer_t *limit)
{
    struct platform *p = limit->data;

    log_warn("stop.forced", "phase=%s", platform_phase_name(p));
    // No data is lost: everything that was acknowledged is committed.  The kernel signals the
    // embedded PostgreSQL.
    _exit(p->exit_code);
}

static void stop_database(struct platform *p)
{
    enter_phase(p, STOPPING_DATABASE, CLOSE_MS);
    if (database_is_embedded(p->database))
        uv_timer_stop(&p->limit); // it has its own limit and is worth waiting for
    database_stop(p->database, on_database_stopped, p);
}

static void on_database_stopped(void *ctx)
{
    struct platform *p = ctx;

    database_free(p->database);
    platform_close_handles(p);
}

void platform_close_handles(struct platform *p)
{
    tls_files_close(p->tls);
    addresses_free(p->addresses);
    p->addresses = NULL;
    signals_close(&p->signals, NULL);
    uv_close((uv_handle_t *)&p->limit, NULL);
}
