// intake.c: processes a batch from the broker: read, split by tenant, write, move events of
// unavailable tenants to lanes, acknowledge.
#include "ingest/intake.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "ingest/bundle.h"

enum { RETRY_MS = 1000 };

struct partition {
    struct intake *intake;
    char *name;
    bool ready;                // its lanes are loaded
    struct queen_events *next; // a batch that waits for that
    UT_hash_handle hh;
};

struct intake {
    uv_loop_t *loop;
    struct writer *writer;
    struct lanes *lanes;
    struct ingest_stats *stats;
    unsigned pause_ms;
    struct partition *partitions;
};

// The events of one tenant in a batch.
struct share {
    struct bundle bundle;
    struct batch *batch;
    bool lane_missing; // some events failed, and their lane could not be recorded
    UT_hash_handle hh; // by tenant
};

// One message of the batch.
struct part {
    struct event event;
    struct share *share; // NULL: already answered, because it is invalid
    struct item *item;   // NULL: goes to a lane behind earlier events
    int64_t position_us; // when the broker stored it
};

struct batch {
    struct intake *intake;
    struct queen_events *events;
    struct arena arena;
    struct part *parts;
    struct share *shares;
    unsigned n_open; // shares that are being written or whose lane is being recorded
    uint64_t began_ms;
    uv_timer_t timer; // retries, then delays the acknowledgement
};

static void batch_begin(struct intake *f, struct queen_events *events);
static void read_parts(struct batch *b);
static void make_bundles(struct batch *b);
static void on_bundle_done(struct bundle *g);
static void share_open_lane(struct share *s);
static void on_lane_ready(int status, void *ctx);
static void share_finished(struct batch *b);
static void on_intake_retry_due(uv_timer_t *timer);
static void batch_answer(struct batch *b);
static void delay_acknowledgement(struct batch *b);
static void on_delay_over(uv_timer_t *timer);
static void on_intake_timer_closed(uv_handle_t *handle);

struct intake *intake_new(uv_loop_t *loop, struct writer *writer, struct lanes *lanes,
                          struct ingest_stats *stats, unsigned pause_ms)
{
    struct intake *f = mem_new(struct intake);

    *f = (struct intake){
        .loop = loop, .writer = writer, .lanes = lanes, .stats = stats, .pause_ms = pause_ms};
    return f;
}

void intake_free(struct intake *f) { free(f); }

// ---- opening and closing partitions ----

static struct partition *find_partition(struct intake *f, const char *name)
{
    struct partition *p;

    HASH_FIND(hh, f->partitions, name, strlen(name), p);
    return p;
}

static void on_intake_lanes_loaded(const char *name, int status, void *ctx)
{
    struct intake *f = ctx;
    struct partition *p = find_partition(f, name);
    struct queen_events *events = p->next;

    p->ready = status == 0;
    if (!events || (!p->ready && !queen_events_is_over(events)))
        return;
    p->next = NULL;
    if (p->ready)
        batch_begin(f, events);
    else
        queen_events_done(events); // not started: another owner receives it
}

void intake_opened(const struct queen_opened *o, void *ctx)
{
    struct intake *f = ctx;
    struct partition *p = mem_new(struct partition);

    p->intake = f;
    p->name = mem_strndup(o->partition, strlen(o->partition));
    HASH_ADD_KEYPTR(hh, f->partitions, p->name, strlen(p->name), p);
    writer_reload_stamps(f->writer);
    lanes_enter(f->lanes, o, on_intake_lanes_loaded, f);
}

void intake_closed(const char *name, enum queen_closed why, void *ctx)
{
    struct intake *f = ctx;
    struct partition *p = find_partition(f, name);

    (void)why;
    lanes_leave(f->lanes, name);
    HASH_DEL(f->partitions, p);
    free(p->name);
    free(p);
}

// A batch with an unknown outcome may still add events to a lane.  The lane must not count as
// empty until the outcome of a later batch of the partition is known.
void intake_settled(const char *name, bool known, void *ctx)
{
    struct intake *f = ctx;

    if (known)
        lanes_settled(f->lanes, name);
}

void intake_events(struct queen_events *events, void *ctx)
{
    struct intake *f = ctx;
    struct partition *p = find_partition(f, events->partition);

    if (p->ready)
        batch_begin(f, events);
    else
        p->next = events;
}

// ---- a batch ----

static void batch_begin(struct intake *f, struct queen_events *events)
{
    struct batch *b = mem_new(struct batch);

    b->intake = f;
    b->events = events;
    b->began_ms = uv_now(f->loop);
    arena_init(&b->arena);
    b->parts = arena_new_array(&b->arena, struct part, events->n);
    uv_timer_init(f->loop, &b->timer);
    b->timer.data = b;
    histogram_add(&f->stats->batch, events->n);
    read_parts(b);
    make_bundles(b);
    b->n_open++; // keeps the batch open until all bundles are started
    for (struct share *s = b->shares, *next; s; s = next) {
        next = s->hh.next;
        if (s->bundle.n == 0)
            continue;
        b->n_open++;
        writer_add(f->writer, &s->bundle);
    }
    share_finished(b);
}

static struct share *share_of(struct batch *b, span tenant)
{
    struct share *s;

    HASH_FIND(hh, b->shares, tenant.ptr, tenant.len, s);
    if (s)
        return s;
    s = arena_new(&b->arena, struct share);
    s->batch = b;
    s->bundle.tenant = tenant;
    s->bundle.arena = &b->arena;
    s->bundle.done = on_bundle_done;
    s->bundle.owner = s;
    HASH_ADD_KEYPTR(hh, b->shares, s->bundle.tenant.ptr, tenant.len, s);
    return s;
}

static void read_parts(struct batch *b)
{
    for (size_t i = 0; i < b->events->n; i++) {
        const struct queen_delivery *d = b->events->messages[i];
        struct part *part = &b->parts[i];
        struct fault f;
        if (event_read_message(&part->event, d, SPAN_NONE, &b->arena, &part->position_us, &f) !=
            0) {
            queen_events_answer(b->events, i, QUEEN_HOPELESS, f.text);
            ingest_count(b->intake->stats, part->event.type, OUTCOME_BAD);
            continue;
        }
        part->share = share_of(b, part->event.tenant);
    }
}

// Events of a tenant with an open lane join no bundle: they follow the others into the lane.
static void make_bundles(struct batch *b)
{
    size_t n = b->events->n;

    for (size_t i = 0; i < n; i++) {
        struct share *s = b->parts[i].share;
        if (!s)
            continue;
        struct lane *lane =
            lanes_find(b->intake->lanes, b->events->partition, s->bundle.tenant);
        if (lane) {
            lane_divert(lane); // from now on the lane must not count as empty
            continue;
        }
        if (!s->bundle.items)
            s->bundle.items = arena_new_array(&b->arena, struct item, n - i);
        struct item *item = &s->bundle.items[s->bundle.n++];
        item->event = b->parts[i].event;
        item->partition = span_of(b->events->partition);
        item->position_us = b->parts[i].position_us;
        b->parts[i].item = item;
    }
}

static void on_bundle_done(struct bundle *g)
{
    struct share *s = g->owner;

    for (unsigned i = 0; i < g->n; i++)
        if (g->items[i].outcome == ITEM_FAILED) {
            share_open_lane(s);
            return;
        }
    share_finished(s->batch);
}

static void share_open_lane(struct share *s)
{
    struct bundle *g = &s->bundle;
    bool replay = false;

    for (unsigned i = 0; i < g->n; i++)
        replay = replay || g->items[i].is_behind;
    lanes_need(s->batch->intake->lanes, s->batch->events->partition, g->tenant,
               g->items[g->n - 1].why, replay, on_lane_ready, s);
}

static void on_lane_ready(int status, void *ctx)
{
    struct share *s = ctx;

    s->lane_missing = status != 0;
    share_finished(s->batch);
}

static void share_finished(struct batch *b)
{
    if (--b->n_open > 0)
        return;
    for (struct share *s = b->shares; s; s = s->hh.next)
        if (s->lane_missing && !queen_events_is_over(b->events)) {
            // Neither the tenant nor the control database is available: retry both.
            uv_timer_start(&b->timer, on_intake_retry_due, RETRY_MS, 0);
            return;
        }
    batch_answer(b);
}

// The failed items are the last ones, because the writer fails everything behind the first.
static void skip_written(struct bundle *g)
{
    while (g->items[0].outcome != ITEM_FAILED) {
        g->items++;
        g->n--;
    }
}

static void on_intake_retry_due(uv_timer_t *timer)
{
    struct batch *b = timer->data;

    b->n_open++;
    for (struct share *s = b->shares; s; s = s->hh.next)
        if (s->lane_missing) {
            s->lane_missing = false;
            b->n_open++;
            skip_written(&s->bundle);
            writer_add(b->intake->writer, &s->bundle);
        }
    share_finished(b);
}

// ---- answers ----

// Without a lane the event stays unacknowledged, and the next owner of the partition receives
// it again.
static void answer_held(struct batch *b, size_t i, bool is_new)
{
    const struct part *part = &b->parts[i];
    struct lane *lane = lanes_find(b->intake->lanes, b->events->partition, part->event.tenant);

    if (!lane)
        return;
    if (is_new)
        lane_divert(lane);
    ingest_count(b->intake->stats, part->event.type, OUTCOME_HELD);
    queen_events_move(b->events, i, lanes_queue(b->intake->lanes), lane_partition(lane));
}

static void answer_one(struct batch *b, size_t i)
{
    const struct item *item = b->parts[i].item;

    if (!item || item->outcome == ITEM_FAILED) {
        answer_held(b, i, item != NULL);
        return;
    }
    ingest_count_item(b->intake->stats, item);
    if (item->outcome == ITEM_BAD)
        queen_events_answer(b->events, i, QUEEN_HOPELESS, arena_cstr(&b->arena, item->why));
    else
        queen_events_answer(b->events, i, QUEEN_HANDLED, NULL);
}

static void batch_answer(struct batch *b)
{
    for (size_t i = 0; i < b->events->n; i++)
        if (b->parts[i].share)
            answer_one(b, i);
    HASH_CLEAR(hh, b->shares);
    delay_acknowledgement(b);
}

// Everything is written; only the acknowledgement, and with it the next batch, is delayed.  If
// the process dies now, the events are delivered again and recognized as duplicates.
static void delay_acknowledgement(struct batch *b)
{
    uint64_t now = uv_now(b->intake->loop), until = b->began_ms + b->intake->pause_ms;

    if (until > now && !queen_events_is_over(b->events))
        uv_timer_start(&b->timer, on_delay_over, until - now, 0);
    else
        on_delay_over(&b->timer);
}

static void on_delay_over(uv_timer_t *timer)
{
    struct batch *b = timer->data;

    queen_events_done(b->events);
    uv_close((uv_handle_t *)timer, on_intake_timer_closed);
}

static void on_intake_timer_closed(uv_handle_t *handle)
{
    struct batch *b = handle->data;

    arena_deinit(&b->arena);
    free(b);
}
