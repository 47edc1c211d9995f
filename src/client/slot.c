// slot.c: one partition of a processor: pop, handle in order, settle.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "client/fail.h"
#include "client/pop.h"
#include "client/processor_int.h"

enum { PAUSE_AFTER_ERROR_MS = 1000, WAIT_MS = 30000 };

static void pop_next(struct slot *s);
static void on_popped(struct queen_batch *batch, const struct queen_error *err, void *ctx);
static void mark_start(struct slot *s);
static void run(struct slot *s);
static void on_finished(struct queen_job *job);
static void ack(struct slot *s);
static void on_acked(struct queen_ack_results *r, const struct queen_error *err, void *ctx);
static void save_checkpoint(struct slot *s, const char *transaction_id, bool before);
static void on_saved(struct queen_response *r, const struct queen_error *err, void *ctx);
static void end(struct slot *s);

static uint64_t now_ms(const struct slot *s) { return s->processor->now_ms(); }

static bool saves_checkpoints(const struct slot *s)
{
    return s->processor->conf.checkpoints != QUEEN_CHECKPOINT_BATCH;
}

void slot_open(struct slot *s, int64_t epoch, uint64_t valid_until_ms)
{
    struct queen_processor *p = s->processor;

    s->epoch = epoch;
    s->valid_until_ms = valid_until_ms;
    s->halt = false;
    s->closing = s->marked = false;
    s->asked_ms = 0;
    s->checkpoint_due_ms = now_ms(s) + p->conf.checkpoint_ms;
    p->n_owned++;
    if (p->conf.on_opened)
        p->conf.on_opened(s->name, p->conf.ctx);
    pop_next(s);
}

static void pop_next(struct slot *s)
{
    struct queen_processor *p = s->processor;

    if (s->closing) {
        end(s);
        return;
    }
    s->state = SLOT_POPPING;
    p->n_calls++;
    s->pop = pop_begin(p->client,
                       &(struct queen_pop){.queue = p->queue,
                                           .partition = s->name,
                                           .group = p->group,
                                           .batch = p->conf.batch,
                                           .wait = true,
                                           .timeout_ms = WAIT_MS,
                                           .subscription_mode = p->mode,
                                           .owner = p->owner,
                                           .epoch = s->epoch},
                       on_popped, s);
}

static void wait_a_moment(struct slot *s)
{
    s->state = SLOT_WAITING;
    s->due_ms = now_ms(s) + PAUSE_AFTER_ERROR_MS;
}

static void on_popped(struct queen_batch *batch, const struct queen_error *err, void *ctx)
{
    struct slot *s = ctx;
    struct queen_processor *p = s->processor;

    s->pop = NULL;
    p->n_calls--;
    if (!batch && err->code == QUEEN_E_CONFLICT) {
        s->state = SLOT_WAITING;
        slot_close(s, QUEEN_CLOSED_LOST);
    } else if (!batch && s->closing) {
        end(s);
    } else if (!batch) {
        wait_a_moment(s);
        processor_failed(p, err);
    } else if (batch->n == 0) {
        queen_batch_free(batch);
        pop_next(s);
    } else {
        heal_event(&p->heal, now_ms(s));
        s->job = job_new(p->client, batch, on_finished, s);
        s->at = s->tried = s->pause_ms = 0;
        if (s->closing)
            ack(s); // nothing is settled: all of it is given back
        else if (saves_checkpoints(s) && !s->marked)
            mark_start(s);
        else
            run(s);
    }
}

// Without it the next owner would go on behind what was acknowledged, not behind what was done.
static void mark_start(struct slot *s)
{
    s->state = SLOT_MARKING;
    save_checkpoint(s, s->job->batch->items[0].transaction_id, true);
}

static void run(struct slot *s)
{
    struct queen_processor *p = s->processor;

    s->state = SLOT_HANDLING;
    s->pause_ms = 0;
    if (p->crew)
        crew_run(p->crew, s->job);
    else
        queen_job_finish(s->job, slot_handle(s->job, p));
}

// ---- the handler's side ----

static bool may_go_on(struct slot *s) { return !s->halt && now_ms(s) < s->valid_until_ms; }

static void settle(struct slot *s, enum queen_ack_status status)
{
    struct queen_processor *p = s->processor;
    span id = span_of(s->job->batch->items[s->at].transaction_id);

    queen_job_settle(s->job, s->at, status, s->error[0] != '\0' ? s->error : NULL);
    if (status == QUEEN_ACK_COMPLETED) {
        p->n_handled++;
        dedup_add(s->dedup, id, now_ms(s));
    } else if (status == QUEEN_ACK_DLQ) {
        p->n_dead++;
    }
    s->at++;
    s->tried = 0;
    s->error[0] = '\0';
}

// Events of the batch, until one must wait, the partition is lost, or there are no more.
enum queen_verdict slot_handle(struct queen_job *job, void *processor)
{
    struct queen_processor *p = processor;
    struct slot *s = job->owner;

    while (s->at < job->batch->n && may_go_on(s)) {
        const struct queen_delivery *d = &job->batch->items[s->at];
        struct queen_event e = {
            .message = d, .partition = s->name, .tried = s->tried, .internal = s};
        if (s->tried == 0 && dedup_has(s->dedup, span_of(d->transaction_id), now_ms(s))) {
            p->n_duplicates++;
            queen_job_settle(job, s->at++, QUEEN_ACK_COMPLETED, NULL);
            continue;
        }
        enum queen_outcome outcome = p->conf.on_event(&e, p->conf.ctx);
        struct event_plan plan = event_plan(outcome, ++s->tried, &p->conf.retry);
        if (plan.again) {
            p->n_retried++;
            s->pause_ms = plan.pause_ms > 0 ? plan.pause_ms : 1;
            break;
        }
        settle(s, plan.status);
    }
    return QUEEN_DONE;
}

void queen_event_error(struct queen_event *e, const char *text)
{
    struct slot *s = e->internal;

    snprintf(s->error, sizeof s->error, "%s", text);
}

static void note_checkpoint(struct slot *s, const char *transaction_id)
{
    pthread_mutex_lock(&s->processor->lock);
    free(s->checkpoint);
    s->checkpoint = mem_strndup(transaction_id, strlen(transaction_id));
    pthread_mutex_unlock(&s->processor->lock);
}

void queen_event_checkpoint(struct queen_event *e)
{
    note_checkpoint(e->internal, e->message->transaction_id);
}

// ---- settling ----

static void on_finished(struct queen_job *job)
{
    struct slot *s = job->owner;

    if (s->pause_ms > 0 && !s->closing) {
        s->state = SLOT_PAUSING;
        s->due_ms = now_ms(s) + s->pause_ms;
    } else {
        ack(s);
    }
}

// What was not settled goes back, without counting as a failure.  Also when the partition is
// lost: what is not ours any more is refused by the server, which knows best.
static void ack(struct slot *s)
{
    struct queen_processor *p = s->processor;
    size_t n = s->job->batch->n;
    struct queen_ack *acks = mem_new_array(struct queen_ack, n);

    s->state = SLOT_ACKING;
    s->job->verdict = QUEEN_RETRY;
    job_verdicts(s->job, acks);
    p->n_calls++;
    queen_ack_start(p->client, p->group, acks, n, on_acked, s);
    free(acks);
}

static void on_acked(struct queen_ack_results *r, const struct queen_error *err, void *ctx)
{
    struct slot *s = ctx;
    struct queen_processor *p = s->processor;
    struct queen_error lost;

    p->n_calls--;
    if (p->conf.checkpoints == QUEEN_CHECKPOINT_TIME && s->at > 0 && r && r->n_refused == 0)
        note_checkpoint(s, s->job->batch->items[s->at - 1].transaction_id);
    job_free(s->job);
    s->job = NULL;
    s->state = SLOT_WAITING;
    s->due_ms = 0;
    if (!r) {
        processor_failed(p, err);
        wait_a_moment(s);
    } else if (r->n_refused > 0) {
        fail_set(&lost, QUEEN_E_LEASE, "partition %s: %zu of %zu events were not ours any more",
                 s->name, r->n_refused, r->n);
        processor_report(p, &lost);
        slot_close(s, QUEEN_CLOSED_LOST);
    }
    queen_ack_results_free(r);
    if (s->state == SLOT_WAITING && s->closing)
        end(s);
    else if (s->state == SLOT_WAITING && s->due_ms == 0)
        pop_next(s);
}

// ---- checkpoints ----

static void save_checkpoint(struct slot *s, const char *transaction_id, bool before)
{
    struct queen_processor *p = s->processor;
    struct buf body = {0};

    owners_begin(&body, p->owner);
    owners_add(&body, s->name, s->epoch, transaction_id, before);
    owners_end(&body, 0, false, false);
    s->saving = true;
    processor_post(p, "checkpoint", &body, on_saved, s);
}

static void on_saved(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct slot *s = ctx;
    struct queen_processor *p = s->processor;
    struct owner_result *results = NULL;
    struct queen_error why = *err;
    struct arena a;
    unsigned n = 0;

    p->n_calls--;
    s->saving = false;
    arena_init(&a);
    if (r && why.code == 0 && owners_read_results(r, &a, &results, &n, &why) == 0 && n == 1 &&
        results[0].error)
        fail_set(&why, QUEEN_E_CONFLICT, "checkpoint of partition %s: %s", s->name,
                 results[0].error);
    s->marked = s->marked || why.code == 0;
    if (why.code != 0)
        processor_report(p, &why);
    arena_deinit(&a);
    queen_response_free(r);
    if (s->state == SLOT_MARKING && why.code == 0 && !s->closing)
        run(s);
    else if (s->state == SLOT_MARKING)
        ack(s); // gives the batch back
    else if (s->state == SLOT_WAITING && s->closing)
        end(s);
}

static void save_if_due(struct slot *s, uint64_t now)
{
    struct queen_processor *p = s->processor;
    char *id = NULL;

    if (!saves_checkpoints(s) || s->saving || s->state == SLOT_MARKING ||
        (now < s->checkpoint_due_ms && p->conf.checkpoints == QUEEN_CHECKPOINT_TIME &&
         !s->closing))
        return;
    pthread_mutex_lock(&p->lock);
    id = s->checkpoint;
    s->checkpoint = NULL;
    pthread_mutex_unlock(&p->lock);
    s->checkpoint_due_ms = now + p->conf.checkpoint_ms;
    if (id)
        save_checkpoint(s, id, false);
    free(id);
}

// ---- time, and the end ----

void slot_tick(struct slot *s, uint64_t now)
{
    if (s->state == SLOT_CLOSED)
        return;
    save_if_due(s, now);
    if (!s->closing && now >= s->valid_until_ms)
        slot_close(s, QUEEN_CLOSED_LOST);
    else if (s->state == SLOT_PAUSING && now >= s->due_ms)
        run(s);
    else if (s->state == SLOT_WAITING && now >= s->due_ms)
        pop_next(s);
}

void slot_close(struct slot *s, enum queen_closed why)
{
    if (s->state == SLOT_CLOSED || s->closing)
        return;
    s->closing = true;
    s->halt = true;
    s->why = why;
    if (s->state == SLOT_POPPING)
        call_hang_up(s->pop);
    else if (s->state == SLOT_PAUSING)
        ack(s);
    else if (s->state == SLOT_WAITING)
        end(s);
}

static void end(struct slot *s)
{
    struct queen_processor *p = s->processor;

    save_if_due(s, now_ms(s));
    if (s->saving) {
        s->state = SLOT_WAITING; // on_saved() comes back here
        s->due_ms = UINT64_MAX;
        return;
    }
    s->state = SLOT_CLOSED;
    p->n_owned--;
    if (p->conf.on_closed)
        p->conf.on_closed(s->name, s->why, p->conf.ctx);
    if (s->why == QUEEN_CLOSED_GIVEN)
        processor_release(p, s);
    processor_stop_if_done(p);
}
