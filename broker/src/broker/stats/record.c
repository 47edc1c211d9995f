// Record: what was counted is written to the tables of metrics, one call per broker and minute.
//
//      on_sample ──► gauges ─┐
//      tallies of queues ────┴─► on_record_due ──► build ──► dispatch
//                                             ▲         │
//                                             └─ later ─┘
//      dispatch ──► on_metrics_recorded ──► (trim)
//
// A batch keeps its id when it has to be sent again, and the database takes each id once; what
// is counted meanwhile waits for the next batch.  Parked consumers are written when their
// number has changed, and all of them once in an hour, so that readers need not look back
// further.
#include "broker/broker_int.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "broker/stats/sample.h"
#include "db/sql.gen.h"
#include "spool/spool.h"

enum {
    FIRST_MS = 3000, // the schema may not be there yet
    AGAIN_MS = 5000,
    MAX_TRIES = 20,
    ALL_EVERY_S = 3600,
    TRIM_EVERY_S = 600,
    PROMPT_US = 100000, // an answer within this time is good for a new estimate of the clock
    TRIM_ROWS = 50000,
    MAX_JITTER_MS = 500,
};

// Of the process; broker 0 looks for all.  Order and names: gauges_put().
enum {
    CPU_USER,
    CPU_SYSTEM,
    MEM_RESIDENT,
    MEM_VIRTUAL,
    POOL_SIZE,
    POOL_IDLE,
    POOL_ACTIVE,
    BUFFERED,
    REGISTRY,
    PUSH_COUNT,
    PUSH_LATENCY,
    PUSH_ITEMS,
    POP_COUNT,
    POP_LATENCY,
    POP_ITEMS,
    ACK_COUNT,
    ACK_LATENCY,
    ACK_ITEMS,
    N_GAUGES
};
static const char *const gauge_names[N_GAUGES] = {
    [CPU_USER] = "cpu.user_us",
    [CPU_SYSTEM] = "cpu.system_us",
    [MEM_RESIDENT] = "memory.rss_bytes",
    [MEM_VIRTUAL] = "memory.virtual_bytes",
    [POOL_SIZE] = "database.pool_size",
    [POOL_IDLE] = "database.pool_idle",
    [POOL_ACTIVE] = "database.pool_active",
    [BUFFERED] = "buffer.pending",
    [REGISTRY] = "registries.response",
    [PUSH_COUNT] = "shared_state.sidecar_ops.push.count",
    [PUSH_LATENCY] = "shared_state.sidecar_ops.push.latency_us",
    [PUSH_ITEMS] = "shared_state.sidecar_ops.push.items",
    [POP_COUNT] = "shared_state.sidecar_ops.pop.count",
    [POP_LATENCY] = "shared_state.sidecar_ops.pop.latency_us",
    [POP_ITEMS] = "shared_state.sidecar_ops.pop.items",
    [ACK_COUNT] = "shared_state.sidecar_ops.ack.count",
    [ACK_LATENCY] = "shared_state.sidecar_ops.ack.latency_us",
    [ACK_ITEMS] = "shared_state.sidecar_ops.ack.items",
};

// Counters as they stood at the end of the last batch (or sample).
struct op_marks {
    uint64_t requests, items, latency_us, latency_n;
};

struct recorder {
    struct broker *broker;
    char hostname[256];
    struct due sample_due, due;
    uint64_t begun_us; // of the period
    uint64_t all_us;   // when all parked consumers were last written
    uint64_t trimmed_us;
    struct call *batch; // built and not yet stored
    uint64_t sent_us;   // monotonic
    unsigned tries;
    bool flying;

    struct gauge loop_lag_ms, free_slots, job_queue;
    uint64_t requests[OP_KINDS], db_failed, dead_letters, acks_failed;

    struct gauge gauges[N_GAUGES];
    unsigned n_samples;
    struct usage usage;
    uint64_t usage_us;
    struct op_marks ops[3];
};

static void on_sample(struct due *d);
static void sample_process(struct recorder *r, uint64_t now);
static void on_record_due(struct due *d);
static struct call *build(struct recorder *r, bool all);
static void dispatch(struct recorder *r);
// PostgreSQL read its clock between sent_us and now. After a prompt answer the middle of that
// time is assumed. A call that waited, for a lock or for a standby, shows only limits: the
// estimate stays if it is between them. A wrong one would shorten the delays of messages that
// are written to the file buffer.
static void estimate_clock(struct broker *b, int64_t pg_us, uint64_t sent_us)
{
    uint64_t now = clock_mono_us();
    int64_t low = pg_us - (int64_t)now, high = pg_us - (int64_t)sent_us;

    if (now - sent_us <= PROMPT_US)
        b->pg_ahead_us = low + (high - low) / 2;
    else if (b->pg_ahead_us < low)
        b->pg_ahead_us = low;
    else if (b->pg_ahead_us > high)
        b->pg_ahead_us = high;
}

static void on_metrics_recorded(struct pg_call *pg, int status, const struct pg_reply *reply);
static void trim(struct recorder *r);
static void on_trimmed(struct pg_call *pg, int status, const struct pg_reply *reply);

static void again_in(struct recorder *r, uint64_t ms)
{
    uint64_t jitter_us = ms * 10 < MAX_JITTER_MS * 1000ull ? ms * 10 : MAX_JITTER_MS * 1000ull;

    due_set(&r->broker->due, &r->due,
            clock_mono_us() + ms * 1000 + id_random_u64() % (jitter_us + 1), on_record_due);
}

void recorder_start(struct broker *b)
{
    const struct record_conf *conf = &b->conf.record;

    if (conf->every_ms == 0)
        return;
    struct recorder *r = b->recorder = mem_new(struct recorder);
    uint64_t now = clock_mono_us();
    r->broker = b;
    r->begun_us = r->all_us = r->trimmed_us = r->usage_us = now;
    r->usage = usage_read();
    if (gethostname(r->hostname, sizeof r->hostname - 1) != 0)
        strcpy(r->hostname, "localhost");
    again_in(r, conf->every_ms < FIRST_MS ? conf->every_ms : FIRST_MS);
    due_set(&b->due, &r->sample_due, now + conf->sample_ms * 1000ull, on_sample);
}

// ---- looking ----

static void on_sample(struct due *d)
{
    struct recorder *r = container_of(d, struct recorder, sample_due);
    struct broker *b = r->broker;
    uint64_t now = clock_mono_us();
    unsigned busy = atomic_load_explicit(&broker_pg_stats(b)->n_busy, memory_order_relaxed);
    unsigned most = b->conf.pg.max_conns, waiting = 0;

    for (unsigned kind = 0; kind < OP_KINDS; kind++)
        waiting += b->ops[kind].n_requests;
    gauge_add(&r->loop_lag_ms, (double)(now - d->at_us) / 1000);
    gauge_add(&r->free_slots, most > busy ? most - busy : 0);
    gauge_add(&r->job_queue, waiting);
    // While draining, the other brokers may close before this one does.
    if (b->index == 0 && !b->draining)
        sample_process(r, now);
    due_set(&b->due, d, now + b->conf.record.sample_ms * 1000ull, on_sample);
}

static void sample_ops(struct recorder *r)
{
    static const struct {
        uint8_t kind, gauge;
    } of[] = {{OP_PUSH, PUSH_COUNT}, {OP_POP, POP_COUNT}, {OP_ACK, ACK_COUNT}};
    const struct house *h = r->broker->house;

    for (unsigned i = 0; i < countof(of); i++) {
        struct op_marks now = {0}, *last = &r->ops[i];
        for (unsigned w = 0; w < h->n; w++) {
            const struct broker_stats *s = &h->brokers[w]->stats;
            const struct histogram *us = &s->latency_us[of[i].kind];
            now.requests += counter_get(&s->requests[of[i].kind]);
            now.items += counter_get(&s->items[of[i].kind]);
            now.latency_us += atomic_load_explicit(&us->sum, memory_order_relaxed);
            now.latency_n += atomic_load_explicit(&us->n, memory_order_relaxed);
        }
        uint64_t n = now.latency_n - last->latency_n;
        gauge_add(&r->gauges[of[i].gauge], (double)(now.requests - last->requests));
        if (n > 0)
            gauge_add(&r->gauges[of[i].gauge + 1],
                      (double)(now.latency_us - last->latency_us) / (double)n);
        gauge_add(&r->gauges[of[i].gauge + 2], (double)(now.items - last->items));
        *last = now;
    }
}

static void sample_process(struct recorder *r, uint64_t now)
{
    const struct house *h = r->broker->house;
    struct usage used = usage_read();
    uint64_t passed = now - r->usage_us, unanswered = 0;
    unsigned open = 0, busy = 0;

    for (unsigned i = 0; i < h->n; i++) {
        const struct broker *b = h->brokers[i];
        const struct pg_pool_stats *pg = broker_pg_stats(b);
        open += atomic_load_explicit(&pg->n_open, memory_order_relaxed);
        busy += atomic_load_explicit(&pg->n_busy, memory_order_relaxed);
        unanswered += atomic_load_explicit(&b->stats.parked, memory_order_relaxed) +
                      atomic_load_explicit(&b->stats.pending, memory_order_relaxed);
    }
    r->n_samples++;
    gauge_add(&r->gauges[CPU_USER], usage_share(r->usage.user_us, used.user_us, passed));
    gauge_add(&r->gauges[CPU_SYSTEM], usage_share(r->usage.system_us, used.system_us, passed));
    if (used.virtual_bytes > 0) {
        gauge_add(&r->gauges[MEM_RESIDENT], (double)used.resident_bytes);
        gauge_add(&r->gauges[MEM_VIRTUAL], (double)used.virtual_bytes);
    }
    gauge_add(&r->gauges[POOL_SIZE], open);
    gauge_add(&r->gauges[POOL_IDLE], open > busy ? open - busy : 0);
    gauge_add(&r->gauges[POOL_ACTIVE], busy);
    gauge_add(&r->gauges[BUFFERED], h->spool ? (double)spool_pending(h->spool) : 0);
    gauge_add(&r->gauges[REGISTRY], (double)unanswered);
    sample_ops(r);
    r->usage = used;
    r->usage_us = now;
}

// ---- writing ----

static void on_record_due(struct due *d)
{
    struct recorder *r = container_of(d, struct recorder, due);
    struct broker *b = r->broker;
    uint64_t now = clock_mono_us();
    bool all = now - r->all_us >= ALL_EVERY_S * 1000000ull;

    if (r->flying || !broker_is_up(b)) {
        again_in(r, AGAIN_MS < b->conf.record.every_ms ? AGAIN_MS : b->conf.record.every_ms);
        return;
    }
    if (!r->batch) {
        r->batch = build(r, all);
        r->tries = 0;
        r->all_us = all ? now : r->all_us;
    }
    again_in(r, b->conf.record.every_ms);
    dispatch(r);
}

// The queues that get a row, and the sum of their rows.
struct chosen {
    struct queue **queues, **parked;
    unsigned n_queues, n_parked;
    struct tally sum;
};

static bool is_nothing(const struct tally *t)
{
    static const struct tally none;
    return memcmp(t, &none, sizeof none) == 0;
}

static void record_add(struct tally *into, const struct tally *t)
{
    into->push_messages += t->push_messages;
    into->pop_messages += t->pop_messages;
    into->auto_acked += t->auto_acked;
    into->ack_ok += t->ack_ok;
    into->lag_us += t->lag_us;
    if (t->lag_max_us > into->lag_max_us)
        into->lag_max_us = t->lag_max_us;
}

// Takes the queues to write now from the list.  A queue that has only empty polls stays until
// it has other counts, or until all are written.
static void choose(struct broker *b, bool all, struct chosen *c)
{
    struct queue *q, *next;
    unsigned n = HASH_COUNT(b->queues);

    c->queues = mem_new_array(struct queue *, n + 1);
    c->parked = mem_new_array(struct queue *, n + 1);
    for (q = LIST_FIRST(&b->touched); q; q = next) {
        struct queue_notes *notes = &q->notes;
        bool nothing = is_nothing(&notes->tally), row = !nothing && (notes->active || all);
        next = LIST_NEXT(q, notes.touched);
        if (row) {
            c->queues[c->n_queues++] = q;
            record_add(&c->sum, &notes->tally);
        }
        if (notes->n_parked != notes->parked_recorded && !all)
            c->parked[c->n_parked++] = q;
        if (row || nothing) {
            LIST_REMOVE(q, notes.touched);
            notes->is_touched = notes->active = false;
        }
    }
    if (all)
        HASH_ITER (hh, b->queues, q, next)
            if (q->notes.n_parked > 0 || q->notes.n_parked != q->notes.parked_recorded)
                c->parked[c->n_parked++] = q;
}

#define FOR_QUEUES(list, n, type, put)                 \
    pg_begin_array(p, type);                           \
    for (unsigned i = 0; i < (n); i++) {               \
        struct queue_notes *notes = &(list)[i]->notes; \
        (void)notes;                                   \
        put;                                           \
    }                                                  \
    pg_end_array(p)
#define TALLIES(field) \
    FOR_QUEUES(c->queues, c->n_queues, PG_INT8, pg_put_i64(p, (int64_t)notes->tally.field))

static void put_queues(struct pg_params *p, const struct chosen *c)
{
    FOR_QUEUES(c->queues, c->n_queues, PG_TEXT,
               pg_put_text(p, (span){c->queues[i]->name, c->queues[i]->name_len}));
    TALLIES(push_requests);
    TALLIES(push_messages);
    TALLIES(pop_requests);
    TALLIES(pop_messages);
    TALLIES(pop_empty);
    TALLIES(auto_acked);
    TALLIES(ack_requests);
    TALLIES(ack_ok);
    TALLIES(ack_failed);
    TALLIES(transactions);
    TALLIES(lag_us);
    TALLIES(lag_max_us);
    FOR_QUEUES(c->parked, c->n_parked, PG_TEXT,
               pg_put_text(p, (span){c->parked[i]->name, c->parked[i]->name_len}));
    FOR_QUEUES(c->parked, c->n_parked, PG_INT4, pg_put_i32(p, (int32_t)notes->n_parked));
}

static int64_t usage_since(uint64_t *mark, uint64_t now)
{
    uint64_t delta = now - *mark;

    *mark = now;
    return (int64_t)delta;
}

// In the order that broker/sql/stats/record_metrics.sql reads them.
static void put_worker(struct recorder *r, struct pg_params *p, const struct tally *sum)
{
    struct broker *b = r->broker;
    const struct broker_stats *s = &b->stats;
    const struct pg_pool_stats *pg = broker_pg_stats(b);
    int64_t requests[OP_KINDS], jobs = 0;

    for (unsigned k = 0; k < OP_KINDS; k++)
        jobs += requests[k] = usage_since(&r->requests[k], counter_get(&s->requests[k]));
    const int64_t v[] = {
        requests[OP_PUSH],
        requests[OP_POP],
        requests[OP_ACK],
        requests[OP_TRANSACTION],
        jobs,
        (int64_t)sum->push_messages,
        (int64_t)sum->pop_messages,
        (int64_t)sum->auto_acked,
        (int64_t)sum->ack_ok,
        usage_since(&r->acks_failed, counter_get(&s->acks_failed)),
        usage_since(&r->dead_letters, counter_get(&s->dead_letters)),
        usage_since(&r->db_failed, counter_get(&pg->failed)),
        (int64_t)sum->lag_us,
        (int64_t)sum->lag_max_us,
        (int64_t)(gauge_avg(&r->loop_lag_ms) * 1000),
        (int64_t)(r->loop_lag_ms.max * 1000),
        (int64_t)(gauge_avg(&r->free_slots) * 1000),
        (int64_t)r->free_slots.min,
        (int64_t)(gauge_avg(&r->job_queue) * 1000),
        (int64_t)r->job_queue.max,
        (int64_t)atomic_load_explicit(&pg->n_open, memory_order_relaxed),
    };
    pg_begin_array(p, PG_INT8);
    for (unsigned i = 0; i < countof(v); i++)
        pg_put_i64(p, v[i]);
    pg_end_array(p);
    r->loop_lag_ms = r->free_slots = r->job_queue = (struct gauge){0};
}

static void record_put_process(struct recorder *r, struct pg_params *p)
{
    const struct record_conf *conf = &r->broker->conf.record;

    pg_param_i32(p, (int32_t)conf->port);
    pg_param_text(p, span_of(conf->process));
    pg_param_i32(p, (int32_t)r->n_samples);
    if (r->n_samples > 0) {
        struct buf json = {0};
        gauges_put(&json, r->gauges, gauge_names, N_GAUGES);
        pg_param_text(p, buf_span(&json));
        buf_free(&json);
    } else {
        pg_param_null(p, PG_TEXT);
    }
    r->n_samples = 0;
    memset(r->gauges, 0, sizeof r->gauges);
}

static struct call *build(struct recorder *r, bool all)
{
    struct broker *b = r->broker;
    struct call *call = call_new(b, &pg_stmt_record_metrics, NULL);
    struct pg_params *p = &call->params;
    struct chosen c = {0};
    uint64_t now = clock_mono_us();
    uint8_t id[16];

    choose(b, all, &c);
    id_uuid4(id);
    pg_param_uuid(p, id);
    pg_param_text(p, span_of(r->hostname));
    pg_param_i32(p, (int32_t)b->index);
    pg_param_i32(p, (int32_t)getpid());
    pg_param_i32(p, (int32_t)((now - r->begun_us) / 1000 + 1));
    put_worker(r, p, &c.sum);
    record_put_process(r, p);
    put_queues(p, &c);
    r->begun_us = now;
    for (unsigned i = 0; i < c.n_queues; i++)
        c.queues[i]->notes.tally = (struct tally){0};
    for (unsigned i = 0; i < c.n_parked; i++)
        c.parked[i]->notes.parked_recorded = c.parked[i]->notes.n_parked;
    free(c.queues);
    free(c.parked);
    return call;
}

static void dispatch(struct recorder *r)
{
    r->flying = true;
    r->sent_us = clock_mono_us();
    call_send(r->batch, on_metrics_recorded);
}

static void on_metrics_recorded(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct recorder *r = b->recorder;

    r->flying = false;
    if (status == 0 && pg_reply_rows(reply) == 1) {
        estimate_clock(b, pg_reply_unix_us(reply, 0, RECORD_METRICS_COL_RECORD_METRICS),
                       r->sent_us);
    } else if (!b->closing && ++r->tries < MAX_TRIES) {
        if (!is_outage(status) && !is_worth_retry(status))
            log_warn("metrics.record_failed", "status=%s detail=\"%s\"", err_name(status),
                     pg_reply_message(reply));
        again_in(r, AGAIN_MS < b->conf.record.every_ms ? AGAIN_MS : b->conf.record.every_ms);
        return;
    } else {
        log_warn("metrics.lost", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    }
    call_free(c);
    r->batch = NULL;
    if (b->index == 0 && !b->closing &&
        clock_mono_us() - r->trimmed_us >= TRIM_EVERY_S * 1000000ull)
        trim(r);
}

void recorder_finish(struct broker *b)
{
    struct recorder *r = b->recorder;

    if (!r || r->flying)
        return;
    if (!r->batch && broker_is_up(b))
        r->batch = build(r, true);
    if (r->batch)
        dispatch(r);
}

void recorder_free(struct broker *b)
{
    struct recorder *r = b->recorder;

    if (!r)
        return;
    due_cancel(&b->due, &r->due);
    due_cancel(&b->due, &r->sample_due);
    if (r->batch)
        call_free(r->batch);
    free(r);
    b->recorder = NULL;
}

// ---- forgetting ----

static void trim(struct recorder *r)
{
    struct call *c = call_new(r->broker, &pg_stmt_trim_metrics, NULL);

    r->trimmed_us = clock_mono_us();
    pg_param_i32(&c->params, (int32_t)r->broker->conf.record.keep_days);
    pg_param_i32(&c->params, TRIM_ROWS);
    call_send(c, on_trimmed);
}

static void on_trimmed(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct recorder *r = c->broker->recorder;

    if (status != 0 && !is_outage(status))
        log_warn("metrics.trim_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    // A full batch: there is more.  It goes with the next row of metrics.
    if (status == 0 && pg_reply_rows(reply) == 1 &&
        pg_reply_i64(reply, 0, TRIM_METRICS_COL_TRIM_METRICS) >= TRIM_ROWS)
        r->trimmed_us = 0;
    call_free(c);
}
