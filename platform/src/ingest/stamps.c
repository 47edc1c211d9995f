// stamps.c: loads and saves the stamps of tenants' databases.
#include "ingest/stamps.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "tenant/sql.gen.h"

enum { SAVE_MS = 5000, LIMIT_MS = 3000, MAX_PER_CALL = 1000 };

struct stamp {
    char *key; // tenant, partition
    span tenant, partition;
    int64_t stamp_us;
    UT_hash_handle hh;
};

struct stamps {
    struct pg_pool *control;
    char *queue;
    struct stamp *noted;   // by key; not sent yet
    struct stamp *sending; // by key
    uv_timer_t timer;
    struct pg_call call;
    struct pg_params params;
    bool is_load_failing; // it was logged
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void on_save_due(uv_timer_t *timer);
static void save_some(struct stamps *s);
static void on_stamps_saved(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_stamps_loaded(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_stamps_timer_closed(uv_handle_t *handle);

struct stamps *stamps_open(uv_loop_t *loop, struct pg_pool *control, const char *queue)
{
    struct stamps *s = mem_new(struct stamps);

    s->control = control;
    s->queue = mem_strndup(queue, strlen(queue));
    uv_timer_init(loop, &s->timer);
    s->timer.data = s;
    uv_timer_start(&s->timer, on_save_due, SAVE_MS, SAVE_MS);
    return s;
}

static void free_stamps(struct stamp **list)
{
    struct stamp *next = *list, *e;

    HASH_CLEAR(hh, *list);
    while ((e = next)) {
        next = e->hh.next;
        free(e->key);
        free(e);
    }
}

// ---- save ----

void stamps_note(struct stamps *s, span tenant, span partition, int64_t stamp_us)
{
    struct buf key = {0};
    struct stamp *e;

    buf_printf(&key, SPAN_FMT "/" SPAN_FMT, SPAN_ARG(tenant), SPAN_ARG(partition));
    HASH_FIND(hh, s->noted, key.ptr, key.len, e);
    if (e) {
        e->stamp_us = stamp_us > e->stamp_us ? stamp_us : e->stamp_us;
        buf_free(&key);
        return;
    }
    e = mem_new(struct stamp);
    e->key = key.ptr;
    e->tenant = (span){e->key, tenant.len};
    e->partition = (span){e->key + tenant.len + 1, partition.len};
    e->stamp_us = stamp_us;
    HASH_ADD_KEYPTR(hh, s->noted, e->key, key.len, e);
}

void stamps_forget(struct stamps *s, span tenant)
{
    struct stamp *e, *next;

    HASH_ITER (hh, s->noted, e, next) {
        if (!span_eq(e->tenant, tenant))
            continue;
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the table's links
        HASH_DEL(s->noted, e);
        free(e->key);
        free(e);
    }
}

static void on_save_due(uv_timer_t *timer)
{
    struct stamps *s = timer->data;

    if (!s->sending && s->noted)
        save_some(s);
}

static void save_some(struct stamps *s)
{
    struct stamp *e, *next;
    unsigned n = 0;

    HASH_ITER (hh, s->noted, e, next) {
        if (n++ == MAX_PER_CALL)
            break;
        HASH_DEL(s->noted, e);
        HASH_ADD_KEYPTR(hh, s->sending, e->key, e->tenant.len + 1 + e->partition.len, e);
    }
    pg_params_reset(&s->params);
    pg_param_text(&s->params, span_of(s->queue));
    pg_begin_array(&s->params, PG_TEXT);
    for (e = s->sending; e; e = e->hh.next)
        pg_put_text(&s->params, e->tenant);
    pg_end_array(&s->params);
    pg_begin_array(&s->params, PG_TEXT);
    for (e = s->sending; e; e = e->hh.next)
        pg_put_text(&s->params, e->partition);
    pg_end_array(&s->params);
    pg_begin_array(&s->params, PG_INT8);
    for (e = s->sending; e; e = e->hh.next)
        pg_put_i64(&s->params, e->stamp_us);
    pg_end_array(&s->params);
    s->call = (struct pg_call){.statement = &pg_stmt_platform_save_stamps,
                               .params = &s->params,
                               .done = on_stamps_saved,
                               .owner = s,
                               .deadline_ms = LIMIT_MS};
    pg_pool_exec(s->control, &s->call);
}

static void on_stamps_saved(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct stamps *s = call->owner;

    if (status != 0) {
        log_warn("stamps.save_failed", "code=%s why=\"%s\"", err_name(status),
                 pg_reply_message(reply));
        for (const struct stamp *e = s->sending; e; e = e->hh.next)
            stamps_note(s, e->tenant, e->partition, e->stamp_us);
    }
    free_stamps(&s->sending);
    if (status == 0 && s->noted && (s->closing || HASH_COUNT(s->noted) >= MAX_PER_CALL))
        save_some(s);
    else if (s->closing)
        uv_close((uv_handle_t *)&s->timer, on_stamps_timer_closed);
}

// ---- load ----

void stamps_load(struct stamps *s, span tenant, struct stamps_load *l)
{
    l->stamps = s;
    pg_params_reset(&l->params);
    pg_param_text(&l->params, tenant);
    pg_param_text(&l->params, span_of(s->queue));
    l->call = (struct pg_call){.statement = &pg_stmt_platform_load_stamps,
                               .params = &l->params,
                               .done = on_stamps_loaded,
                               .owner = l,
                               .deadline_ms = LIMIT_MS};
    pg_pool_exec(s->control, &l->call);
}

static void on_stamps_loaded(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct stamps_load *l = call->owner;

    if (status != 0 && !l->stamps->is_load_failing)
        log_warn("stamps.load_failed", "code=%s why=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    l->stamps->is_load_failing = status != 0;
    for (unsigned i = 0; status == 0 && i < pg_reply_rows(reply); i++)
        l->each(l, pg_reply_bytes(reply, i, PLATFORM_LOAD_STAMPS_COL_PARTITION),
                pg_reply_i64(reply, i, PLATFORM_LOAD_STAMPS_COL_STAMP));
    l->done(l, status);
}

void stamps_load_deinit(struct stamps_load *l) { pg_params_free(&l->params); }

// ---- close ----

void stamps_close(struct stamps *s, void (*closed)(void *ctx), void *ctx)
{
    s->closed = closed;
    s->closed_ctx = ctx;
    s->closing = true;
    uv_timer_stop(&s->timer);
    if (s->sending)
        return; // on_stamps_saved() continues
    if (s->noted)
        save_some(s);
    else
        uv_close((uv_handle_t *)&s->timer, on_stamps_timer_closed);
}

static void on_stamps_timer_closed(uv_handle_t *handle)
{
    struct stamps *s = handle->data;
    void (*closed)(void *) = s->closed;
    void *ctx = s->closed_ctx;

    free_stamps(&s->noted);
    pg_params_free(&s->params);
    free(s->queue);
    free(s);
    closed(ctx);
}
