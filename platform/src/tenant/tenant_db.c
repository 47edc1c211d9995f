// tenant_db.c: a connection pool of either kind, with a ping as health check.
#include "tenant/tenant_db.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pg/pool.h"
#include "tenant/my_pool.h"
#include "tenant/sql.gen.h"

enum { TCP_USER_TIMEOUT_MS = 30000, DEADLINE_MARGIN_MS = 5000, LONG_DEADLINE_MS = 3600000 };
// Our largest results are pages of 1,000 customers and lists of segments.
enum { MAX_RESULT_BYTES = 128 << 20 };

struct tenant_db {
    uv_loop_t *loop;
    void *owner;
    enum tenant_kind kind;
    struct pg_pool *pg;
    struct my_pool *my;
    struct pg_call pg_ping;
    struct my_call my_ping;
    unsigned ping_ms;
    tenant_db_cb done; // callback of the ping in progress; NULL: none
    struct fault fault;
    uint64_t last_reply_us;
    uv_timer_t soon; // reports errors found before a connection attempt
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// In the order they run.
static int connect_pg(struct tenant_db *l, const struct tenant_db_conf *c,
                      const struct tenant_row *r);
static int connect_my(struct tenant_db *l, const struct tenant_db_conf *c,
                      const struct tenant_row *r);
static void on_open_failed(uv_timer_t *soon);
static void ping_tenant(struct tenant_db *l, tenant_db_cb done);
static void on_pg_ping(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_my_ping(struct my_call *call, int status, const struct my_reply *reply);
static void on_pool_closed(void *ctx);
static void on_tenant_db_timer_closed(uv_handle_t *handle);

struct tenant_db *tenant_db_open(uv_loop_t *loop, const struct tenant_db_conf *conf,
                                 const struct tenant_row *row, tenant_db_cb opened, void *owner)
{
    struct tenant_db *l = mem_new(struct tenant_db);

    l->loop = loop;
    l->owner = owner;
    l->kind = row->kind;
    l->ping_ms = conf->connect_timeout_ms;
    uv_timer_init(loop, &l->soon);
    l->soon.data = l;
    int rc = row->kind == TENANT_PG ? connect_pg(l, conf, row) : connect_my(l, conf, row);
    if (rc == 0) {
        ping_tenant(l, opened);
    } else {
        l->done = opened;
        uv_timer_start(&l->soon, on_open_failed, 0, 0);
    }
    return l;
}

static unsigned tenant_db_deadline_ms(const struct tenant_db_conf *c)
{
    return c->statement_timeout_ms > 0 ? c->statement_timeout_ms + DEADLINE_MARGIN_MS
                                       : LONG_DEADLINE_MS;
}

static int connect_pg(struct tenant_db *l, const struct tenant_db_conf *c,
                      const struct tenant_row *r)
{
    struct pg_conninfo like = {
        .application_name = "queen-platform",
        .connect_timeout_ms = c->connect_timeout_ms,
        .tcp_user_timeout_ms = TCP_USER_TIMEOUT_MS,
        .statement_timeout_ms = c->statement_timeout_ms,
        .idle_in_transaction_ms = c->statement_timeout_ms,
    };
    char *conninfo;
    int rc = tenant_conninfo(r, c->home, &c->auth, &like, &conninfo, &l->fault);

    if (rc != 0)
        return rc;
    struct pg_pool_conf pool = {
        .conninfo = conninfo,
        .max_conns = c->max_conns,
        .keep_conns = 1,
        .connect_timeout_ms = c->connect_timeout_ms,
        .deadline_ms = tenant_db_deadline_ms(c),
        .idle_close_ms = c->conn_idle_ms,
        .max_result_bytes = MAX_RESULT_BYTES,
    };
    l->pg = pg_pool_open(l->loop, &pool, NULL, NULL);
    free(conninfo);
    return 0;
}

static int connect_my(struct tenant_db *l, const struct tenant_db_conf *c,
                      const struct tenant_row *r)
{
    struct my_place place;
    int rc = tenant_place(r, &c->auth, &place, &l->fault);

    if (rc != 0)
        return rc;
    struct my_pool_conf pool = {
        .place = &place,
        .max_conns = c->max_conns,
        .connect_timeout_ms = c->connect_timeout_ms,
        .deadline_ms = tenant_db_deadline_ms(c),
        .statement_timeout_ms = c->statement_timeout_ms,
        .idle_close_ms = c->conn_idle_ms,
        .max_result_bytes = MAX_RESULT_BYTES,
    };
    l->my = my_pool_open(l->loop, &pool);
    my_place_deinit(&place);
    return 0;
}

static void on_open_failed(uv_timer_t *soon)
{
    struct tenant_db *l = soon->data;
    tenant_db_cb done = l->done;

    l->done = NULL;
    done(l, l->fault.code);
}

static void ping_tenant(struct tenant_db *l, tenant_db_cb done)
{
    assert(!l->done);
    l->done = done;
    if (l->pg) {
        l->pg_ping = (struct pg_call){.statement = &pg_stmt_tenant_ping,
                                      .done = on_pg_ping,
                                      .owner = l,
                                      .deadline_ms = l->ping_ms};
        pg_pool_exec(l->pg, &l->pg_ping);
    } else {
        l->my_ping = (struct my_call){.statement = &my_stmt_tenant_ping,
                                      .done = on_my_ping,
                                      .owner = l,
                                      .deadline_ms = l->ping_ms};
        my_pool_exec(l->my, &l->my_ping);
    }
}

static void finish_ping(struct tenant_db *l, int status, const char *message,
                        const char *dial_error)
{
    tenant_db_cb done = l->done;

    l->done = NULL;
    if (status == 0)
        l->last_reply_us = clock_mono_us();
    else
        fault_set(&l->fault, status, "%s", dial_error[0] ? dial_error : message);
    if (!l->closing && done)
        done(l, status);
}

static void on_pg_ping(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_db *l = call->owner;

    finish_ping(l, status, pg_reply_message(reply), pg_pool_error(l->pg));
}

static void on_my_ping(struct my_call *call, int status, const struct my_reply *reply)
{
    struct tenant_db *l = call->owner;

    finish_ping(l, status, my_reply_message(reply), my_pool_error(l->my));
}

void tenant_db_check(struct tenant_db *l, tenant_db_cb checked) { ping_tenant(l, checked); }

void tenant_db_close(struct tenant_db *l, void (*closed)(void *ctx), void *ctx)
{
    l->closing = true;
    l->closed = closed;
    l->closed_ctx = ctx;
    uv_timer_stop(&l->soon);
    if (l->pg)
        pg_pool_close(l->pg, on_pool_closed, l);
    else if (l->my)
        my_pool_close(l->my, on_pool_closed, l);
    else
        on_pool_closed(l);
}

static void on_pool_closed(void *ctx)
{
    struct tenant_db *l = ctx;

    uv_close((uv_handle_t *)&l->soon, on_tenant_db_timer_closed);
}

static void on_tenant_db_timer_closed(uv_handle_t *handle)
{
    struct tenant_db *l = handle->data;
    void (*closed)(void *) = l->closed;
    void *ctx = l->closed_ctx;

    free(l);
    closed(ctx);
}

void *tenant_db_owner(const struct tenant_db *l) { return l->owner; }
enum tenant_kind tenant_db_kind(const struct tenant_db *l) { return l->kind; }
struct pg_pool *tenant_db_pg(const struct tenant_db *l) { return l->pg; }
struct my_pool *tenant_db_my(const struct tenant_db *l) { return l->my; }
const struct fault *tenant_db_fault(const struct tenant_db *l) { return &l->fault; }

const char *tenant_db_error(const struct tenant_db *l)
{
    return l->pg ? pg_pool_error(l->pg) : l->my ? my_pool_error(l->my) : "";
}

uint64_t tenant_db_last_reply_us(const struct tenant_db *l)
{
    uint64_t pool = l->pg ? pg_pool_heard_us(l->pg) : l->my ? my_pool_last_reply_us(l->my) : 0;

    return pool > l->last_reply_us ? pool : l->last_reply_us;
}

bool tenant_db_is_up(const struct tenant_db *l)
{
    if (l->my)
        return my_pool_is_up(l->my);
    return l->pg && atomic_load_explicit(&pg_pool_stats(l->pg)->up, memory_order_relaxed);
}

unsigned tenant_db_conns(const struct tenant_db *l)
{
    if (l->my)
        return my_pool_conns(l->my);
    return l->pg ? atomic_load_explicit(&pg_pool_stats(l->pg)->n_open, memory_order_relaxed)
                 : 0;
}
