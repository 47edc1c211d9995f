// link.c: a connection pool of either kind, with a ping as health check.
#include "tenant/link.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "pg/pool.h"
#include "tenant/my_pool.h"
#include "tenant/sql.gen.h"

enum { TCP_USER_TIMEOUT_MS = 30000, DEADLINE_MARGIN_MS = 5000, LONG_DEADLINE_MS = 3600000 };

struct link {
    uv_loop_t *loop;
    void *owner;
    enum tenant_kind kind;
    struct pg_pool *pg;
    struct my_pool *my;
    struct pg_call pg_ping;
    struct my_call my_ping;
    unsigned ping_ms;
    link_cb done; // callback of the ping in progress; NULL: none
    struct fault fault;
    uint64_t last_reply_us;
    uv_timer_t soon; // reports errors found before a connection attempt
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// In the order they run.
static int connect_pg(struct link *l, const struct link_conf *c, const struct tenant_row *r);
static int connect_my(struct link *l, const struct link_conf *c, const struct tenant_row *r);
static void on_open_failed(uv_timer_t *soon);
static void ping(struct link *l, link_cb done);
static void on_pg_ping(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_my_ping(struct my_call *call, int status, const struct my_reply *reply);
static void on_pool_closed(void *ctx);
static void on_timer_closed(uv_handle_t *handle);

struct link *link_open(uv_loop_t *loop, const struct link_conf *conf,
                       const struct tenant_row *row, link_cb opened, void *owner)
{
    struct link *l = mem_new(struct link);

    l->loop = loop;
    l->owner = owner;
    l->kind = row->kind;
    l->ping_ms = conf->connect_timeout_ms;
    uv_timer_init(loop, &l->soon);
    l->soon.data = l;
    int rc = row->kind == TENANT_PG ? connect_pg(l, conf, row) : connect_my(l, conf, row);
    if (rc == 0) {
        ping(l, opened);
    } else {
        l->done = opened;
        uv_timer_start(&l->soon, on_open_failed, 0, 0);
    }
    return l;
}

static unsigned deadline_ms(const struct link_conf *c)
{
    return c->statement_timeout_ms > 0 ? c->statement_timeout_ms + DEADLINE_MARGIN_MS
                                       : LONG_DEADLINE_MS;
}

static int connect_pg(struct link *l, const struct link_conf *c, const struct tenant_row *r)
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
        .deadline_ms = deadline_ms(c),
        .idle_close_ms = c->conn_idle_ms,
    };
    l->pg = pg_pool_open(l->loop, &pool, NULL, NULL);
    free(conninfo);
    return 0;
}

static int connect_my(struct link *l, const struct link_conf *c, const struct tenant_row *r)
{
    struct my_place place;
    int rc = tenant_place(r, &c->auth, &place, &l->fault);

    if (rc != 0)
        return rc;
    struct my_pool_conf pool = {
        .place = &place,
        .max_conns = c->max_conns,
        .connect_timeout_ms = c->connect_timeout_ms,
        .deadline_ms = deadline_ms(c),
        .statement_timeout_ms = c->statement_timeout_ms,
        .idle_close_ms = c->conn_idle_ms,
    };
    l->my = my_pool_open(l->loop, &pool);
    my_place_deinit(&place);
    return 0;
}

static void on_open_failed(uv_timer_t *soon)
{
    struct link *l = soon->data;
    link_cb done = l->done;

    l->done = NULL;
    done(l, l->fault.code);
}

static void ping(struct link *l, link_cb done)
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

static void finish_ping(struct link *l, int status, const char *message, const char *dial_error)
{
    link_cb done = l->done;

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
    struct link *l = call->owner;

    finish_ping(l, status, pg_reply_message(reply), pg_pool_error(l->pg));
}

static void on_my_ping(struct my_call *call, int status, const struct my_reply *reply)
{
    struct link *l = call->owner;

    finish_ping(l, status, my_reply_message(reply), my_pool_error(l->my));
}

void link_check(struct link *l, link_cb checked) { ping(l, checked); }

void link_close(struct link *l, void (*closed)(void *ctx), void *ctx)
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
    struct link *l = ctx;

    uv_close((uv_handle_t *)&l->soon, on_timer_closed);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct link *l = handle->data;
    void (*closed)(void *) = l->closed;
    void *ctx = l->closed_ctx;

    free(l);
    closed(ctx);
}

void *link_owner(const struct link *l) { return l->owner; }
enum tenant_kind link_kind(const struct link *l) { return l->kind; }
struct pg_pool *link_pg(const struct link *l) { return l->pg; }
struct my_pool *link_my(const struct link *l) { return l->my; }
const struct fault *link_fault(const struct link *l) { return &l->fault; }

const char *link_error(const struct link *l)
{
    return l->pg ? pg_pool_error(l->pg) : l->my ? my_pool_error(l->my) : "";
}

uint64_t link_last_reply_us(const struct link *l)
{
    uint64_t pool = l->pg ? pg_pool_heard_us(l->pg) : l->my ? my_pool_last_reply_us(l->my) : 0;

    return pool > l->last_reply_us ? pool : l->last_reply_us;
}

bool link_is_up(const struct link *l)
{
    if (l->my)
        return my_pool_is_up(l->my);
    return l->pg && atomic_load_explicit(&pg_pool_stats(l->pg)->up, memory_order_relaxed);
}

unsigned link_conns(const struct link *l)
{
    if (l->my)
        return my_pool_conns(l->my);
    return l->pg ? atomic_load_explicit(&pg_pool_stats(l->pg)->n_open, memory_order_relaxed)
                 : 0;
}
