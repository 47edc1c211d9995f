// lanes.c: the lanes of the partitions that this process owns.
#include "ingest/lanes.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "ingest/lane_int.h"
#include "tenant/sql.gen.h"

enum { TICK_MS = 100, RETRY_MS = 1000 };

static void on_lanes_tick(uv_timer_t *timer);
static void load_lanes(struct entry *e);
static void on_lanes_lanes_loaded(struct pg_call *call, int status,
                                  const struct pg_reply *reply);
static void on_epoch_checked(struct entry *e, int status);
static void on_lanes_found(struct entry *e, int status);
static void finish_load(struct entry *e, int status, const char *why);
static void free_entry(struct entry *e);
static void leave_lane(struct lane *lane);

struct lanes *lanes_open(uv_loop_t *loop, struct queen_client *broker, struct pg_pool *control,
                         struct tenant_pools *pools, struct writer *writer,
                         struct ingest_stats *events, const struct lanes_conf *conf)
{
    struct lanes *l = mem_new(struct lanes);
    struct buf held = {0};

    l->loop = loop;
    l->broker = broker;
    l->control = control;
    l->pools = pools;
    l->writer = writer;
    l->events = events;
    l->conf = *conf;
    l->queue = mem_strndup(conf->queue, strlen(conf->queue));
    l->group = mem_strndup(conf->group, strlen(conf->group));
    buf_printf(&held, "%s.held", conf->queue);
    buf_putc(&held, '\0');
    l->held = held.ptr;
    uv_timer_init(loop, &l->timer);
    l->timer.data = l;
    uv_timer_start(&l->timer, on_lanes_tick, TICK_MS, TICK_MS);
    return l;
}

const char *lanes_queue(const struct lanes *l) { return l->held; }
const struct lanes_stats *lanes_stats(const struct lanes *l) { return &l->stats; }

static void on_lanes_tick(uv_timer_t *timer)
{
    struct lanes *l = timer->data;
    struct lane *lane, *next;
    struct entry *e, *after;
    uint64_t now = uv_now(l->loop);

    HASH_ITER (hh, l->open, lane, next) {
        if (lane->state == LANE_PAUSING && (lane->waits || now >= lane->due_ms) && !lane->left)
            lane_continue(lane);
    }
    HASH_ITER (hh, l->entries, e, after) {
        if (!e->is_loaded && !e->calling && now >= e->due_ms)
            load_lanes(e);
    }
}

// ---- partitions ----

static struct entry *find_entry(struct lanes *l, const char *partition)
{
    struct entry *e;

    HASH_FIND(hh, l->entries, partition, strlen(partition), e);
    return e;
}

void lanes_enter(struct lanes *l, const struct queen_opened *o,
                 void (*loaded)(const char *partition, int status, void *ctx), void *ctx)
{
    struct entry *e = mem_new(struct entry);

    e->lanes = l;
    e->partition = mem_strndup(o->partition, strlen(o->partition));
    e->owner.epoch = o->epoch;
    snprintf(e->owner.partition_id, sizeof e->owner.partition_id, "%s",
             o->partition_id ? o->partition_id : "");
    e->loaded = loaded;
    e->ctx = ctx;
    HASH_ADD_KEYPTR(hh, l->entries, e->partition, strlen(e->partition), e);
    load_lanes(e);
}

static void load_lanes(struct entry *e)
{
    e->calling = true;
    e->lanes->n_ending++;
    pg_params_reset(&e->params);
    pg_param_text(&e->params, span_of(e->lanes->queue));
    pg_param_text(&e->params, span_of(e->partition));
    pg_param_text(&e->params, span_of(e->owner.partition_id));
    pg_param_i64(&e->params, e->owner.epoch);
    if (e->instead_of > 0)
        pg_param_i64(&e->params, e->instead_of);
    else
        pg_param_null(&e->params, PG_INT8);
    e->call = (struct pg_call){.statement = &pg_stmt_platform_held_enter,
                               .params = &e->params,
                               .done = on_lanes_lanes_loaded,
                               .owner = e};
    pg_pool_exec(e->lanes->control, &e->call);
}

static void on_lanes_lanes_loaded(struct pg_call *call, int status,
                                  const struct pg_reply *reply)
{
    struct entry *e = call->owner;
    struct lanes *l = e->lanes;

    if (e->left || status != 0) {
        finish_load(e, status, pg_reply_message(reply));
        return;
    }
    if (pg_reply_rows(reply) > 0 &&
        pg_reply_is_null(reply, 0, PLATFORM_HELD_ENTER_COL_TENANT)) {
        e->refused_by = pg_reply_i64(reply, 0, PLATFORM_HELD_ENTER_COL_WAIT_MS);
        entry_check_epoch(e, on_epoch_checked);
        return;
    }
    for (unsigned i = 0; i < pg_reply_rows(reply); i++) {
        span tenant = pg_reply_bytes(reply, i, PLATFORM_HELD_ENTER_COL_TENANT);
        if (lanes_has(l, span_of(e->partition),
                      tenant)) // opened by an earlier, incomplete attempt
            continue;
        struct lane *lane = lane_new(l, span_of(e->partition), &e->owner, tenant);
        lane->recorded = true;
        lane->replay = lane->replay_recorded =
            pg_reply_bool(reply, i, PLATFORM_HELD_ENTER_COL_REPLAY);
        lane->attempts = (unsigned)pg_reply_i32(reply, i, PLATFORM_HELD_ENTER_COL_ATTEMPTS);
        lane->due_ms =
            uv_now(l->loop) + (uint64_t)pg_reply_i64(reply, i, PLATFORM_HELD_ENTER_COL_WAIT_MS);
    }
    entry_find_lanes(e, on_lanes_found);
}

// The control database has a later epoch.  If the broker confirms ours, the broker was restored
// from a backup and the recorded epoch is invalid.  Otherwise the partition has a later owner.
static void on_epoch_checked(struct entry *e, int status)
{
    if (status == 0 && e->is_owner) {
        log_warn("held.epoch_reset", "partition=%s epoch=%lld recorded=%lld", e->partition,
                 (long long)e->owner.epoch, (long long)e->refused_by);
        e->instead_of = e->refused_by;
    }
    finish_load(e, status == 0 ? QE_CONFLICT : status,
                "the control database has a later owner");
}

static void on_lanes_found(struct entry *e, int status)
{
    finish_load(e, status, "the broker did not return the lanes");
}

static void finish_load(struct entry *e, int status, const char *why)
{
    struct lanes *l = e->lanes;

    e->calling = false;
    if (e->left) {
        free_entry(e);
    } else if (status != 0) {
        log_warn("held.load_failed", "partition=%s code=%s why=\"%s\"", e->partition,
                 err_name(status), why);
        e->due_ms = uv_now(l->loop) + (e->instead_of > 0 ? 0 : RETRY_MS);
        e->loaded(e->partition, status, e->ctx);
    } else {
        e->is_loaded = true;
        e->loaded(e->partition, 0, e->ctx);
    }
    lanes_end_one(l);
}

static void free_entry(struct entry *e)
{
    pg_params_free(&e->params);
    free(e->partition);
    free(e);
}

void lanes_leave(struct lanes *l, const char *partition)
{
    struct entry *e = find_entry(l, partition);
    struct lane *lane, *next;

    if (!e)
        return;
    HASH_ITER (hh, l->open, lane, next) {
        if (span_eq(lane->partition, span_of(partition)))
            leave_lane(lane);
    }
    HASH_DEL(l->entries, e);
    e->left = true;
    if (!e->calling)
        free_entry(e);
}

// ---- lanes ----

static struct lane *find_lane(struct lanes *l, span partition, span tenant)
{
    char key[512];
    struct lane *lane;

    int n =
        snprintf(key, sizeof key, SPAN_FMT "/" SPAN_FMT, SPAN_ARG(partition), SPAN_ARG(tenant));
    if (n < 0 || (size_t)n >= sizeof key)
        return NULL;
    HASH_FIND(hh, l->open, key, (size_t)n, lane);
    return lane;
}

bool lanes_has(struct lanes *l, span partition, span tenant)
{
    return find_lane(l, partition, tenant) != NULL;
}

struct lane *lanes_find(struct lanes *l, const char *partition, span tenant)
{
    struct lane *lane = l->open ? find_lane(l, span_of(partition), tenant) : NULL;

    return lane && lane->recorded ? lane : NULL;
}

const char *lane_partition(const struct lane *lane) { return lane->key; }

void lanes_need(struct lanes *l, const char *partition, span tenant, span why, bool replay,
                void (*ready)(int status, void *ctx), void *ctx)
{
    struct lane *lane = find_lane(l, span_of(partition), tenant);
    const struct entry *e = find_entry(l, partition);
    struct lane_wait *w = mem_new(struct lane_wait);

    *w = (struct lane_wait){.ready = ready, .ctx = ctx};
    if (!lane)
        lane = lane_new(l, span_of(partition), &e->owner, tenant);
    else if (lane->state == LANE_DELETING)
        lane->needed = true;
    w->next = lane->waits;
    lane->waits = w;
    lane->replay = lane->replay || replay;
    if (lane->state == LANE_PAUSING)
        lane_record(lane, why);
    else
        lane_set_reason(lane, why); // recorded when the step in progress has ended
}

void lane_divert(struct lane *lane)
{
    lane->diverting = true;
    lane->n_diverted++;
    counter_add(&lane->lanes->stats.held, 1);
}

void lanes_settled(struct lanes *l, const char *partition)
{
    struct lane *lane, *next;

    HASH_ITER (hh, l->open, lane, next) {
        if (lane->diverting && span_eq(lane->partition, span_of(partition)))
            lane->diverting = false;
    }
}

void lanes_tenant_available(struct lanes *l, span tenant)
{
    struct lane *lane, *next;

    HASH_ITER (hh, l->open, lane, next) {
        if (lane->state == LANE_PAUSING && lane->attempts > 0 &&
            span_eq(lane->tenant, tenant)) {
            lane->attempts = 0;
            lane->due_ms = 0;
        }
    }
}

static void leave_lane(struct lane *lane)
{
    lane->left = true;
    lane->lanes->n_ending++;
    HASH_DEL(lane->lanes->open, lane); // this process may become its next owner
    if (lane->state == LANE_PAUSING)
        lanes_remove(lane);
}

void lanes_remove(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    bool left = lane->left;

    if (!left)
        HASH_DEL(l->open, lane);
    l->stats.n_open--;
    arena_deinit(&lane->arena);
    pg_params_free(&lane->params);
    free(lane->key);
    free(lane);
    if (left)
        lanes_end_one(l);
}

// ---- close ----

static void on_lanes_timer_closed(uv_handle_t *handle)
{
    struct lanes *l = handle->data;

    l->closed(l->closed_ctx);
    free(l->queue);
    free(l->held);
    free(l->group);
    free(l);
}

void lanes_end_one(struct lanes *l)
{
    if (--l->n_ending == 0 && l->closing)
        uv_close((uv_handle_t *)&l->timer, on_lanes_timer_closed);
}

void lanes_close(struct lanes *l, void (*closed)(void *ctx), void *ctx)
{
    l->closed = closed;
    l->closed_ctx = ctx;
    l->closing = true;
    l->n_ending++;
    lanes_end_one(l);
}
