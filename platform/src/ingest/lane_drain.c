// lane_drain.c: takes the events out of a lane, in order.
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "ingest/lane_int.h"
#include "json/scan.h"

// A mark is not delivered while another consumer has a lease.  It is gone if an earlier owner
// acknowledged it, or if the broker's database was restored from a backup.
enum { RETRY_MS = 500, AFTER_ERROR_MS = 1000, MARK_AGAIN_MS = 10000 };

static void lane_pop(struct lane *lane);
static void on_popped(struct queen_batch *batch, const struct queen_error *err, void *ctx);
static void write_batch(struct lane *lane);
static void on_drain_written(struct bundle *g);
static void ack_batch(struct lane *lane);
static void on_acked(struct queen_ack_results *r, const struct queen_error *err, void *ctx);
static void push_mark(struct lane *lane);
static void on_marked(struct queen_push_results *r, const struct queen_error *err, void *ctx);

void lane_continue(struct lane *lane)
{
    if (lane->waits || (lane->recorded && lane->replay && !lane->replay_recorded))
        lane_record(lane, span_of(lane->why));
    else if (!lane->recorded)
        lane_delete(lane);
    else if (lane->replay)
        lane_replay(lane);
    else
        lane_pop(lane);
}

static void lane_pop(struct lane *lane)
{
    struct lanes *l = lane->lanes;

    lane->state = LANE_POPPING;
    queen_pop_start(l->broker,
                    &(struct queen_pop){.queue = l->held,
                                        .partition = lane->key,
                                        .group = l->group,
                                        .batch = l->conf.batch,
                                        .subscription_mode = "all"},
                    on_popped, lane);
}

static void on_popped(struct queen_batch *batch, const struct queen_error *err, void *ctx)
{
    struct lane *lane = ctx;

    if (!batch) {
        log_warn("held.pop_failed", "lane=%s why=\"%s\"", lane->key, err->text);
        lane_pause(lane, AFTER_ERROR_MS);
    } else if (batch->n == 0) {
        queen_batch_free(batch);
        // Either the lane is empty or another consumer holds a lease.  The mark decides.
        bool is_marked = lane->mark[0] != '\0' && uv_now(lane->lanes->loop) < lane->mark_due_ms;
        if (lane->left || lane->diverting || is_marked)
            lane_pause(lane, RETRY_MS);
        else
            push_mark(lane);
    } else {
        lane->batch = batch;
        write_batch(lane);
    }
}

// ---- the mark ----

static void push_mark(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    char payload[80];

    lane->state = LANE_MARKING;
    queen_new_id(lane->mark);
    lane->mark_diverted = lane->n_diverted;
    lane->mark_due_ms = uv_now(l->loop) + MARK_AGAIN_MS;
    snprintf(payload, sizeof payload, "{\"mark\":\"%s\"}", lane->mark);
    queen_push_start(
        l->broker,
        &(struct queen_message){.queue = l->held, .partition = lane->key, .payload = payload},
        1, on_marked, lane);
}

static void on_marked(struct queen_push_results *r, const struct queen_error *err, void *ctx)
{
    struct lane *lane = ctx;
    bool ok = r && r->n == 1 && r->items[0].status == QUEEN_QUEUED;

    if (!ok)
        log_warn("held.mark_failed", "lane=%s why=\"%s\"", lane->key, err->text);
    queen_push_results_free(r);
    if (!ok)
        lane->mark[0] =
            '\0'; // it may have been stored anyway; then it is ignored when it is delivered
    if (ok && !lane->left)
        lane_continue(lane);
    else
        lane_pause(lane, AFTER_ERROR_MS);
}

// Returns the id of a mark, or SPAN_NONE.
static span drain_mark_of(const struct queen_delivery *d, struct arena *a)
{
    struct js j = js_read((span){d->data, d->data_len});
    span key, mark = SPAN_NONE;

    if (js_peek(&j) != JS_OBJECT)
        return mark;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        if (j.rc == 0 && js_key_is(key, SPAN("mark")) && js_type_of(raw) == JS_STRING)
            mark = js_text(raw, a);
    }
    return js_finish(&j) == 0 ? mark : SPAN_NONE;
}

// ---- events ----

static void write_batch(struct lane *lane)
{
    size_t n = lane->batch->n;
    struct bundle *g = &lane->bundle;

    arena_deinit(&lane->arena);
    arena_init(&lane->arena);
    *g = (struct bundle){.tenant = lane->tenant,
                         .arena = &lane->arena,
                         .items = arena_new_array(&lane->arena, struct item, n),
                         .done = on_drain_written,
                         .owner = lane};
    lane->at = arena_new_array(&lane->arena, size_t, n);
    lane->invalid = arena_new_array(&lane->arena, const char *, n);
    lane->failed = lane->emptied = false;
    for (size_t i = 0; i < n; i++) {
        const struct queen_delivery *d = &lane->batch->items[i];
        struct item *item = &g->items[g->n];
        struct fault f;
        span mark = drain_mark_of(d, &lane->arena);
        if (mark.ptr) {
            lane->emptied = lane->emptied || span_eq(mark, span_of(lane->mark));
            continue;
        }
        // The intake moves only valid events here, so another producer pushed this one.
        if (event_read_message(&item->event, d, lane->tenant, &lane->arena, &item->position_us,
                               &f) != 0) {
            lane->invalid[i] = arena_cstr(&lane->arena, span_of(f.text));
            continue;
        }
        item->partition = lane->partition;
        item->is_held = true;
        lane->at[g->n++] = i;
    }
    // It may not come again: it can be acknowledged although an event behind it fails, or
    // although the reply is lost.  Then the lane needs another mark.
    if (lane->emptied)
        lane->mark[0] = '\0';
    lane->state = LANE_WRITING;
    if (lane->left)
        lane->failed = true;
    if (g->n > 0 && !lane->left)
        writer_add(lane->lanes->writer, g);
    else
        ack_batch(lane);
}

static void on_drain_written(struct bundle *g)
{
    struct lane *lane = g->owner;

    for (unsigned i = 0; i < g->n; i++) {
        lane->failed = lane->failed || g->items[i].outcome == ITEM_FAILED;
        lane->replay = lane->replay || g->items[i].is_behind;
    }
    ack_batch(lane);
}

// Acknowledges up to the first failed event.  The rest stays in order.
static void ack_batch(struct lane *lane)
{
    struct lanes *l = lane->lanes;
    const struct bundle *g = &lane->bundle;
    struct queen_ack *acks = arena_new_array(&lane->arena, struct queen_ack, lane->batch->n);
    size_t first_failed = lane->failed ? 0 : lane->batch->n;

    if (lane->failed && g->n > 0 && g->n_open == 0)
        for (unsigned i = g->n; i-- > 0 && g->items[i].outcome == ITEM_FAILED;)
            first_failed = lane->at[i];
    for (size_t i = 0; i < lane->batch->n; i++) {
        acks[i] =
            queen_ack_of(&lane->batch->items[i], i >= first_failed  ? QUEEN_ACK_RETRY
                                                 : lane->invalid[i] ? QUEEN_ACK_DLQ
                                                                    : QUEEN_ACK_COMPLETED);
        acks[i].error = acks[i].status == QUEEN_ACK_DLQ ? lane->invalid[i] : NULL;
    }
    for (unsigned i = 0; i < g->n && lane->at[i] < first_failed; i++) {
        struct queen_ack *a = &acks[lane->at[i]];
        if (g->items[i].outcome != ITEM_BAD)
            continue;
        a->status = QUEEN_ACK_DLQ;
        a->error = arena_cstr(&lane->arena, g->items[i].why);
    }
    lane->emptied = lane->emptied && !lane->failed;
    lane->state = LANE_ACKING;
    queen_ack_start(l->broker, l->group, acks, lane->batch->n, on_acked, lane);
}

static void count_drained(struct lane *lane)
{
    for (unsigned i = 0; i < lane->bundle.n; i++) {
        const struct item *item = &lane->bundle.items[i];
        if (item->outcome == ITEM_OPEN || item->outcome == ITEM_FAILED)
            continue;
        ingest_count_item(lane->lanes->events, item);
        counter_add(&lane->lanes->stats.drained, 1);
    }
}

static void on_acked(struct queen_ack_results *r, const struct queen_error *err, void *ctx)
{
    struct lane *lane = ctx;
    bool ok = r && r->n_refused == 0;
    bool quiet = !lane->diverting && lane->n_diverted == lane->mark_diverted;

    if (!ok)
        log_warn("held.ack_failed", "lane=%s why=\"%s\"", lane->key, err->text);
    else
        count_drained(lane);
    queen_ack_results_free(r);
    queen_batch_free(lane->batch);
    lane->batch = NULL;
    if (lane->left || !ok) {
        lane_pause(lane, AFTER_ERROR_MS);
    } else if (lane->failed) {
        span why = lane->bundle.n > 0 ? lane->bundle.items[lane->bundle.n - 1].why : SPAN_NONE;
        if (lane->replay)
            lane_record(lane, why);
        else
            lane_record_failure(lane, why);
    } else if (lane->emptied && quiet) {
        lane_delete(lane);
    } else {
        lane->attempts = 0;
        lane_continue(lane);
    }
}
