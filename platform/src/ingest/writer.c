// writer.c: one queue per tenant, and the permits for transactions.
#include "ingest/writer.h"

#include <assert.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "ingest/stamps.h"
#include "ingest/write.h"

enum {
    MAX_RETRIES = 3, // immediate retries of a transaction
    PERMIT_MS =
        100, // a slower transaction waits for something else: its permit is freed for others
};

struct queue { // of a tenant
    struct writer *writer;
    char *name_text;
    span name;
    struct item_list waiting;
    bool added; // items were added; they start in the next turn of the loop
    bool ready; // waiting for a permit
    bool busy;  // has or had a permit, until the outcome
    bool has_permit;
    uv_timer_t timer; // for added, then for the permit
    STAILQ_ENTRY(queue) ready_link;
    struct tenant_want want;
    struct tenant_ref *ref;
    struct write write;
    struct stamps_load load;
    unsigned n_loaded;       // writer.n_reloads when the stamps were loaded
    int64_t added_us;        // when the tenant was added; 0: none yet
    unsigned limit;          // events of the next transaction; lowered after an error
    unsigned retries;        // of the current transaction
    bool is_retry_of_unique; // the last attempt ended with a unique violation
    uint64_t began_us;
    UT_hash_handle hh;
};

struct writer {
    uv_loop_t *loop;
    struct tenant_pools *pools;
    struct writer_conf conf;
    char *queue_name;
    struct queue *queues; // by tenant
    STAILQ_HEAD(, queue) ready;
    struct stamps *stamps;
    unsigned n_reloads; // counts from 1
    unsigned n_permits; // in use
    bool starting;
    struct writer_stats stats;
    unsigned n_closing; // timers
    bool closing;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

static void on_items_added(uv_timer_t *timer);
static void queue_schedule(struct queue *q);
static void start_ready(struct writer *w);
static void on_permit_over(uv_timer_t *timer);
static void on_writer_tenant_ready(struct tenant_want *want, int status, struct tenant_ref *ref,
                                   const struct fault *why);
static void on_stamp(struct stamps_load *l, span partition, int64_t stamp_us);
static void on_writer_stamps_loaded(struct stamps_load *l, int status);
static void send_write(struct queue *q);
static void on_writer_written(struct write *w, int status, unsigned n_duplicates, span why);
static void finish_transaction(struct queue *q, enum item_outcome outcome, span why);
static void fail_all(struct queue *q, enum item_outcome outcome, span why);
static void queue_drop(struct queue *q);

struct writer *writer_open(uv_loop_t *loop, struct tenant_pools *pools, struct pg_pool *control,
                           const struct writer_conf *conf)
{
    struct writer *w = mem_new(struct writer);

    w->loop = loop;
    w->pools = pools;
    w->conf = *conf;
    w->queue_name = mem_strndup(conf->queue, strlen(conf->queue));
    w->stamps = stamps_open(loop, control, conf->queue);
    w->n_reloads = 1;
    STAILQ_INIT(&w->ready);
    return w;
}

void writer_reload_stamps(struct writer *w) { w->n_reloads++; }

const struct writer_stats *writer_stats(const struct writer *w) { return &w->stats; }

static struct queue *queue_of(struct writer *w, span tenant)
{
    struct queue *q;

    HASH_FIND(hh, w->queues, tenant.ptr, tenant.len, q);
    if (q)
        return q;
    q = mem_new(struct queue);
    q->writer = w;
    q->name_text = mem_strndup(tenant.ptr, tenant.len);
    q->name = (span){q->name_text, tenant.len};
    q->limit = w->conf.max_events;
    STAILQ_INIT(&q->waiting);
    q->write.queue = w->queue_name;
    q->write.items = mem_new_array(struct item *, w->conf.max_events);
    q->write.done = on_writer_written;
    q->write.owner = q;
    q->want.got = on_writer_tenant_ready;
    q->want.owner = q;
    q->load =
        (struct stamps_load){.each = on_stamp, .done = on_writer_stamps_loaded, .owner = q};
    uv_timer_init(w->loop, &q->timer);
    q->timer.data = q;
    HASH_ADD_KEYPTR(hh, w->queues, q->name.ptr, q->name.len, q);
    return q;
}

void writer_forget(struct writer *w, span tenant, span partition)
{
    struct queue *q;

    HASH_FIND(hh, w->queues, tenant.ptr, tenant.len, q);
    if (q)
        write_forget(&q->write, partition);
}

void writer_add(struct writer *w, struct bundle *g)
{
    struct queue *q = queue_of(w, g->tenant);

    g->n_open = g->n;
    for (unsigned i = 0; i < g->n; i++) {
        g->items[i].bundle = g;
        g->items[i].is_behind = false;
        g->items[i].outcome = ITEM_OPEN;
        STAILQ_INSERT_TAIL(&q->waiting, &g->items[i], link);
    }
    if (q->busy || q->ready || q->added)
        return;
    q->added = true; // bundle->done is never called from inside this call
    uv_timer_start(&q->timer, on_items_added, 0, 0);
}

static void on_items_added(uv_timer_t *timer)
{
    struct queue *q = timer->data;

    q->added = false;
    queue_schedule(q);
}

// ---- permits ----

// The limit exists because more transactions than the machine can work on would only be
// smaller.

static void queue_schedule(struct queue *q)
{
    if (!q->busy && !q->ready && !STAILQ_EMPTY(&q->waiting)) {
        q->added = false; // the new items join those already waiting
        q->ready = true;
        STAILQ_INSERT_TAIL(&q->writer->ready, q, ready_link);
    }
    start_ready(q->writer);
}

static void start_ready(struct writer *w)
{
    struct queue *q;

    if (w->starting) // called for one that failed immediately: the loop below continues
        return;
    w->starting = true;
    while (w->n_permits < w->conf.parallel && (q = STAILQ_FIRST(&w->ready))) {
        STAILQ_REMOVE_HEAD(&w->ready, ready_link);
        q->ready = false;
        q->busy = q->has_permit = true;
        q->retries = 0;
        q->is_retry_of_unique = false;
        w->n_permits++;
        uv_timer_start(&q->timer, on_permit_over, PERMIT_MS, 0);
        tenant_get(w->pools, q->name, &q->want);
    }
    w->starting = false;
}

static void leave_permit(struct queue *q)
{
    if (!q->has_permit)
        return;
    q->has_permit = false;
    q->writer->n_permits--;
    uv_timer_stop(&q->timer);
}

static void on_permit_over(uv_timer_t *timer)
{
    struct queue *q = timer->data;

    leave_permit(q);
    start_ready(q->writer);
}

// ---- one transaction ----

static void on_writer_tenant_ready(struct tenant_want *want, int status, struct tenant_ref *ref,
                                   const struct fault *why)
{
    struct queue *q = want->owner;

    if (status != 0) {
        counter_add(&q->writer->stats.failures, 1);
        fail_all(q, status == QE_TENANT_UNKNOWN ? ITEM_BAD : ITEM_FAILED, span_of(why->text));
        return;
    }
    q->ref = ref;
    if (q->added_us != tenant_ref_added_us(ref)) {
        // Another tenant of this name. One that has moved keeps its stamps: they show whether
        // the other database has all that was committed.
        q->added_us = tenant_ref_added_us(ref);
        q->n_loaded = 0;
        stamps_forget(q->writer->stamps, q->name);
        write_doubt_stamps(&q->write);
    }
    if (q->n_loaded == q->writer->n_reloads) {
        send_write(q);
        return;
    }
    q->n_loaded = q->writer->n_reloads;
    stamps_load(q->writer->stamps, q->name, &q->load);
}

static void on_stamp(struct stamps_load *l, span partition, int64_t stamp_us)
{
    struct queue *q = l->owner;

    // Older ones are of an earlier tenant of this name: they may have been saved late.
    if (stamp_us > q->added_us)
        write_note_stamp(&q->write, partition, stamp_us);
}

// Without the control database the events are written all the same.
static void on_writer_stamps_loaded(struct stamps_load *l, int status)
{
    struct queue *q = l->owner;

    if (status != 0)
        q->n_loaded = 0; // again with the next transaction
    else
        write_forget_doubted(&q->write);
    send_write(q);
}

// Takes as many items as fit from the head.  They stay in the list until the outcome is known.
static void send_write(struct queue *q)
{
    struct write *w = &q->write;
    struct item *item;

    write_begin(w);
    STAILQ_FOREACH (item, &q->waiting, link) {
        if (item->outcome == ITEM_DUPLICATE)
            continue;
        if (w->n >= q->limit || !fold_add(&w->fold, &item->event))
            break;
        w->items[w->n++] = item;
    }
    if (w->n == 0) { // only duplicates
        write_end(w);
        finish_transaction(q, ITEM_APPLIED, SPAN_NONE);
        return;
    }
    q->began_us = clock_mono_us();
    if (tenant_ref_kind(q->ref) == TENANT_PG)
        write_pg(w, tenant_ref_pg(q->ref), q->writer->conf.limit_ms);
    else
        write_my(w, tenant_ref_my(q->ref), q->writer->conf.limit_ms);
}

static void writer_release_tenant(struct queue *q)
{
    if (q->ref)
        tenant_put(q->ref);
    q->ref = NULL;
}

static void end_transaction(struct queue *q)
{
    writer_release_tenant(q);
    leave_permit(q);
    q->busy = false;
}

static bool is_worth_a_retry(struct queue *q, int status)
{
    // A broken connection may have been stale: retry once on another.
    return (status == QE_PG_RETRY && q->retries < MAX_RETRIES) ||
           (status == QE_PG_GONE && q->retries == 0);
}

// A retry after a unique violation finds events that another transaction has applied as
// duplicates.  If it fails again, an index of the tenant refuses one of the events.
static bool is_refused_by_index(const struct queue *q, int status)
{
    return status == QE_PG_RETRY && q->write.is_unique_violation && q->is_retry_of_unique;
}

// The database lost events of these partitions.  The lanes replay them (lane_replay.c).
static void mark_behind(struct queue *q)
{
    const struct write *w = &q->write;

    counter_add(&q->writer->stats.behind, 1);
    for (unsigned i = 0; i < w->n_marks; i++)
        if (w->marks[i].seen_us > 0)
            log_error("tenant.behind", "tenant=" SPAN_FMT " partition=" SPAN_FMT,
                      SPAN_ARG(q->name), SPAN_ARG(w->marks[i].partition));
    for (unsigned i = 0; i < w->n; i++)
        w->items[i]->is_behind = true;
}

static void note_stamps(struct queue *q)
{
    const struct write *w = &q->write;

    for (unsigned i = 0; i < w->n_marks; i++)
        stamps_note(q->writer->stamps, q->name, w->marks[i].partition, w->stamp_us);
}

static void on_writer_written(struct write *w, int status, unsigned n_duplicates, span why)
{
    struct queue *q = w->owner;
    struct writer_stats *s = &q->writer->stats;
    unsigned n = w->n;

    if (status == QE_CONFLICT)
        mark_behind(q);
    if (is_refused_by_index(q, status))
        status = QE_PG_DATA;
    if (status == 0 && n_duplicates == 0)
        note_stamps(q);
    write_end(w);
    if (status == 0 && n_duplicates > 0) {
        send_write(q); // the items that are not duplicates
    } else if (status == 0) {
        counter_add(&s->transactions, 1);
        histogram_add(&s->events, n);
        histogram_add(&s->us, clock_mono_us() - q->began_us);
        q->limit = q->limit * 2 < q->writer->conf.max_events ? q->limit * 2
                                                             : q->writer->conf.max_events;
        finish_transaction(q, ITEM_APPLIED, SPAN_NONE);
    } else if (status == QE_PG_DATA && n > 1) {
        q->limit = n / 2; // until the invalid event is alone
        q->retries = 0;
        q->is_retry_of_unique = false;
        send_write(q);
    } else if (status == QE_PG_DATA) {
        finish_transaction(q, ITEM_BAD, why);
    } else if (is_worth_a_retry(q, status)) {
        counter_add(&s->retries, 1);
        q->retries++;
        q->is_retry_of_unique = w->is_unique_violation;
        tenant_ref_failed(q->ref, status);
        writer_release_tenant(q);
        tenant_get(q->writer->pools, q->name, &q->want);
    } else {
        counter_add(&s->failures, 1);
        if ((status == QE_TIMEOUT || status == QE_PG_GONE) && n > 1)
            q->limit = n / 2; // it may have been too large: for a limit of time or of a packet
        log_warn("ingest.failed", "tenant=" SPAN_FMT " events=%u code=%s why=\"" SPAN_FMT "\"",
                 SPAN_ARG(q->name), n, err_name(status), SPAN_ARG(why));
        tenant_ref_failed(q->ref, status);
        fail_all(q, ITEM_FAILED, why);
    }
}

// ---- outcomes ----

// Callbacks may add to the queue, so items are removed from the list first.
static void finish_items(struct item_list *items, enum item_outcome outcome, span why)
{
    struct item *item;

    while ((item = STAILQ_FIRST(items))) {
        struct bundle *g = item->bundle;
        STAILQ_REMOVE_HEAD(items, link);
        if (item->outcome == ITEM_OPEN) {
            item->outcome = outcome;
            item->why = why.ptr ? arena_copy(g->arena, why) : SPAN_NONE;
        }
        if (--g->n_open == 0)
            g->done(g);
    }
}

// Finishes the items of the transaction and the duplicates before and among them.
static void finish_transaction(struct queue *q, enum item_outcome outcome, span why)
{
    struct item_list items = STAILQ_HEAD_INITIALIZER(items);
    unsigned n = q->write.n;
    struct item *item;

    while ((item = STAILQ_FIRST(&q->waiting)) && (n > 0 || item->outcome == ITEM_DUPLICATE)) {
        STAILQ_REMOVE_HEAD(&q->waiting, link);
        STAILQ_INSERT_TAIL(&items, item, link);
        n -= item->outcome == ITEM_OPEN;
    }
    end_transaction(q);
    finish_items(&items, outcome, why);
    if (outcome == ITEM_APPLIED && q->writer->conf.on_written)
        q->writer->conf.on_written(q->name, q->writer->conf.ctx);
    queue_schedule(q);
}

// Also fails the items behind the transaction: they must not overtake it.
static void fail_all(struct queue *q, enum item_outcome outcome, span why)
{
    struct writer *w = q->writer;
    struct item_list items = STAILQ_HEAD_INITIALIZER(items);

    STAILQ_CONCAT(&items, &q->waiting);
    end_transaction(q);
    finish_items(&items, outcome, why);
    if (outcome == ITEM_BAD && STAILQ_EMPTY(&q->waiting)) {
        queue_drop(q); // unknown tenant: made-up names must not accumulate
        start_ready(w);
    } else {
        queue_schedule(q);
    }
}

// ---- close ----

static void on_stamps_closed(void *ctx)
{
    struct writer *w = ctx;

    if (w->closed)
        w->closed(w->closed_ctx);
    free(w->queue_name);
    free(w);
}

static void finish_if_closed(struct writer *w)
{
    if (w->closing && w->n_closing == 0)
        stamps_close(w->stamps, on_stamps_closed, w);
}

static void on_writer_timer_closed(uv_handle_t *handle)
{
    struct queue *q = handle->data;
    struct writer *w = q->writer;

    write_free(&q->write);
    stamps_load_deinit(&q->load);
    free(q->write.items);
    free(q->name_text);
    free(q);
    w->n_closing--;
    finish_if_closed(w);
}

static void queue_drop(struct queue *q)
{
    struct writer *w = q->writer;

    assert(!q->busy && STAILQ_EMPTY(&q->waiting));
    HASH_DEL(w->queues, q);
    w->n_closing++;
    uv_close((uv_handle_t *)&q->timer, on_writer_timer_closed);
}

void writer_close(struct writer *w, void (*closed)(void *ctx), void *ctx)
{
    struct queue *q, *after;

    w->closed = closed;
    w->closed_ctx = ctx;
    w->closing = true;
    HASH_ITER (hh, w->queues, q, after)
        queue_drop(q);
    finish_if_closed(w);
}
