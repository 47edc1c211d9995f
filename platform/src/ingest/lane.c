// lane.c: records a lane in the control database, pauses it, and deletes it when it is empty.
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ingest/lane_int.h"
#include "tenant/sql.gen.h"

enum { RETRY_MS = 1000 };

static void lane_abandon(struct lane *lane, int status);
static void on_lane_recorded(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_lane_deleted(struct pg_call *call, int status, const struct pg_reply *reply);

struct lane *lane_new(struct lanes *l, span partition, const struct lane_owner *owner,
                      span tenant)
{
    struct lane *lane = mem_new(struct lane);
    struct buf key = {0};

    buf_printf(&key, SPAN_FMT "/" SPAN_FMT, SPAN_ARG(partition), SPAN_ARG(tenant));
    buf_putc(&key, '\0');
    lane->lanes = l;
    lane->key = key.ptr;
    lane->partition = (span){lane->key, partition.len};
    lane->tenant = (span){lane->key + partition.len + 1, tenant.len};
    lane->owner = *owner;
    lane->state = LANE_PAUSING;
    arena_init(&lane->arena);
    HASH_ADD_KEYPTR(hh, l->open, lane->key, strlen(lane->key), lane);
    l->stats.n_open++;
    return lane;
}

static void put_lane_params(struct lane *lane)
{
    pg_params_reset(&lane->params);
    pg_param_text(&lane->params, span_of(lane->lanes->queue));
    pg_param_text(&lane->params, lane->partition);
    pg_param_text(&lane->params, span_of(lane->owner.partition_id));
    pg_param_i64(&lane->params, lane->owner.epoch);
    pg_param_text(&lane->params, lane->tenant);
}

static void control_call(struct lane *lane, const struct pg_statement *statement,
                         pg_done_cb done)
{
    lane->call = (struct pg_call){
        .statement = statement, .params = &lane->params, .done = done, .owner = lane};
    pg_pool_exec(lane->lanes->control, &lane->call);
}

void lane_set_reason(struct lane *lane, span why)
{
    str_clean_utf8(lane->why, sizeof lane->why, why);
}

void lane_pause(struct lane *lane, uint64_t ms)
{
    lane->state = LANE_PAUSING;
    lane->due_ms = uv_now(lane->lanes->loop) + ms;
    if (lane->left)
        lane_abandon(lane, QE_STOPPING);
}

// ---- record ----

void lane_record(struct lane *lane, span why)
{
    struct lanes *l = lane->lanes;

    lane_set_reason(lane, why);
    lane->state = LANE_RECORDING;
    lane->attempts = 1;
    put_lane_params(lane);
    pg_param_i64(&lane->params, l->conf.base_ms);
    pg_param_text(&lane->params, span_of(lane->why));
    pg_param_bool(&lane->params, lane->replay);
    lane->replay_recorded = lane->replay;
    control_call(lane, &pg_stmt_platform_held_open, on_lane_recorded);
}

static struct lane_wait *take_waits(struct lane *lane)
{
    struct lane_wait *waits = lane->waits;

    lane->waits = NULL;
    return waits;
}

static void call_waiters(struct lane_wait *waits, int status)
{
    for (struct lane_wait *w = waits, *next; w; w = next) {
        next = w->next;
        w->ready(status, w->ctx);
        free(w);
    }
}

// Frees the lane before the callbacks run, so that they cannot find it: a lane that is not
// recorded would never be drained.
static void lane_abandon(struct lane *lane, int status)
{
    struct lane_wait *waits = take_waits(lane);

    lanes_remove(lane);
    call_waiters(waits, status);
}

// A lane that was recorded earlier may contain events and stays.  A call that was not sent
// (QE_PG_AWAY) has changed nothing.  Any other failure may have come after the commit.
static void on_record_failed(struct lane *lane, int status)
{
    lane->in_doubt = lane->in_doubt || (!lane->recorded && status != QE_PG_AWAY);
    if (!lane->recorded && !lane->in_doubt) {
        lane_abandon(lane, status);
        return;
    }
    struct lane_wait *waits = take_waits(lane);
    lane->replay_recorded = false;
    lane_pause(lane, RETRY_MS);
    call_waiters(waits, status);
}

static void on_lane_recorded(struct pg_call *c, int status, const struct pg_reply *reply)
{
    struct lane *lane = c->owner;

    if (status != 0) {
        log_warn("held.record_failed", "lane=%s code=%s why=\"%s\"", lane->key,
                 err_name(status), pg_reply_message(reply));
        on_record_failed(lane, status);
        return;
    }
    lane->recorded = true;
    lane->in_doubt = false;
    log_warn("held.opened", "lane=%s why=\"%s\"", lane->key, lane->why);
    counter_add(&lane->lanes->stats.opened, 1);
    struct lanes *l = lane->lanes;
    lane->state = LANE_PAUSING;
    lane->due_ms = uv_now(l->loop) + l->conf.base_ms;
    if (lane->left)
        lane_abandon(lane, QE_STOPPING);
    else
        call_waiters(take_waits(lane), 0);
}

// ---- delete ----

void lane_delete(struct lane *lane)
{
    lane->state = LANE_DELETING;
    lane->recorded = false;
    lane->in_doubt = true;
    lane->needed = lane->waits != NULL;
    put_lane_params(lane);
    control_call(lane, &pg_stmt_platform_held_close, on_lane_deleted);
}

static void on_lane_deleted(struct pg_call *c, int status, const struct pg_reply *reply)
{
    struct lane *lane = c->owner;

    if (status != 0)
        log_warn("held.delete_failed", "lane=%s code=%s why=\"%s\"", lane->key,
                 err_name(status), pg_reply_message(reply));
    else
        log_info("held.closed", "lane=%s", lane->key);
    lane->in_doubt = status != 0;
    if (lane->needed && !lane->left) {
        lane->needed = false;
        lane_record(lane, span_of(lane->why));
    } else if (status != 0 && !lane->left) {
        lane_pause(lane, RETRY_MS);
    } else {
        counter_add(&lane->lanes->stats.closed, 1);
        lane_abandon(lane, QE_STOPPING);
    }
}

// ---- record a failed attempt ----

static void on_lane_failure_recorded(struct pg_call *c, int status,
                                     const struct pg_reply *reply)
{
    struct lane *lane = c->owner;

    if (status != 0) // the pause applies anyway
        log_warn("held.record_failed", "lane=%s code=%s why=\"%s\"", lane->key,
                 err_name(status), pg_reply_message(reply));
    lane_pause(lane, lanes_pause_ms(lane->attempts, lane->lanes->conf.base_ms,
                                    lane->lanes->conf.cap_ms));
}

void lane_record_failure(struct lane *lane, span why)
{
    struct lanes *l = lane->lanes;

    lane_set_reason(lane, why);
    lane->attempts++;
    counter_add(&l->stats.attempts, 1);
    put_lane_params(lane);
    pg_param_i32(&lane->params, (int32_t)lane->attempts);
    pg_param_i64(&lane->params,
                 lanes_pause_ms(lane->attempts, l->conf.base_ms, l->conf.cap_ms));
    pg_param_text(&lane->params, span_of(lane->why));
    control_call(lane, &pg_stmt_platform_held_note, on_lane_failure_recorded);
}
