// lane_replay.c: applies events again that the tenant's database has lost.
//
// A database that was restored from a backup, or that failed over to a standby that lagged, has
// a checkpoint from before its last transactions (write.c compares them).  The lost events are
// still in the event queue: a consumer group of this replay reads the partition from the
// checkpoint to its end, and the tenant's events are written in their order.  Events that the
// database has are skipped by their ids.  Meanwhile new events go into the lane, so that none
// overtakes.
//
//       checkpoint ──► seek the group ──► pop ──► write ──► pop ... ──► empty: drain the lane
//
// A replay that fails begins again at the checkpoint, which its own writes have moved.
#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/moment.h"
#include "base/str.h"
#include "ingest/lane_int.h"
#include "tenant/sql.gen.h"

static const int64_t OVERLAP_US = 1000000, DAY_US = 86400000000;

struct replay {
    char *group;
    int64_t position_us; // checkpoint of the tenant
    char from[STR_TS_US + 1];
    bool begun; // the first message was seen
    unsigned n_events, n_applied;
    char why[240];
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_params pg_params;
    struct my_params my_params;
    union {
        struct pg_call pg;
        struct my_call my;
    } call;
};

static void on_replay_got(struct tenant_want *want, int status, struct tenant_ref *ref,
                          const struct fault *why);
static void on_pg_checkpoint(struct pg_call *call, int status, const struct pg_reply *reply);
static void on_my_checkpoint(struct my_call *call, int status, const struct my_reply *reply);
static void on_checkpoint(struct lane *lane, bool found, int64_t position_us);
static void on_seek_done(struct queen_response *r, const struct queen_error *err, void *ctx);
static void replay_pop(struct lane *lane);
static void on_replay_popped(struct queen_batch *batch, const struct queen_error *err,
                             void *ctx);
static void on_replay_written(struct bundle *g);
static void end_replay(struct lane *lane, const char *why);

static char *make_group(const struct lane *lane)
{
    struct buf name = {0};

    buf_printf(&name, "%s.replay.%s", lane->lanes->group, lane->key);
    buf_putc(&name, '\0');
    return name.ptr;
}

void lane_replay(struct lane *lane)
{
    struct replay *r = mem_new(struct replay);

    lane->state = LANE_REPLAYING;
    lane->replaying = r;
    r->group = make_group(lane);
    r->want = (struct tenant_want){.got = on_replay_got, .owner = lane};
    tenant_get(lane->lanes->pools, lane->tenant, &r->want);
}

// ---- the checkpoint ----

static void on_replay_got(struct tenant_want *want, int status, struct tenant_ref *ref,
                          const struct fault *why)
{
    struct lane *lane = want->owner;
    struct replay *r = lane->replaying;
    struct lanes *l = lane->lanes;

    if (status != 0) {
        end_replay(lane, why->text);
        return;
    }
    r->ref = ref;
    if (tenant_ref_kind(ref) == TENANT_PG) {
        pg_param_text(&r->pg_params, span_of(l->queue));
        pg_param_text(&r->pg_params, lane->partition);
        r->call.pg = (struct pg_call){.statement = &pg_stmt_tenant_checkpoint,
                                      .params = &r->pg_params,
                                      .done = on_pg_checkpoint,
                                      .owner = lane};
        pg_pool_exec(tenant_ref_pg(ref), &r->call.pg);
    } else {
        my_param_text(&r->my_params, span_of(l->queue));
        my_param_text(&r->my_params, lane->partition);
        r->call.my = (struct my_call){.statement = &my_stmt_tenant_checkpoint,
                                      .params = &r->my_params,
                                      .done = on_my_checkpoint,
                                      .owner = lane};
        my_pool_exec(tenant_ref_my(ref), &r->call.my);
    }
}

static bool replay_release_tenant(struct lane *lane, int status, const char *message)
{
    struct replay *r = lane->replaying;

    if (status != 0) {
        str_clean_utf8(r->why, sizeof r->why,
                       span_of(message[0] != '\0' ? message : err_text(status)));
        tenant_ref_failed(r->ref, status);
    }
    tenant_put(r->ref);
    r->ref = NULL;
    if (status != 0)
        end_replay(lane, r->why);
    return status == 0;
}

static void on_pg_checkpoint(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct lane *lane = call->owner;
    bool found = status == 0 && pg_reply_rows(reply) > 0;
    int64_t position_us = found ? pg_reply_i64(reply, 0, TENANT_CHECKPOINT_COL_POSITION) : 0;

    if (replay_release_tenant(lane, status, pg_reply_message(reply)))
        on_checkpoint(lane, found, position_us);
}

static void on_my_checkpoint(struct my_call *call, int status, const struct my_reply *reply)
{
    struct lane *lane = call->owner;
    bool found = status == 0 && my_reply_rows(reply) > 0;
    int64_t position_us = found ? my_reply_i64(reply, 0, MY_TENANT_CHECKPOINT_COL_POSITION) : 0;

    if (replay_release_tenant(lane, status, my_reply_message(reply)))
        on_checkpoint(lane, found, position_us);
}

// Without a checkpoint the database may be a new one of the same name: the history of the old
// one is not written into it.
static void on_checkpoint(struct lane *lane, bool found, int64_t position_us)
{
    struct replay *r = lane->replaying;
    struct lanes *l = lane->lanes;

    writer_forget(l->writer, lane->tenant, lane->partition);
    if (!found) {
        log_error("replay.impossible", "lane=%s why=\"the database has no checkpoint\"",
                  lane->key);
        counter_add(&l->stats.unreplayed, 1);
        end_replay(lane, NULL);
        return;
    }
    r->position_us = position_us;
    if (position_us < OVERLAP_US || position_us > (int64_t)clock_wall_us() + DAY_US)
        position_us = OVERLAP_US; // none, or no time
    str_format_ts_us(position_us - OVERLAP_US, r->from);
    log_warn("replay.started", "lane=%s from=%s", lane->key, r->from);
    // A replay that was interrupted has left its group somewhere in the partition.
    char *queue = queen_escape(l->queue), *group = queen_escape(r->group);
    struct buf path = {0}, body = {0};
    buf_printf(&path, "/api/v1/consumer-groups/%s/queues/%s/seek", group, queue);
    buf_putc(&path, '\0');
    buf_printf(&body, "{\"timestamp\":\"%s\"}", r->from);
    queen_request_start(
        l->broker,
        &(struct queen_request){
            .method = "POST", .path = path.ptr, .body = body.ptr, .body_len = body.len},
        on_seek_done, lane);
    buf_free(&path);
    buf_free(&body);
    free(queue);
    free(group);
}

static void on_seek_done(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct lane *lane = ctx;
    bool ok = r && err->code == 0;

    queen_response_free(r);
    if (ok)
        replay_pop(lane);
    else
        end_replay(lane, err->text);
}

// ---- events ----

// Acknowledged on delivery: after a failure the replay begins at the checkpoint again.
static void replay_pop(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    char *partition = mem_strndup(lane->partition.ptr, lane->partition.len);

    if (lane->left)
        end_replay(lane, "the partition has another owner");
    else
        queen_pop_start(l->broker,
                        &(struct queen_pop){.queue = l->queue,
                                            .partition = partition,
                                            .group = lane->replaying->group,
                                            .batch = l->conf.batch,
                                            .auto_ack = true,
                                            .subscription_from = lane->replaying->from},
                        on_replay_popped, lane);
    free(partition);
}

static void check_first(struct lane *lane, const struct queen_delivery *d)
{
    struct replay *r = lane->replaying;
    int64_t us = 0;

    if (r->begun)
        return;
    r->begun = true;
    // The checkpoint is the time of a message, which comes first if the broker still has it.
    if (moment_parse(span_of(d->created_at), &us) && us > r->position_us) {
        counter_add(&lane->lanes->stats.unreplayed, 1);
        log_error("replay.incomplete", "lane=%s oldest=%s", lane->key, d->created_at);
    }
}

static void collect_events(struct lane *lane, const struct queen_batch *batch)
{
    struct bundle *g = &lane->bundle;
    struct fault f;

    arena_deinit(&lane->arena);
    arena_init(&lane->arena);
    *g = (struct bundle){.tenant = lane->tenant,
                         .arena = &lane->arena,
                         .items = arena_new_array(&lane->arena, struct item, batch->n),
                         .done = on_replay_written,
                         .owner = lane};
    for (size_t i = 0; i < batch->n; i++) {
        struct queen_delivery d = batch->items[i];
        struct item *item = &g->items[g->n];
        d.data = arena_copy(&lane->arena, (span){d.data, d.data_len}).ptr;
        if (event_read_message(&item->event, &d, SPAN_NONE, &lane->arena, &item->position_us,
                               &f) != 0 ||
            !span_eq(item->event.tenant, lane->tenant))
            continue;
        item->partition = lane->partition;
        g->n++;
    }
}

static void on_replay_popped(struct queen_batch *batch, const struct queen_error *err,
                             void *ctx)
{
    struct lane *lane = ctx;
    struct replay *r = lane->replaying;

    if (!batch) {
        end_replay(lane, err->text);
        return;
    }
    bool is_end = batch->n == 0;
    if (!is_end) {
        check_first(lane, &batch->items[0]);
        collect_events(lane, batch);
    }
    queen_batch_free(batch);
    if (is_end) {
        counter_add(&lane->lanes->stats.replays, 1);
        log_warn("replay.done", "lane=%s events=%u applied=%u", lane->key, r->n_events,
                 r->n_applied);
        end_replay(lane, NULL);
    } else if (lane->bundle.n == 0) {
        replay_pop(lane);
    } else {
        writer_add(lane->lanes->writer, &lane->bundle);
    }
}

static void on_replay_written(struct bundle *g)
{
    struct lane *lane = g->owner;
    struct replay *r = lane->replaying;

    for (unsigned i = 0; i < g->n; i++) {
        const struct item *item = &g->items[i];
        if (item->outcome == ITEM_FAILED) {
            str_clean_utf8(r->why, sizeof r->why, item->why);
            end_replay(lane, r->why);
            return;
        }
        if (item->outcome == ITEM_BAD) // as when it came first: it is a dead letter
            log_warn("replay.refused", "lane=%s why=\"" SPAN_FMT "\"", lane->key,
                     SPAN_ARG(item->why));
        r->n_events++;
        r->n_applied += item->outcome == ITEM_APPLIED;
        counter_add(&lane->lanes->stats.replayed, item->outcome == ITEM_APPLIED);
    }
    replay_pop(lane);
}

// ---- the end ----

static void on_group_deleted(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct lanes *l = ctx;

    if (err->code != 0 && err->code != QUEEN_E_NOT_FOUND)
        log_warn("replay.group_remains", "why=\"%s\"", err->text);
    queen_response_free(r);
    lanes_end_one(l);
}

static void delete_group(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    char *queue = queen_escape(l->queue), *group = queen_escape(lane->replaying->group);
    struct buf path = {0};

    buf_printf(&path, "/api/v1/consumer-groups/%s/queues/%s", group, queue);
    buf_putc(&path, '\0');
    l->n_ending++;
    queen_request_start(l->broker,
                        &(struct queen_request){.method = "DELETE", .path = path.ptr},
                        on_group_deleted, l);
    buf_free(&path);
    free(queue);
    free(group);
}

// why NULL: the lane can be drained.
static void end_replay(struct lane *lane, const char *why)
{
    struct replay *r = lane->replaying;
    char reason[240];

    assert(r);
    str_clean_utf8(reason, sizeof reason, span_of(why ? why : ""));
    if (r->from[0] != '\0' && !why) // the seek has created it
        delete_group(lane);
    lane->replaying = NULL;
    pg_params_free(&r->pg_params);
    my_params_free(&r->my_params);
    free(r->group);
    free(r);
    if (why && !lane->left) {
        log_warn("replay.failed", "lane=%s why=\"%s\"", lane->key, reason);
        lane_record_failure(lane, span_of(reason));
        return;
    }
    lane->replay = lane->replay_recorded = lane->left;
    lane_pause(lane, 0);
}
