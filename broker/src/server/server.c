// server.c: the acceptor: starting, and dealing connections to the workers.
#include "server/server.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "http/route.h"
#include "server/banner.h"
#include "server/peer_notify.h"
#include "server/server_int.h"
#include "server/settings.h"
#include "settings/auth.h"
#include "settings/listen.h"
#include "spool/spool.h"
#include "transfer/transfer.h"

enum {
    // PostgreSQL needs 50 to 150 us for an acknowledgement that is not a completion.
    US_PER_FAILURE = 500,
    // An embedded server is up within that time unless it has to recover; brokers that try to
    // reach it earlier would only fill the log.
    UP_MS = 1000,
    ECHO_MS = 300, // a second signal this soon is the first one, sent to the group as well
};

// In the order of events.
static int server_open(struct server *s, struct fault *f);
static int open_listeners(struct server *s, struct fault *f);
static void server_abandon(struct server *s);
static void on_late(uv_timer_t *limit);
static void on_up(void *ctx);
static void begin_serving(struct server *s);
static int open_workers(struct server *s, struct fault *f);
static void on_waiting(void *ctx, const struct fault *f);
static void on_server_ready(void *ctx);
static bool may_admit(void *ctx);
static void on_accepted(void *ctx, int fd, bool tls);
static void hand_to_worker(struct server *s, int fd, bool tls);
static void on_dump(void *ctx);
static void on_failed(void *ctx, const struct fault *f);
static void on_server_reload(void *ctx);
static void on_server_stop(void *ctx, int signum);

// A broker with ten thousand consumers has as many descriptors; the hard limit is ours to use.
// Connections must leave enough of them for the database, the buffer and the log: without
// those the broker could serve nobody. Returns the number of connections to accept.
static unsigned fit_file_limit(const struct serve_conf *conf)
{
    enum { OTHER_FILES = 64 };
    struct rlimit files;
    rlim_t wanted = (rlim_t)conf->max_connections;
    rlim_t own =
        OTHER_FILES + (rlim_t)serve_conf_pool_per_worker(conf) * (rlim_t)conf->num_workers;

    if (getrlimit(RLIMIT_NOFILE, &files) != 0)
        return (unsigned)wanted;
    files.rlim_cur = files.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &files); // the read below decides
    if (getrlimit(RLIMIT_NOFILE, &files) != 0 || files.rlim_cur >= wanted + own)
        return (unsigned)wanted;
    rlim_t least = wanted < OTHER_FILES ? wanted : OTHER_FILES;
    rlim_t room = files.rlim_cur > own + least ? files.rlim_cur - own : least;
    log_info("limits.files", "limit=%llu max_connections=%d used=%llu",
             (unsigned long long)files.rlim_cur, conf->max_connections,
             (unsigned long long)room);
    return (unsigned)room;
}

// Threads for gzip of all workers, and as many as libuv has for files, names and migrations.
// Before the first use of the pool.
static void size_thread_pool(const struct serve_conf *conf)
{
    char text[16];

    snprintf(text, sizeof text, "%d", 4 + HTTP_CODING_THREADS * conf->num_workers);
    (void)setenv("UV_THREADPOOL_SIZE", text, 0); // an operator's own choice stays
}

int server_run(const struct serve_conf *conf)
{
    struct server *s = mem_new(struct server);
    struct fault f = {0};

    s->conf = conf;
    s->start_us = clock_mono_us();
    map_setup(); // before there are threads
    serve_conf_log(conf);
    s->max_connections = fit_file_limit(conf);
    size_thread_pool(conf);
    int rc = uv_loop_init(&s->loop);
    if (rc == 0)
        rc = mailbox_open(&s->reports, &s->loop);
    if (rc != 0) {
        fprintf(stderr, "queen serve: cannot make an event loop: %s\n", uv_strerror(rc));
        free(s);
        return SERVER_CANNOT_START;
    }
    uv_timer_init(&s->loop, &s->limit);
    s->limit.data = s;
    if (server_open(s, &f) != 0) {
        fprintf(stderr, "queen serve: %s\n", f.text);
        s->exit_code = f.code == QE_CONF ? SERVER_BAD_CONF : SERVER_CANNOT_START;
        server_abandon(s);
    } else {
        uv_run(&s->loop, UV_RUN_DEFAULT);
        log_info("serve.end", "code=%d", s->exit_code);
    }
    if (uv_loop_close(&s->loop) != 0)
        BUG("the acceptor left a handle open");
    mailbox_deinit(&s->reports);
    peers_free(s->peers);
    auth_free(s->auth);
    keyring_free(s->keys);
    buf_free(&s->settings);
    free(s->web_root);
    int code = s->exit_code;
    free(s);
    return code;
}

// Checks keys and the port first, so that a mistake in them is not found only after minutes of
// other work.
static int server_open(struct server *s, struct fault *f)
{
    const struct serve_conf *c = s->conf;

    int rc = server_check(c, f);
    if (rc == 0)
        rc = settings_auth(&c->jwt, &c->access, &c->tls, &s->auth, f);
    if (rc == 0)
        rc = settings_keys(c, &s->keys, f);
    if (rc != 0)
        return rc;
    rc = open_listeners(s, f);
    if (rc != 0)
        return rc;
    rc = peer_notify_open(&s->peers, &s->loop, c, &s->house, f);
    if (rc != 0)
        return rc;
    struct database_conf database = settings_database(c);
    rc = database_open(&s->database, &database, f);
    if (rc != 0)
        return rc;
    struct spool_conf spool = settings_spool(c);
    rc = spool_open(&s->spool, &spool, f);
    if (rc != 0)
        return rc;
    rc = signals_open(&s->signals, &s->loop, on_server_stop, on_dump, s);
    if (rc != 0)
        return fault_set(f, rc, "cannot watch signals: %s", uv_strerror(rc));

    bool has_files = s->tls || c->access.admin_key_file[0] != '\0' ||
                     c->jwt.revoked_file[0] != '\0' || c->access.rules_file[0] != '\0';
    s->signals.on_reload = has_files ? on_server_reload : NULL;

    struct database_events on = {.on_up = on_up,
                                 .on_ready = on_server_ready,
                                 .on_waiting = on_waiting,
                                 .on_failed = on_failed};
    uv_update_time(&s->loop); // initdb may have blocked it for long
    uv_timer_start(&s->limit, on_late, database_is_embedded(s->database) ? UP_MS : 0, 0);
    database_start(s->database, &s->loop, on, s);
    return 0;
}

static int open_listeners(struct server *s, struct fault *f)
{
    const struct serve_conf *c = s->conf;
    bool is_protected = auth_is_protected(s->auth);
    const char *host = settings_listen_host(c->host, is_protected);
    struct buf urls = {0};

    int rc = settings_tls(&c->tls, c->data_dir, &s->loop, &s->tls, f);
    if (rc != 0)
        return rc;
    rc = listeners_open(&s->listeners, &s->loop,
                        &(struct listeners_conf){.host = host,
                                                 .port = (unsigned)c->port,
                                                 .tls = s->tls && c->tls.port == 0,
                                                 .tls_port = (unsigned)c->tls.port,
                                                 .ctx = s,
                                                 .admit = may_admit,
                                                 .accepted = on_accepted},
                        f);
    if (rc != 0)
        return rc;
    s->port = listeners_port(&s->listeners);
    listeners_put_urls(&s->listeners, &urls);
    log_info("serve.listen", "urls=\"" SPAN_FMT "\"", SPAN_ARG(buf_span(&urls)));
    buf_free(&urls);
    s->shared.exposed = settings_warn_exposed("host", host, is_protected);
    return 0;
}

static void server_abandon(struct server *s)
{
    listeners_close(&s->listeners);
    if (s->spool)
        spool_close(s->spool);
    if (s->database)
        database_free(s->database);
    server_close_handles(s);
    uv_run(&s->loop, UV_RUN_DEFAULT);
}

// The embedded server takes its time: serve what can be served without it.
static void on_late(uv_timer_t *limit) { begin_serving(limit->data); }

static void on_up(void *ctx)
{
    struct server *s = ctx;

    if (s->phase == STARTING)
        begin_serving(s);
}

static void begin_serving(struct server *s)
{
    struct fault f;

    uv_timer_stop(&s->limit);
    if (open_workers(s, &f) != 0) {
        // Threads may run already, so the objects that they use cannot be freed.
        fprintf(stderr, "queen serve: %s\n", f.text);
        _exit(SERVER_CANNOT_START);
    }
    s->phase = SERVING;
    for (unsigned i = 0; i < s->n_early; i++)
        hand_to_worker(s, s->early[i].fd, s->early[i].tls);
    free(s->early);
    s->early = NULL;
}

// Open all brokers before any thread starts: they refer to one another.
static int open_workers(struct server *s, struct fault *f)
{
    const struct serve_conf *c = s->conf;

    s->n_workers = (unsigned)c->num_workers;
    s->workers = mem_new_array(struct worker *, s->n_workers);
    s->house = house_new(s->n_workers);
    struct replay_conf replay = settings_replay(c);
    house_use_spool(s->house, s->spool, &replay);
    peer_notify_join(s->peers, s->house);
    if (c->sql_notify)
        s->sql_wake = sql_wake_new(&s->loop, s->house);
    s->routes = http_routes_new(api_routes);
    s->shared.routes = s->routes;
    s->shared.house = s->house;
    s->shared.auth = s->auth;
    house_use_keys(s->house, auth_keys(s->auth), auth_is_protected(s->auth));
    house_use_limits(s->house, auth_limits(s->auth));
    s->shared.transfer = pg_transfer_new(
        &(struct pg_transfer_conf){.source = database_conninfo(s->database),
                                   .targets = c->migration_targets,
                                   .stall_ms = (unsigned)c->migration_stall_s * 1000});
    s->shared.workers = mem_new_array(struct api *, s->n_workers);
    s->shared.n_workers = s->n_workers;
    s->shared.started_us = s->start_us;
    s->shared.version = SPAN(QUEEN_VERSION);
    s->shared.server = span_of(c->worker_id);
    s->shared.port = s->port;
    s->shared.show_details = !auth_is_protected(s->auth) || c->site.health_details;
    settings_json(c, &s->settings);
    s->shared.settings = buf_span(&s->settings);
    s->shared.tls_expires = s->tls ? tls_files_expires(s->tls) : NULL;
    s->shared.metrics_queues = c->metrics_queues;
    s->shared.metrics_period_ms = (unsigned)s->conf->metrics_aggregate_s * 1000;

    int rc = settings_web_root(c, &s->web_root, f);
    if (rc == 0)
        rc = settings_traces(c, &s->shared.collector, f);
    if (rc != 0)
        return rc;
    s->shared.web_root = s->web_root;
    s->shared.peers = s->peers;

    struct worker_conf conf = {
        .house = s->house,
        .reports = &s->reports,
        .broker = settings_broker(c, database_conninfo(s->database),
                                  database_is_embedded(s->database)),
        .http = settings_http(c),
        .shared = &s->shared,
        .auth = s->auth,
        .default_timeout_ms = (uint32_t)c->default_timeout_ms,
        .default_batch = (uint32_t)c->default_batch_size,
        .max_items = (uint32_t)c->max_request_items,
        .max_failures =
            (uint32_t)((uint64_t)c->db_statement_timeout_ms * 1000 / US_PER_FAILURE),
        .default_subscription_mode = span_of(c->default_subscription_mode),
        .on = server_worker_events,
        .ctx = s,
    };
    s->pg = conf.broker.pg;
    conf.http.routes = s->routes;
    s->addresses = settings_addresses(&c->addresses, s->max_connections);
    conf.http.addresses = s->addresses;
    conf.http.site = settings_site(&c->site, c->host, auth_is_protected(s->auth));
    conf.broker.keys = s->keys;
    conf.broker.must_seal = auth_is_protected(s->auth);

    for (unsigned i = 0; i < s->n_workers && rc == 0; i++) {
        conf.index = i;
        rc = worker_new(&s->workers[i], &conf, f);
        if (rc == 0)
            s->shared.workers[i] = worker_api(s->workers[i]);
    }
    for (unsigned i = 0; i < s->n_workers && rc == 0; i++)
        rc = worker_start(s->workers[i], f);
    return rc;
}

static void on_waiting(void *ctx, const struct fault *f)
{
    struct server *s = ctx;

    for (unsigned i = 0; s->phase == SERVING && i < s->n_workers; i++)
        worker_explain(s->workers[i], f->text);
}

static void on_server_ready(void *ctx)
{
    struct server *s = ctx;

    if (s->phase != SERVING)
        return; // it stops
    for (unsigned i = 0; i < s->n_workers; i++)
        worker_resume(s->workers[i]);
    struct pg_conninfo place = database_place(s->database, false);
    banner_print(&s->listeners, s->shared.exposed, database_where(s->database),
                 database_is_embedded(s->database) ? &place : NULL);
    log_info("serve.ready", "port=%u workers=%u ms=%" PRIu64, s->port, s->n_workers,
             (clock_mono_us() - s->start_us) / 1000);
    atomic_store(&s->shared.ready, true);
    if (s->sql_wake)
        sql_wake_start(s->sql_wake, &s->pg);
}

// ---- connections ----

static bool may_admit(void *ctx)
{
    const struct server *s = ctx;
    uint64_t n_closed = 0;

    for (unsigned i = 0; i < s->n_workers; i++)
        n_closed += worker_closed(s->workers[i]);
    return s->n_dealt - n_closed < s->max_connections;
}

static void on_accepted(void *ctx, int fd, bool tls)
{
    struct server *s = ctx;

    s->n_dealt++;
    if (s->phase == STARTING) {
        s->early = mem_realloc(s->early, (s->n_early + 1) * sizeof s->early[0]);
        s->early[s->n_early++] = (struct early_conn){fd, tls};
    } else {
        hand_to_worker(s, fd, tls);
    }
}

static void hand_to_worker(struct server *s, int fd, bool tls)
{
    worker_adopt(s->workers[s->next], fd, tls ? tls_files_ref(s->tls) : NULL);
    s->next = (s->next + 1) % s->n_workers;
}

static void on_dump(void *ctx)
{
    struct server *s = ctx;

    log_info("serve.state",
             "phase=%s ready=%s uptime_s=%" PRIu64 " accepted=%" PRIu64 " postgres_pid=%d",
             server_phase_name(s), atomic_load(&s->shared.ready) ? "true" : "false",
             (clock_mono_us() - s->start_us) / 1000000, s->n_dealt,
             (int)database_pid(s->database));
    if (s->phase == SERVING || s->phase == DRAINING) // later they are being taken apart
        for (unsigned i = 0; i < s->n_workers; i++)
            worker_log(s->workers[i]);
}

static void on_failed(void *ctx, const struct fault *f)
{
    struct server *s = ctx;

    fprintf(stderr, "queen serve: %s\n", f->text);
    s->exit_code = SERVER_CANNOT_START;
    if (s->phase <= SERVING)
        server_stop(s);
}

static void on_server_reload(void *ctx)
{
    struct server *s = ctx;

    auth_reload(s->auth);
    if (s->tls)
        tls_files_reload(s->tls);
}

static void on_server_stop(void *ctx, int signum)
{
    struct server *s = ctx;

    if (s->phase <= SERVING) {
        log_info("stop.begin", "signal=%d", signum);
        server_stop(s);
    } else if (uv_now(&s->loop) - s->stop_ms > ECHO_MS) {
        // The embedded PostgreSQL gets its signal from the kernel when we are gone.
        log_warn("stop.now", "signal=%d phase=%s", signum, server_phase_name(s));
        _exit(128 + signum);
    }
}
