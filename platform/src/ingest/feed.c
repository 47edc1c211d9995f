// feed.c: a batch from the broker: read, split by tenant, write, hold what must wait, answer.
#include "ingest/feed.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/moment.h"
#include "ingest/group.h"

enum { AGAIN_MS = 1000 };

struct partition {
    struct feed *feed;
    char *name;
    bool ready;                // its lanes are known
    struct queen_events *next; // waits for that
    UT_hash_handle hh;
};

struct feed {
    uv_loop_t *loop;
    struct writer *writer;
    struct lanes *lanes;
    struct ingest_stats *stats;
    unsigned pause_ms;
    struct partition *partitions;
};

// The events of one tenant in a batch.
struct share {
    struct group group;
    struct batch *batch;
    bool lane_missing; // some failed, and their lane could not be noted
    UT_hash_handle hh; // by tenant
};

// What a message of the batch is.
struct part {
    struct event event;
    struct share *share; // NULL: it was settled when it was read
    struct item *item;   // NULL: it follows others into a lane
};

struct batch {
    struct feed *feed;
    struct queen_events *events;
    struct arena arena;
    struct part *parts;
    struct share *shares;
    unsigned n_open; // shares that are being written, or noted as held
    uint64_t began_ms;
    uv_timer_t timer; // tries again, then rests
};

static void begin(struct feed *f, struct queen_events *events);
static void read_parts(struct batch *b);
static void make_groups(struct batch *b);
static void on_group_done(struct group *g);
static void hold(struct share *s);
static void on_held(int status, void *ctx);
static void one_less(struct batch *b);
static void on_again(uv_timer_t *timer);
static void answer(struct batch *b);
static void rest(struct batch *b);
static void on_rested(uv_timer_t *timer);
static void on_timer_closed(uv_handle_t *handle);

struct feed *feed_new(uv_loop_t *loop, struct writer *writer, struct lanes *lanes,
                      struct ingest_stats *stats, unsigned pause_ms)
{
    struct feed *f = mem_new(struct feed);

    *f = (struct feed){
        .loop = loop, .writer = writer, .lanes = lanes, .stats = stats, .pause_ms = pause_ms};
    return f;
}

void feed_free(struct feed *f) { free(f); }

// ---- partitions come and go ----

static struct partition *find_partition(struct feed *f, const char *name)
{
    struct partition *p;

    HASH_FIND(hh, f->partitions, name, strlen(name), p);
    return p;
}

static void on_lanes_loaded(const char *name, int status, void *ctx)
{
    struct feed *f = ctx;
    struct partition *p = find_partition(f, name);
    struct queen_events *events = p->next;

    p->ready = status == 0;
    if (!events || (!p->ready && !queen_events_is_over(events)))
        return;
    p->next = NULL;
    if (p->ready)
        begin(f, events);
    else
        queen_events_done(events); // not begun: it goes back
}

void feed_opened(const struct queen_opened *o, void *ctx)
{
    struct feed *f = ctx;
    struct partition *p = mem_new(struct partition);

    p->feed = f;
    p->name = mem_strndup(o->partition, strlen(o->partition));
    HASH_ADD_KEYPTR(hh, f->partitions, p->name, strlen(p->name), p);
    lanes_enter(f->lanes, o, on_lanes_loaded, f);
}

void feed_closed(const char *name, enum queen_closed why, void *ctx)
{
    struct feed *f = ctx;
    struct partition *p = find_partition(f, name);

    (void)why;
    lanes_leave(f->lanes, name);
    HASH_DEL(f->partitions, p);
    free(p->name);
    free(p);
}

// What is not known to be over may still put events into a lane, which must not be taken for
// empty before the next batch of the partition says that it is.
void feed_settled(const char *name, bool known, void *ctx)
{
    struct feed *f = ctx;

    if (known)
        lanes_settled(f->lanes, name);
}

void feed_events(struct queen_events *events, void *ctx)
{
    struct feed *f = ctx;
    struct partition *p = find_partition(f, events->partition);

    if (p->ready)
        begin(f, events);
    else
        p->next = events;
}

// ---- a batch ----

static void begin(struct feed *f, struct queen_events *events)
{
    struct batch *b = mem_new(struct batch);

    b->feed = f;
    b->events = events;
    b->began_ms = uv_now(f->loop);
    arena_init(&b->arena);
    b->parts = arena_new_array(&b->arena, struct part, events->n);
    uv_timer_init(f->loop, &b->timer);
    b->timer.data = b;
    histogram_add(&f->stats->batch, events->n);
    read_parts(b);
    make_groups(b);
    b->n_open++; // ours, so that none of the others is the last while they begin
    for (struct share *s = b->shares, *next; s; s = next) {
        next = s->hh.next;
        if (s->group.n == 0)
            continue;
        b->n_open++;
        writer_add(f->writer, &s->group);
    }
    one_less(b);
}

static struct share *share_of(struct batch *b, span tenant)
{
    struct share *s;

    HASH_FIND(hh, b->shares, tenant.ptr, tenant.len, s);
    if (s)
        return s;
    s = arena_new(&b->arena, struct share);
    s->batch = b;
    s->group.tenant = tenant;
    s->group.arena = &b->arena;
    s->group.done = on_group_done;
    s->group.owner = s;
    HASH_ADD_KEYPTR(hh, b->shares, s->group.tenant.ptr, tenant.len, s);
    return s;
}

static void read_parts(struct batch *b)
{
    for (size_t i = 0; i < b->events->n; i++) {
        const struct queen_delivery *d = b->events->messages[i];
        struct part *part = &b->parts[i];
        struct fault f;
        if (event_read(&part->event, (span){d->data, d->data_len}, SPAN_NONE, &b->arena, &f) !=
            0) {
            queen_events_answer(b->events, i, QUEEN_HOPELESS, f.text);
            ingest_count(b->feed->stats, part->event.type, OUTCOME_BAD);
            continue;
        }
        part->share = share_of(b, part->event.tenant);
    }
}

// A tenant whose lane is not empty gets none: its events follow the others.
static void make_groups(struct batch *b)
{
    size_t n = b->events->n;

    for (size_t i = 0; i < n; i++) {
        struct share *s = b->parts[i].share;
        if (!s)
            continue;
        struct lane *lane = lanes_find(b->feed->lanes, b->events->partition, s->group.tenant);
        if (lane) {
            lane_divert(lane); // from now on it may not be taken for empty
            continue;
        }
        if (!s->group.items)
            s->group.items = arena_new_array(&b->arena, struct item, n - i);
        struct item *item = &s->group.items[s->group.n++];
        item->event = b->parts[i].event;
        item->partition = span_of(b->events->partition);
        (void)!moment_parse(span_of(b->events->messages[i]->created_at), &item->position_us);
        b->parts[i].item = item;
    }
}

static void on_group_done(struct group *g)
{
    struct share *s = g->owner;

    for (unsigned i = 0; i < g->n; i++)
        if (g->items[i].outcome == ITEM_FAILED) {
            hold(s);
            return;
        }
    one_less(s->batch);
}

static void hold(struct share *s)
{
    struct group *g = &s->group;

    lanes_need(s->batch->feed->lanes, s->batch->events->partition, g->tenant,
               g->items[g->n - 1].why, on_held, s);
}

static void on_held(int status, void *ctx)
{
    struct share *s = ctx;

    s->lane_missing = status != 0;
    one_less(s->batch);
}

static void one_less(struct batch *b)
{
    if (--b->n_open > 0)
        return;
    for (struct share *s = b->shares; s; s = s->hh.next)
        if (s->lane_missing && !queen_events_is_over(b->events)) {
            // Neither the tenant nor the control database takes them: try both again.
            uv_timer_start(&b->timer, on_again, AGAIN_MS, 0);
            return;
        }
    answer(b);
}

// The items that failed are the last ones: the writer fails everything behind the first.
static void skip_written(struct group *g)
{
    while (g->items[0].outcome != ITEM_FAILED) {
        g->items++;
        g->n--;
    }
}

static void on_again(uv_timer_t *timer)
{
    struct batch *b = timer->data;

    b->n_open++;
    for (struct share *s = b->shares; s; s = s->hh.next)
        if (s->lane_missing) {
            s->lane_missing = false;
            b->n_open++;
            skip_written(&s->group);
            writer_add(b->feed->writer, &s->group);
        }
    one_less(b);
}

// ---- answers ----

// Without a lane it is left unanswered, and comes again to whoever has the partition then.
static void answer_held(struct batch *b, size_t i, bool is_new)
{
    const struct part *part = &b->parts[i];
    struct lane *lane = lanes_find(b->feed->lanes, b->events->partition, part->event.tenant);

    if (!lane)
        return;
    if (is_new)
        lane_divert(lane);
    ingest_count(b->feed->stats, part->event.type, OUTCOME_HELD);
    queen_events_move(b->events, i, lanes_queue(b->feed->lanes), lane_partition(lane));
}

static void answer_one(struct batch *b, size_t i)
{
    const struct item *item = b->parts[i].item;

    if (!item || item->outcome == ITEM_FAILED) {
        answer_held(b, i, item != NULL);
        return;
    }
    ingest_count_item(b->feed->stats, item);
    if (item->outcome == ITEM_BAD)
        queen_events_answer(b->events, i, QUEEN_HOPELESS, arena_cstr(&b->arena, item->why));
    else
        queen_events_answer(b->events, i, QUEEN_HANDLED, NULL);
}

static void answer(struct batch *b)
{
    for (size_t i = 0; i < b->events->n; i++)
        if (b->parts[i].share)
            answer_one(b, i);
    HASH_CLEAR(hh, b->shares);
    rest(b);
}

// Everything is written; only the acknowledgement waits, and with it the next batch.  Who dies
// meanwhile leaves events that are known when they come again.
static void rest(struct batch *b)
{
    uint64_t now = uv_now(b->feed->loop), until = b->began_ms + b->feed->pause_ms;

    if (until > now && !queen_events_is_over(b->events))
        uv_timer_start(&b->timer, on_rested, until - now, 0);
    else
        on_rested(&b->timer);
}

static void on_rested(uv_timer_t *timer)
{
    struct batch *b = timer->data;

    queen_events_done(b->events);
    uv_close((uv_handle_t *)timer, on_timer_closed);
}

static void on_timer_closed(uv_handle_t *handle)
{
    struct batch *b = handle->data;

    arena_deinit(&b->arena);
    free(b);
}
