// The replay: what waits in the file buffer goes to the database, in order, as ordinary pushes.
//
//      kick ──► READING ──► PUSHING ──► settled ──► READING ... ──► nothing left: IDLE
//                              ▲ │ failed
//                              │ ▼
//                            WAITING
//
// One window at a time, so nothing overtakes; its parts, one per home broker, fly together.
// Transaction ids were fixed when the records were written: what is sent twice is stored once.
// A window with a bad record in it is sent again record by record; the bad one is set aside.
//
// Records of a partition that another transaction has locked (locked.c) are kept in memory, and
// go in front of the next window, again and again, until they are stored.  Their files stay on
// disk until then.
//
// Records of a full queue are kept in the same way, so that they do not hold up the others.
// Batches leave them out. Every FULL_US they are tried one by one: the first that is refused
// stands for all of its queue.
// Lives on the thread of broker 0.
#include "broker/broker_int.h"
#include "broker/outage/queue_set.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "spool/spool.h"
#include "json/scan.h"

enum {
    RETRY_US = 1000 * 1000,
    PAUSE_US = 5 * 1000 * 1000, // of the circuit breaker
    FAILURES_TO_PAUSE = 10,
    TRIES_ALONE = 10, // of a record that the database fails on for reasons of its own
    CROWD = 10,       // a window is so much larger while so many of them wait
    KEPT_US = 100 * 1000,
    FULL_US = 1000 * 1000,
    PROBED_AT_ONCE = 256, // records of queues that were full, before others have their turn
    MAX_KEPT = 50000,     // records that wait in memory; with more of them nothing more is read
    MAX_KEPT_BYTES = 64 << 20,
};
enum replay_state { IDLE_, READING, PUSHING, WAITING };

struct kept {
    char *bytes; // allocated; the record points into them
    size_t len;
    struct spool_record record;
    bool full; // its queue was
};

struct part {
    struct push_op op;
    unsigned n_read; // of its items, while the answer is read
    struct replay *replay;
    struct push_item *items;
};

struct replay {
    struct house *house;
    struct mailbox_item kick;
    _Atomic bool kicked;
    enum replay_state state;
    struct spool_read window;
    bool taken; // its records are stored, set aside or kept; the next window is to be read
    struct kept *kept;
    unsigned n_kept, cap_kept;
    size_t kept_bytes;
    // The batch: what is kept, then the window.
    bool *left;        // of each: not stored
    bool *full;        // of each that is left: because its queue is full
    bool *window_left; // the same of a window that was taken
    bool alone;        // record by record ...
    unsigned at;       // ... this one now
    unsigned tries;    // of it
    bool probing;      // record by record, only those kept because their queues were full
    unsigned n_probed; // stored by it
    unsigned n_locked; // of left, those that are not full
    struct queue_set *full_queues;
    uint64_t probe_us;  // the next probe, monotonic
    struct part *parts; // one per broker
    struct arena texts; // of their items, as far as they do not stand in the window
    unsigned n_flying;
    int status; // the worst of the parts
    struct fault why;
    _Atomic unsigned failures; // in a row
    struct due due;
    uint64_t n_replayed; // since it was idle
};

static void on_replay_kick(struct mailbox_item *item);
static void replay_start(struct replay *r);
static void read_on(struct replay *r);
static void on_window(struct mailbox_item *item);
static unsigned n_window(const struct replay *r);
static bool is_kept_full(const struct replay *r);
static void push_batch(struct replay *r);
static void on_part(struct push_op *op, int status);
static void landed(struct replay *r);
static void landed_alone(struct replay *r);
static void bury(struct replay *r, unsigned i, const char *reason);
static void settled(struct replay *r);
static void on_kept_due(struct due *d);
static void wait_for(struct replay *r);
static void on_replay_due(struct due *d);

struct replay *replay_new(struct house *h)
{
    struct replay *r = mem_new(struct replay);

    r->house = h;
    arena_init(&r->texts);
    r->parts = mem_new_array(struct part, h->n);
    return r;
}

void replay_free(struct replay *r)
{
    for (unsigned i = 0; i < r->house->n; i++)
        free(r->parts[i].items);
    for (unsigned i = 0; i < r->n_kept; i++)
        free(r->kept[i].bytes);
    free(r->kept);
    free(r->left);
    free(r->full);
    free(r->window_left);
    queue_set_free(r->full_queues);
    free(r->parts);
    spool_release(&r->window);
    arena_deinit(&r->texts);
    free(r);
}

bool replay_is_busy(const struct replay *r)
{
    return r->state == READING || r->state == PUSHING;
}

void house_buffer_stats(const struct house *h, struct buffer_stats *out)
{
    struct spool_stats s = {.healthy = true};

    if (h->spool)
        spool_stats(h->spool, &s);
    *out = (struct buffer_stats){
        .pending = s.pending,
        .bytes = s.bytes,
        .max_bytes = s.max_bytes,
        .buffered = s.appended,
        .replayed = s.replayed,
        .refused = s.refused,
        .failed_files = s.failed_files,
        .failed_bytes = s.failed_bytes,
        .failed_qos0 = s.failed_qos0,
        .healthy = s.healthy,
        .db_healthy = house_is_up(h) &&
                      (!h->replay || atomic_load(&h->replay->failures) < FAILURES_TO_PAUSE),
    };
}

void replay_kick(struct house *h)
{
    struct replay *r = h->replay;
    struct broker *b = h->brokers[0];

    if (!b || atomic_exchange(&r->kicked, true))
        return;
    r->kick = (struct mailbox_item){.deliver = on_replay_kick, .owner = r};
    if (mailbox_post(&b->mailbox, &r->kick) != 0)
        atomic_store(&r->kicked, false); // closing: the next start replays
}

static void on_replay_kick(struct mailbox_item *item)
{
    struct replay *r = item->owner;

    atomic_store(&r->kicked, false);
    if (r->state == IDLE_)
        replay_start(r);
}

static struct broker *me(const struct replay *r) { return r->house->brokers[0]; }

static bool replay_may_go(const struct replay *r)
{
    const struct house *h = r->house;

    return !me(r)->draining && !me(r)->closing && atomic_load(&h->flags_known) &&
           !(atomic_load(&h->flags) & MAINTENANCE_PUSH) && house_is_up(h);
}

// The end of maintenance or of an outage starts it again.
static void replay_start(struct replay *r)
{
    r->state = IDLE_;
    if (!replay_may_go(r) || spool_pending(r->house->spool) == 0)
        return;
    if (r->alone || n_window(r) > 0 || is_kept_full(r))
        push_batch(r);
    else
        read_on(r);
}

static unsigned n_window(const struct replay *r)
{
    return r->window.settled || r->taken ? 0 : r->window.n;
}

static bool is_kept_full(const struct replay *r)
{
    return r->n_kept >= MAX_KEPT || r->kept_bytes >= MAX_KEPT_BYTES;
}

static const struct spool_record *record_at(const struct replay *r, unsigned i)
{
    return i < r->n_kept ? &r->kept[i].record : &r->window.records[i - r->n_kept];
}

// One window at a time means one answer of the database for each.  After an outage it is slow
// for a while, and the pushes that come meanwhile queue up behind: the replay must be faster
// than they.
static void read_on(struct replay *r)
{
    unsigned few = r->house->replay_conf.max_batch;

    r->state = READING;
    r->window.max_records =
        spool_pending(r->house->spool) > (uint64_t)CROWD * few ? CROWD * few : few;
    r->window.keep = r->n_kept > 0;
    r->window.left = r->taken ? r->window_left : NULL;
    r->taken = false;
    r->window.to = &me(r)->mailbox;
    r->window.mail = (struct mailbox_item){.deliver = on_window, .owner = r};
    spool_next(r->house->spool, &r->window);
}

static void on_window(struct mailbox_item *item)
{
    struct replay *r = item->owner;

    if (r->window.status != 0) {
        fault_set(&r->why, r->window.status, "%s", err_text(r->window.status));
        r->status = r->window.status;
        wait_for(r);
        return;
    }
    r->alone = false;
    if (r->window.n == 0 && r->n_kept > 0) {
        if (replay_may_go(r))
            push_batch(r);
        else
            r->state = IDLE_;
        return;
    }
    if (r->window.n == 0) {
        if (r->n_replayed > 0)
            log_info("replay.done", "records=%llu", (unsigned long long)r->n_replayed);
        r->n_replayed = 0;
        r->state = IDLE_;
        broker_wake(me(r));
        return;
    }
    replay_start(r);
}

// The correlationId among a record's further fields; SPAN_NONE: none.
static span correlation_of(struct arena *texts, span meta)
{
    span key, found = SPAN_NONE;

    if (!meta.ptr)
        return SPAN_NONE;
    struct js j = js_read(meta);
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span value = js_skip(&j);
        if (js_key_is(key, SPAN("correlationId")) && js_type_of(value) == JS_STRING)
            found = js_text(value, texts);
    }
    return found;
}

// One that no key opens is stored as it is, like a sealed payload that is delivered.
static span open_payload(struct replay *r, const struct spool_record *rec)
{
    struct buf plain = {0};

    broker_unseal(me(r), &plain, rec->payload, rec->key);
    span copy = arena_copy(&r->texts, buf_span(&plain));
    buf_free(&plain);
    return copy;
}

static void fill_item(struct replay *r, struct push_item *it, const struct spool_record *rec)
{
    *it = (struct push_item){.queue = rec->queue,
                             .partition = rec->partition,
                             .txid = rec->txid,
                             .payload = rec->payload,
                             .meta = rec->meta,
                             .producer = rec->producer,
                             .has_trace = rec->has_trace,
                             .when = rec->due_us != 0 ? PUSH_AT : PUSH_NOW,
                             .when_us = rec->due_us,
                             .txid_is_key = !rec->txid.ptr};
    memcpy(it->key, rec->key, 16);
    memcpy(it->trace, rec->trace, 16);
    if (rec->sealed)
        it->payload = open_payload(r, rec);
    it->correlation = correlation_of(&r->texts, rec->meta);
}

// Behind a record of its partition that is left.
static bool is_behind_left(const struct replay *r, unsigned at)
{
    const struct spool_record *rec = record_at(r, at);

    for (unsigned i = 0; r->n_locked > 0 && i < at; i++)
        if (r->left[i] && !r->full[i] && span_eq(record_at(r, i)->queue, rec->queue) &&
            span_eq(record_at(r, i)->partition, rec->partition))
            return true;
    return false;
}

static void leave(struct replay *r, unsigned i, bool full)
{
    r->left[i] = true;
    r->full[i] = full;
    r->n_locked += !full;
    if (full)
        queue_set_add(r->full_queues, record_at(r, i)->queue);
}

// A batch begins: nothing is left yet but the records of full queues.
static void begin_batch(struct replay *r, unsigned n)
{
    free(r->left);
    free(r->full);
    r->left = mem_new_array(bool, n);
    r->full = mem_new_array(bool, n);
    r->n_locked = r->n_probed = 0;
    queue_set_free(r->full_queues);
    r->full_queues = queue_set_new();
    for (unsigned i = 0; i < r->n_kept && !r->probing; i++)
        if (r->kept[i].full)
            queue_set_add(r->full_queues, r->kept[i].record.queue);
}

// Whether the record stays where it is without being sent.
static bool must_stay(struct replay *r, unsigned i)
{
    bool full = queue_set_has(r->full_queues, record_at(r, i)->queue);
    bool other = r->probing && i < r->n_kept && !r->kept[i].full;
    bool enough = r->probing && r->n_probed >= PROBED_AT_ONCE;

    if (!full && !other && !enough && !(r->alone && is_behind_left(r, i)))
        return false;
    leave(r, i, full || (enough && !other));
    return true;
}

static void push_batch(struct replay *r)
{
    struct house *h = r->house;
    unsigned n = r->n_kept + n_window(r), from = 0, to = n;

    r->state = PUSHING;
    r->status = 0;
    r->n_flying = 0;
    if (!r->alone || r->at == 0)
        begin_batch(r, n);
    while (r->alone && r->at < n && must_stay(r, r->at))
        r->at++;
    if (r->alone && r->at == n) {
        settled(r);
        return;
    }
    if (r->alone)
        from = r->at, to = r->at + 1;
    arena_deinit(&r->texts); // what was there has landed
    for (unsigned i = 0; i < h->n; i++) {
        struct part *p = &r->parts[i];
        free(p->items);
        *p = (struct part){.replay = r, .items = mem_new_array(struct push_item, to - from)};
    }
    for (unsigned i = from; i < to; i++) {
        const struct spool_record *rec = record_at(r, i);
        struct part *p = &r->parts[house_home(h, rec->queue)->index];
        if (!r->alone && must_stay(r, i))
            continue;
        fill_item(r, &p->items[p->op.n_items++], rec);
    }
    for (unsigned i = 0; i < h->n; i++)
        r->n_flying += r->parts[i].op.n_items > 0;
    if (r->n_flying == 0) { // all of them wait for full queues
        settled(r);
        return;
    }
    for (unsigned i = 0; i < h->n; i++) {
        struct part *p = &r->parts[i];
        if (p->op.n_items == 0)
            continue;
        p->op.items = p->items;
        p->op.done = on_part;
        p->op.replay = true;
        broker_push(me(r), &p->op);
    }
}

// Which records of those that were sent were not stored, because their partitions are locked.
static void read_left(struct replay *r)
{
    unsigned from = r->alone ? r->at : 0;
    unsigned to = r->alone ? r->at + 1 : r->n_kept + n_window(r);

    for (unsigned i = from; i < to; i++) {
        struct part *p = &r->parts[house_home(r->house, record_at(r, i)->queue)->index];
        if (r->left[i])
            continue;
        const struct push_item *it = &p->items[p->n_read++];
        if (it->status == PUSH_PENDING || it->status == PUSH_LATER)
            leave(r, i, false);
    }
}

static void on_part(struct push_op *op, int status)
{
    struct replay *r = container_of(op, struct part, op)->replay;

    if (status != 0 && (r->status == 0 || is_outage(status))) {
        r->status = status;
        r->why = op->op.why;
    }
    if (--r->n_flying > 0)
        return;
    if (r->status == 0)
        read_left(r);
    if (r->alone)
        landed_alone(r);
    else
        landed(r);
}

// Retrying cannot cure it.
static bool is_poison(int status)
{
    int http = err_http_status(status);

    return http >= 400 && http < 500 && http != 429;
}

// A request that must be whole waits for all of its partitions, also because of one that is
// locked.
static bool must_scatter(const struct replay *r)
{
    for (unsigned i = 0; i < r->house->n; i++) {
        const struct push_op *op = &r->parts[i].op;
        if (op->n_items > 1 && op->op.whole && (op->n_pending > 0 || op->n_later > 0))
            return true;
    }
    return false;
}

static void landed(struct replay *r)
{
    if (r->status == 0 && !must_scatter(r)) {
        settled(r);
    } else if (is_outage(r->status) || r->status == QE_BUSY || r->status == QE_STOPPING) {
        wait_for(r);
    } else { // one record is at fault, or its queue refuses it for now
        r->alone = true;
        r->at = r->tries = 0;
        replay_start(r);
    }
}

static void landed_alone(struct replay *r)
{
    bool hopeless = is_poison(r->status) ||
                    (err_http_status(r->status) == 500 && ++r->tries >= TRIES_ALONE);

    if (r->status == QE_QUEUE_FULL || r->status == QE_NO_KEY) {
        leave(r, r->at, true);
    } else if (r->status != 0 && !hopeless) {
        wait_for(r);
        return;
    } else if (r->status != 0) {
        bury(r, r->at, r->why.text[0] ? r->why.text : err_text(r->status));
    }
    r->n_probed += r->probing && !r->left[r->at];
    atomic_store(&r->failures, 0);
    r->tries = 0;
    if (++r->at == r->n_kept + n_window(r))
        settled(r);
    else
        replay_start(r);
}

static void bury(struct replay *r, unsigned i, const char *reason)
{
    if (i >= r->n_kept)
        spool_bury(&r->window, i - r->n_kept, reason);
    else
        spool_bury_left(&r->window, (span){r->kept[i].bytes, r->kept[i].len}, reason);
}

static void replay_keep(struct replay *r, span bytes, bool full)
{
    uint64_t size;

    if (r->n_kept == r->cap_kept) {
        r->cap_kept = r->cap_kept > 0 ? r->cap_kept * 2 : 64;
        r->kept = mem_realloc(r->kept, r->cap_kept * sizeof *r->kept);
    }
    struct kept *k = &r->kept[r->n_kept++];
    *k = (struct kept){
        .bytes = mem_strndup(bytes.ptr, bytes.len), .len = bytes.len, .full = full};
    if (spool_take_record((span){k->bytes, k->len}, &k->record, &size) != SPOOL_RECORD)
        BUG("a record that was read cannot be read again");
    r->kept_bytes += k->len;
}

// Of those kept before, only the ones that are left.
static void drop_stored(struct replay *r)
{
    unsigned n = r->n_kept;

    r->n_kept = 0;
    for (unsigned i = 0; i < n; i++) {
        if (r->left[i]) {
            r->kept[r->n_kept] = r->kept[i];
            r->kept[r->n_kept++].full = r->full[i];
            continue;
        }
        spool_stored(r->house->spool, &r->kept[i].record);
        r->kept_bytes -= r->kept[i].len;
        free(r->kept[i].bytes);
    }
}

static bool may_probe(const struct replay *r)
{
    if (!replay_may_go(r) || clock_mono_us() < r->probe_us || n_window(r) > 0)
        return false;
    for (unsigned i = 0; i < r->n_kept; i++)
        if (r->kept[i].full)
            return true;
    return false;
}

static void replay_probe(struct replay *r)
{
    r->alone = r->probing = true;
    r->at = r->tries = 0;
    r->probe_us = clock_mono_us() + FULL_US;
    push_batch(r);
}

// Also when it must stop: the spool must learn which records are done.
static void settled(struct replay *r)
{
    unsigned n_before = r->n_kept, n = n_window(r);
    bool probed = r->probing; // now it is the turn of the others

    for (unsigned i = 0; i < n_before + n; i++)
        r->n_replayed += !r->left[i];
    atomic_store(&r->failures, 0);
    if (r->probing) // at once again if the queues have room
        r->probe_us = clock_mono_us() + (r->n_probed > 0 ? 0 : FULL_US);
    r->alone = r->probing = false;
    drop_stored(r);
    if (n > 0) {
        free(r->window_left);
        r->window_left = mem_new_array(bool, n);
        for (unsigned i = 0; i < n; i++) {
            r->window_left[i] = r->left[n_before + i];
            if (r->window_left[i])
                replay_keep(r, spool_bytes(&r->window, i), r->full[n_before + i]);
        }
        r->taken = true;
    }
    if (!probed && may_probe(r)) {
        replay_probe(r);
    } else if (is_kept_full(r) || (n == 0 && r->n_kept > 0)) { // nothing more to read for now
        r->state = WAITING;
        due_set(&me(r)->due, &r->due, clock_mono_us() + KEPT_US, on_kept_due);
    } else {
        read_on(r);
    }
    broker_wake(me(r)); // pushes that wait for the replay may go
}

// The partitions of the kept records may be free now, and the buffer may have new ones.
static void on_kept_due(struct due *d)
{
    struct replay *r = container_of(d, struct replay, due);

    if (is_kept_full(r) || !replay_may_go(r))
        replay_start(r);
    else
        read_on(r);
}

static void wait_for(struct replay *r)
{
    struct broker *b = me(r);
    unsigned n = atomic_fetch_add(&r->failures, 1) + 1;

    log_at(n == 1 || n == FAILURES_TO_PAUSE ? LOG_WARN : LOG_DEBUG, "replay.failed",
           "status=%s in_a_row=%u waiting=%llu detail=\"%s\"", err_name(r->status), n,
           (unsigned long long)spool_pending(r->house->spool), r->why.text);
    r->state = WAITING;
    due_set(&b->due, &r->due,
            clock_mono_us() + (n % FAILURES_TO_PAUSE == 0 ? PAUSE_US : RETRY_US),
            on_replay_due);
    broker_wake(b);
}

static void on_replay_due(struct due *d) { replay_start(container_of(d, struct replay, due)); }
