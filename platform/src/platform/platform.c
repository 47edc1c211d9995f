// platform.c: starts the process and accepts connections.
#include "platform/platform.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "platform/platform_int.h"
#include "platform/settings.h"
#include "settings/auth.h"
#include "settings/listen.h"
#include "web/web.h"

enum {
    ECHO_MS = 300
}; // a second signal this soon is the same one, also sent to the process group

// In the order they run.
static int open_all(struct platform *p, struct fault *f);
static void abandon_start(struct platform *p);
static void on_up(void *ctx);
static void on_platform_ready(void *ctx);
static bool may_admit(void *ctx);
static void on_accepted(void *ctx, int fd, bool tls);
static bool is_refused(void *ctx, struct http_req *req, bool *admitted);
static bool may_pass(void *ctx, struct http_req *req);
static void on_dump(void *ctx);
static void on_failed(void *ctx, const struct fault *f);
static void on_stop(void *ctx, int signum);

// A configured id is used as it is.  Otherwise the id is random: in containers, processes may
// share host name, port and process id.
static void set_id(struct platform *p)
{
    char host[128] = "host";

    if (p->conf->id[0] != '\0') {
        snprintf(p->id, sizeof p->id, "%s", p->conf->id);
        return;
    }
    uint64_t start_id;
    id_random(&start_id, sizeof start_id);
    (void)gethostname(host, sizeof host - 1);
    snprintf(p->id, sizeof p->id, "%s-%016" PRIx64, host, start_id);
}

int platform_run(const struct platform_conf *conf)
{
    struct platform *p = mem_new(struct platform);
    struct fault f = {0};

    p->conf = conf;
    set_id(p);
    p->start_us = clock_mono_us();
    map_setup();
    // Migrations and name lookups block threads of libuv's pool; the default of four is too
    // few.
    setenv("UV_THREADPOOL_SIZE", "16", 0);
    int rc = uv_loop_init(&p->loop);
    if (rc != 0) {
        fprintf(stderr, "queen platform: cannot make an event loop: %s\n", uv_strerror(rc));
        free(p);
        return PLATFORM_CANNOT_START;
    }
    uv_timer_init(&p->loop, &p->limit);
    p->limit.data = p;
    if (open_all(p, &f) != 0) {
        fprintf(stderr, "queen platform: %s\n", f.text);
        p->exit_code = f.code == QE_CONF ? PLATFORM_BAD_CONF : PLATFORM_CANNOT_START;
        abandon_start(p);
    } else {
        uv_run(&p->loop, UV_RUN_DEFAULT);
        log_info("platform.stopped", "code=%d", p->exit_code);
    }
    if (uv_loop_close(&p->loop) != 0)
        BUG("the platform left a handle open");
    http_routes_free(p->routes);
    auth_free(p->auth);
    int code = p->exit_code;
    free(p->stats);
    free(p);
    return code;
}

static int open_listeners(struct platform *p, struct fault *f)
{
    const struct platform_conf *c = p->conf;
    bool is_protected = auth_is_protected(p->auth);
    const char *host = settings_listen_host(c->host, is_protected);
    struct buf urls = {0};

    int rc = settings_tls(&c->tls, c->data_dir, &p->loop, &p->tls, f);
    if (rc != 0)
        return rc;
    rc = listeners_open(&p->listeners, &p->loop,
                        &(struct listeners_conf){.host = host,
                                                 .port = (unsigned)c->port,
                                                 .tls = p->tls && c->tls.port == 0,
                                                 .tls_port = (unsigned)c->tls.port,
                                                 .ctx = p,
                                                 .admit = may_admit,
                                                 .accepted = on_accepted},
                        f);
    if (rc != 0)
        return rc;
    p->port = listeners_port(&p->listeners);
    listeners_put_urls(&p->listeners, &urls);
    log_info("platform.listening", "urls=\"" SPAN_FMT "\"", SPAN_ARG(buf_span(&urls)));
    buf_free(&urls);
    p->exposed = settings_warn_exposed("platform_host", host, is_protected);
    return 0;
}

// GET of a path without a route: the dashboard.
static void reply_page(struct http_req *req)
{
    if (!web_reply(req, SPAN("/platform.html")))
        http_reply_err(req, QE_NOT_FOUND);
}

static int open_http(struct platform *p, struct fault *f)
{
    const struct platform_conf *c = p->conf;

    p->routes = http_routes_new(platform_routes);
    p->stats = mem_new_array(struct route_stats, http_routes_count(p->routes) + 1);
    int rc = settings_auth(&c->jwt, &c->access, &c->tls, &p->auth, f);
    if (rc != 0)
        return rc;
    rc = open_listeners(p, f);
    if (rc != 0)
        return rc;
    struct http_server_conf http = settings_platform_http(c);
    http.site = settings_site(&c->site, c->host, auth_is_protected(p->auth));
    http.routes = p->routes;
    http.fallback = reply_page;
    p->addresses = settings_addresses(&c->addresses, (unsigned)c->max_connections);
    http.addresses = p->addresses;
    // The platform has no table of keys: those of its files are all.
    struct key_table *keys = auth_keys(p->auth);
    key_table_replace(keys, key_list_new(), key_table_epoch(keys));
    p->guard = guard_open(&p->loop, p->auth, &p->guard_stats);
    p->audit = audit_open(&p->loop, &(struct audit_conf){.store = platform_store_audit,
                                                         .ctx = p,
                                                         .server = span_of(p->id),
                                                         .stats = &p->audit_stats});
    http.audit = audit_answer;
    http.audit_ctx = p->audit;
    http.app = http.guard_ctx = p;
    http.observe = platform_observe;
    http.guard = may_pass;
    http.guard_refuses = is_refused;
    p->http = http_server_open(&p->loop, http);
    return 0;
}

static void on_reload(void *ctx)
{
    struct platform *p = ctx;

    auth_reload(p->auth);
    if (p->tls)
        tls_files_reload(p->tls);
}

int platform_check(const struct platform_conf *c, struct fault *f)
{
    struct database_conf control = settings_control(c);
    int rc = settings_check_auth(&c->jwt, &c->access, &c->tls, f);

    if (rc == 0)
        rc = settings_check_tls(&c->tls, f);
    if (rc == 0)
        rc = settings_check(c, f);
    return rc == 0 ? database_conf_check(&control, f) : rc;
}

static int open_all(struct platform *p, struct fault *f)
{
    int rc = platform_check(p->conf, f);
    if (rc == 0)
        rc = open_http(p, f);
    if (rc != 0)
        return rc;
    struct queen_options broker = settings_queen_client(p->conf, &p->loop);
    struct queen_error why;
    p->broker = queen_client_new(&broker, &why);
    if (!p->broker)
        return fault_set(f, QE_CONF, "QUEEN_URL: %s", why.text);
    struct database_conf control = settings_control(p->conf);
    rc = database_open(&p->database, &control, f);
    if (rc != 0)
        return rc;
    rc = signals_open(&p->signals, &p->loop, on_stop, on_dump, p);
    if (rc != 0)
        return fault_set(f, rc, "cannot watch signals: %s", uv_strerror(rc));
    bool has_files = p->tls || p->conf->access.admin_key_file[0] != '\0' ||
                     p->conf->jwt.revoked_file[0] != '\0' ||
                     p->conf->access.rules_file[0] != '\0';
    p->signals.on_reload = has_files ? on_reload : NULL;
    uv_update_time(&p->loop); // initdb may have blocked the loop for long
    struct database_events on = {
        .on_up = on_up, .on_ready = on_platform_ready, .on_failed = on_failed};
    database_start(p->database, &p->loop, on, p);
    return 0;
}

// Start-up failed before any part was started: closes the handles that are open.
static void abandon_start(struct platform *p)
{
    listeners_close(&p->listeners);
    if (p->guard)
        guard_close(p->guard);
    if (p->http)
        http_server_close(p->http, NULL, NULL);
    if (p->audit)
        audit_close(p->audit, NULL, NULL);
    if (p->broker)
        queen_client_close(p->broker, NULL, NULL);
    if (p->database)
        database_free(p->database);
    platform_close_handles(p);
    uv_run(&p->loop, UV_RUN_DEFAULT);
}

static void on_up(void *ctx) { (void)ctx; } // readiness depends on the schema

static void print_platform_banner(const struct platform *p)
{
    struct buf urls = {0}, local = {0};

    listeners_put_urls(&p->listeners, &urls);
    listeners_put_local_url(&p->listeners, &local);
    span url = buf_span(&local);
    printf("Queen platform %s listens on " SPAN_FMT "\n"
           "Control database: %s\n"
           "Broker: %s\n"
           "%s\n"
           "Try it:\n"
           "  curl -X POST " SPAN_FMT "/api/v1/tenants -H 'Content-Type: "
           "application/json' -d '{\"name\": \"acme\"}'\n"
           "  curl " SPAN_FMT "/api/v1/tenants\n\n",
           QUEEN_VERSION, SPAN_ARG(buf_span(&urls)), database_where(p->database),
           p->conf->queen_url, p->exposed ? "Warning: " HTTP_SITE_EXPOSED "\n" : "",
           SPAN_ARG(url), SPAN_ARG(url));
    if (fflush(stdout) != 0)
        log_debug("banner.failed", "why=\"stdout is closed\"");
    buf_free(&urls);
    buf_free(&local);
}

static void on_platform_ready(void *ctx)
{
    struct platform *p = ctx;
    struct pg_pool_conf pool = settings_control_pool(p->conf, database_conninfo(p->database));

    p->control = pg_pool_open(&p->loop, &pool, NULL, NULL);
    struct tenant_pools_conf pools = settings_pools(p->conf, p->control, p->database);
    p->pools = tenant_pools_open(&p->loop, &pools);
    p->phase = SERVING;
    for (unsigned i = 0; platform_parts[i]; i++) {
        p->n_parts_running += platform_parts[i]->stop != NULL;
        if (platform_parts[i]->start)
            platform_parts[i]->start(p);
    }
    print_platform_banner(p);
    log_info("platform.ready", "port=%u ms=%" PRIu64, p->port,
             (clock_mono_us() - p->start_us) / 1000);
}

// ---- connections ----

static bool may_admit(void *ctx)
{
    const struct platform *p = ctx;

    return http_server_connections(p->http) < (unsigned)p->conf->max_connections;
}

static void on_accepted(void *ctx, int fd, bool tls)
{
    struct platform *p = ctx;

    http_server_adopt(p->http, fd, tls ? tls_files_ref(p->tls) : NULL);
}

// At the head of a request: the body of one that may_pass() will refuse is not kept.
static bool is_refused(void *ctx, struct http_req *req, bool *admitted)
{
    const struct platform *p = ctx;

    *admitted = false;
    return p->phase == STARTING || (p->guard && guard_refuses(p->guard, req, admitted));
}

// Until the control database is ready, only public endpoints are served.
static bool may_pass(void *ctx, struct http_req *req)
{
    const struct platform *p = ctx;

    if (p->phase != STARTING || http_req_route(req)->access == ACCESS_PUBLIC)
        return !p->guard || guard_check(p->guard, req);
    http_reply_errf(req, QE_PG_AWAY, "the platform is starting: its database is not ready");
    return false;
}

// ---- state ----

const char *platform_phase_name(const struct platform *p)
{
    static const char *const names[] = {
        [STARTING] = "starting", [SERVING] = "serving",
        [DRAINING] = "draining", [STOPPING_PARTS] = "stopping_parts",
        [CLOSING] = "closing",   [STOPPING_DATABASE] = "stopping_database",
    };

    return names[p->phase];
}

bool platform_is_up(const struct platform *p)
{
    return p->control &&
           atomic_load_explicit(&pg_pool_stats(p->control)->up, memory_order_relaxed);
}

void platform_reply_failed(struct http_req *req, int status, const struct fault *why)
{
    if (why && why->text[0] != '\0')
        http_reply_errf(req, status, "%s", why->text);
    else
        http_reply_err(req, status);
}

static void on_dump(void *ctx)
{
    const struct platform *p = ctx;

    log_info("platform.state", "phase=%s uptime_s=%" PRIu64 " connections=%u postgres_pid=%d",
             platform_phase_name(p), (clock_mono_us() - p->start_us) / 1000000,
             p->phase <= DRAINING ? http_server_connections(p->http) : 0,
             (int)database_pid(p->database));
}

static void on_failed(void *ctx, const struct fault *f)
{
    struct platform *p = ctx;

    fprintf(stderr, "queen platform: %s\n", f->text);
    p->exit_code = PLATFORM_CANNOT_START;
    if (p->phase <= SERVING)
        platform_stop(p);
}

static void on_stop(void *ctx, int signum)
{
    struct platform *p = ctx;

    if (p->phase <= SERVING) {
        log_info("stop.begin", "signal=%d", signum);
        platform_stop(p);
    } else if (uv_now(&p->loop) - p->stop_ms > ECHO_MS) {
        // The kernel signals the embedded PostgreSQL when this process ends.
        log_warn("stop.now", "signal=%d phase=%s", signum, platform_phase_name(p));
        _exit(128 + signum);
    }
}
