// database.c: starts the embedded server if there is one, migrates the schema, retries on
// failure.
//
// Migrations run on a thread of libuv's pool, since pg_migrate() blocks; one at a time.
#include "pg/database.h"

#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "pg/embed.h"

enum {
    RETRY_MS = 250,
    RETRY_MAX_MS = 1000,
    REPEAT_MS = 60000, // how often an unchanged reason is logged
};

struct database {
    struct database_conf conf; // pool and chore hold the server's actual address
    struct embed *embed;       // NULL: an external server
    char *pool_info, *chore_info, *admin_info;
    struct buf where; // NUL-terminated

    uv_loop_t *loop;
    struct database_events on;
    void *ctx;

    uv_timer_t retry;
    uv_work_t work;
    unsigned wait_ms;
    bool working, ready, stopping, embed_stopped;
    struct fault last;  // the reason that was logged last
    uint64_t logged_ms; // loop time of that; 0: never

    // Written by the work thread while it runs, read by the loop afterwards.
    int rc;
    struct fault why;
    struct pg_migrate_result done;

    void (*stopped)(void *ctx);
    void *stopped_ctx;
};

// Steps from start to ready, in order.
static void on_postgres_ready(void *ctx);
static void database_migrate(struct database *d);
static void do_migrate(uv_work_t *work);
static void on_migrated(uv_work_t *work, int status);
static void try_again(struct database *d);
static void on_retry(uv_timer_t *timer);
// Steps of stopping.
static void on_embed_stopped(void *ctx);
static void database_close_if_done(struct database *d);
static void on_database_timer_closed(uv_handle_t *handle);

// The embedded server listens on a socket in a private directory and trusts every local client.
static void point_at(struct pg_conninfo *info, const char *socket_dir, const char *db)
{
    info->hosts = socket_dir;
    info->port = 0;
    info->db = db;
    info->user = "postgres";
    info->password = NULL;
    info->sslmode = "disable";
}

static bool is_external(const struct database_conf *c)
{
    return c->pool.hosts != NULL && c->pool.hosts[0] != '\0';
}

int database_conf_check(const struct database_conf *c, struct fault *f)
{
    if (!is_external(c) && c->data_dir[0] == '\0')
        return fault_set(f, QE_CONF, "$HOME is not set: set %s", c->no_data_dir);
    return 0;
}

static int open_embedded(struct database *d, struct fault *f)
{
    struct database_conf *c = &d->conf;

    int rc = embed_prepare(&(struct embed_conf){.data_dir = c->data_dir,
                                                .bin_dir = c->pg_bin,
                                                .run_as = c->os_user},
                           &d->embed, f);
    if (rc != 0)
        return rc;
    point_at(&c->pool, embed_socket_dir(d->embed), c->embedded_db);
    point_at(&c->chore, embed_socket_dir(d->embed), c->embedded_db);
    buf_printf(&d->where, "%s (embedded PostgreSQL)", c->data_dir);
    return 0;
}

int database_open(struct database **out, const struct database_conf *conf, struct fault *f)
{
    struct database *d = mem_new(struct database);
    int rc = database_conf_check(conf, f);

    *out = NULL;
    d->conf = *conf;
    if (rc == 0 && !is_external(conf))
        rc = open_embedded(d, f);
    else if (rc == 0)
        buf_printf(&d->where, "PostgreSQL at %s:%u, database %s", conf->pool.hosts,
                   conf->pool.port, conf->pool.db);
    buf_putc(&d->where, '\0');
    if (rc != 0) {
        database_free(d);
        return rc;
    }
    d->pool_info = pg_conninfo_format(&d->conf.pool);
    d->chore_info = pg_conninfo_format(&d->conf.chore);
    struct pg_conninfo admin = d->conf.chore;
    admin.db = "postgres";
    d->admin_info = pg_conninfo_format(&admin);
    *out = d;
    return 0;
}

void database_start(struct database *d, uv_loop_t *loop, struct database_events on, void *ctx)
{
    d->loop = loop;
    d->on = on;
    d->ctx = ctx;
    d->wait_ms = RETRY_MS;
    uv_timer_init(loop, &d->retry);
    d->retry.data = d->work.data = d;
    if (d->embed)
        embed_start(d->embed, loop, (struct embed_events){.on_ready = on_postgres_ready}, d);
    else
        database_migrate(d);
}

static void on_postgres_ready(void *ctx)
{
    struct database *d = ctx;

    if (d->stopping)
        return;
    d->on.on_up(d->ctx);
    if (!d->ready && !d->working) {
        uv_timer_stop(&d->retry);
        database_migrate(d);
    }
}

static void database_migrate(struct database *d)
{
    d->working = true;
    int rc = uv_queue_work(d->loop, &d->work, do_migrate, on_migrated);
    if (rc != 0)
        BUG("uv_queue_work: %s", uv_strerror(rc));
}

// Runs on a thread of the pool: uses only the fields reserved for it in the struct.
static void do_migrate(uv_work_t *work)
{
    struct database *d = work->data;

    d->rc =
        d->conf.create ? database_create(d->admin_info, d->conf.chore.db, NULL, &d->why) : 0;
    if (d->rc == 0)
        d->rc = pg_migrate(d->chore_info, d->conf.schema, &d->done, &d->why);
    // A proxy may accept the migration and refuse the settings of pools.
    if (d->rc == 0)
        d->rc = database_check(d->pool_info, &d->why);
}

// Failures that may pass by themselves: outages, failovers, a full disk. Others need an
// operator.
static bool may_pass(int rc)
{
    switch (rc) {
    case QE_PG_AWAY:
    case QE_PG_GONE:
    case QE_PG_RETRY:
    case QE_PG_FULL:
    case QE_PG_READ_ONLY:
        return true;
    default:
        return false;
    }
}

static void on_migrated(uv_work_t *work, int status)
{
    struct database *d = work->data;

    d->working = false;
    if (d->stopping) {
        database_close_if_done(d);
    } else if (status != 0 || may_pass(d->rc)) {
        try_again(d);
    } else if (d->rc != 0) {
        d->on.on_failed(d->ctx, &d->why);
    } else {
        d->ready = true;
        log_info("schema.ready", "migrations=%u objects=%u newer=%s", d->done.n_migrations,
                 d->done.n_objects, d->done.newer ? "true" : "false");
        d->on.on_ready(d->ctx);
    }
}

static void try_again(struct database *d)
{
    uint64_t now = uv_now(d->loop);

    if (d->logged_ms == 0 || now - d->logged_ms >= REPEAT_MS ||
        strcmp(d->why.text, d->last.text) != 0) {
        log_warn("database.unavailable", "error=\"%s\" retry=true", d->why.text);
        d->logged_ms = now > 0 ? now : 1;
        d->last = d->why;
    }
    if (d->on.on_waiting)
        d->on.on_waiting(d->ctx, &d->why);
    uv_timer_start(&d->retry, on_retry, d->wait_ms, 0);
    d->wait_ms = d->wait_ms * 2 < RETRY_MAX_MS ? d->wait_ms * 2 : RETRY_MAX_MS;
}

static void on_retry(uv_timer_t *timer) { database_migrate(timer->data); }

void database_stop(struct database *d, void (*stopped)(void *ctx), void *ctx)
{
    d->stopping = true;
    d->stopped = stopped;
    d->stopped_ctx = ctx;
    uv_timer_stop(&d->retry);
    if (d->working)
        uv_cancel((uv_req_t *)&d->work); // on_migrated() is called either way
    d->embed_stopped = d->embed == NULL;
    if (d->embed)
        embed_stop(d->embed, on_embed_stopped, d);
    database_close_if_done(d);
}

static void on_embed_stopped(void *ctx)
{
    struct database *d = ctx;

    d->embed_stopped = true;
    database_close_if_done(d);
}

static void database_close_if_done(struct database *d)
{
    if (!d->working && d->embed_stopped)
        uv_close((uv_handle_t *)&d->retry, on_database_timer_closed);
}

static void on_database_timer_closed(uv_handle_t *handle)
{
    struct database *d = handle->data;

    d->stopped(d->stopped_ctx);
}

void database_free(struct database *d)
{
    if (d->embed)
        embed_free(d->embed);
    free(d->pool_info);
    free(d->chore_info);
    free(d->admin_info);
    buf_free(&d->where);
    free(d);
}

bool database_is_embedded(const struct database *d) { return d->embed != NULL; }

const char *database_conninfo(const struct database *d) { return d->pool_info; }

struct pg_conninfo database_place(const struct database *d, bool chore)
{
    return chore ? d->conf.chore : d->conf.pool;
}

const char *database_where(const struct database *d) { return d->where.ptr; }

pid_t database_pid(const struct database *d) { return d->embed ? embed_pid(d->embed) : 0; }
