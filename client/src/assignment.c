// assignment.c: one partition of a processor: claim, then pop, handle and settle in a loop.
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "dedup.h"
#include "fail.h"
#include "pop.h"
#include "processor_int.h"

// With more partitions than connections for long polls, partitions take turns.
enum { PAUSE_AFTER_ERROR_MS = 1000, WAIT_MS = 30000, TURN_MS = 1000 };

static void on_assignment_popped(struct queen_batch *batch, const struct queen_error *err,
                                 void *ctx);
static void mark_start(struct assignment *s);
static void assignment_run(struct assignment *s);
static void on_finished(struct queen_job *job);
static void save_checkpoint(struct assignment *s, const char *transaction_id, bool before);
static void on_saved(struct queen_response *r, const struct queen_error *err, void *ctx);

static bool saves_checkpoints(const struct assignment *s)
{
    return s->processor->conf.checkpoints != QUEEN_CHECKPOINT_BATCH;
}

// Remembered ids are invalid for a partition of the same name in a queue that was created
// again: the same ids may occur there and are new.
static void forget_if_made_again(struct assignment *s, const char *partition_id)
{
    if (!partition_id || (s->partition_id && strcmp(s->partition_id, partition_id) == 0))
        return;
    if (s->partition_id) {
        dedup_clear(s->dedup);
        pthread_mutex_lock(&s->processor->lock);
        free(s->checkpoint);
        s->checkpoint = NULL;
        pthread_mutex_unlock(&s->processor->lock);
    }
    free(s->partition_id);
    s->partition_id = mem_strndup(partition_id, strlen(partition_id));
}

void assignment_open(struct assignment *s, const struct owner_result *claimed,
                     uint64_t valid_until_ms)
{
    struct queen_processor *p = s->processor;

    if (!s->dedup)
        s->dedup = dedup_new(p->conf.dedup_count, p->conf.dedup_ms);
    forget_if_made_again(s, claimed->partition_id);
    s->epoch = claimed->epoch;
    s->valid_until_ms = valid_until_ms;
    s->halt = false;
    s->closing = s->marked = s->renewing = false;
    s->reopened = true;
    dedup_show(s->dedup);
    s->asked_ms = 0;
    s->checkpoint_due_ms = assignment_now_ms(s) + p->conf.checkpoint_ms;
    p->n_owned++;
    if (p->conf.on_opened)
        p->conf.on_opened(&(struct queen_opened){.partition = s->name,
                                                 .partition_id = claimed->partition_id,
                                                 .epoch = s->epoch},
                          p->conf.ctx);
    assignment_pop(s);
}

void assignment_pop(struct assignment *s)
{
    struct queen_processor *p = s->processor;

    if (s->closing) {
        assignment_end(s);
        return;
    }
    s->state = ASSIGN_POPPING;
    p->n_calls++;
    s->pop = pop_begin(
        p->client,
        &(struct queen_pop){.queue = p->queue,
                            .partition = s->name,
                            .group = p->group,
                            .batch = p->conf.batch,
                            .wait = true,
                            .timeout_ms =
                                p->n_owned > client_max_parked(p->client) ? TURN_MS : WAIT_MS,
                            .subscription_mode = p->mode,
                            .owner = p->owner,
                            .epoch = s->epoch},
        on_assignment_popped, s);
}

static void wait_a_moment(struct assignment *s)
{
    s->state = ASSIGN_WAITING;
    s->due_ms = assignment_now_ms(s) + PAUSE_AFTER_ERROR_MS;
}

static bool was_refused(const struct queen_error *err)
{
    return err->http_status >= 400 && err->http_status < 500;
}

// A confirmed event is delivered again only if the group's cursor was moved; it must then be
// handled again. With checkpoints it is also delivered again when the partition is reopened.
void assignment_forget_settled(struct assignment *s)
{
    if (saves_checkpoints(s))
        dedup_hide(s->dedup);
    else
        dedup_clear(s->dedup);
}

// A batch whose acknowledgement is unconfirmed is delivered again from its first event, or not
// at all. Any other first event means that the cursor was moved.
static void forget_after_seek(struct assignment *s, const struct queen_batch *batch)
{
    if (s->reopened && !saves_checkpoints(s) &&
        !dedup_has(s->dedup, span_of(batch->items[0].transaction_id), assignment_now_ms(s)))
        dedup_clear(s->dedup);
    s->reopened = false;
}

static void on_assignment_popped(struct queen_batch *batch, const struct queen_error *err,
                                 void *ctx)
{
    struct assignment *s = ctx;
    struct queen_processor *p = s->processor;

    s->pop = NULL;
    p->n_calls--;
    if (!batch && s->closing) {
        assignment_end(s);
    } else if (!batch && err->code == QUEEN_E_CONFLICT) {
        s->state = ASSIGN_WAITING;
        assignment_close(s, QUEEN_CLOSED_LOST);
    } else if (!batch && was_refused(err)) {
        wait_a_moment(s);
        processor_failed(p, err);
    } else if (!batch) {
        assignment_doubt(s, err);
    } else if (batch->n == 0) {
        s->doubted = false;
        queen_batch_free(batch);
        assignment_pop(s);
    } else {
        reconnect_event(&p->reconnect, assignment_now_ms(s));
        forget_after_seek(s, batch);
        s->job = job_new(p->client, batch, on_finished, s);
        s->at = s->tried = s->pause_ms = 0;
        if (s->closing)
            assignment_settle(s); // nothing is settled: all of it is released
        else if (saves_checkpoints(s) && !s->marked)
            mark_start(s);
        else
            assignment_run(s);
    }
}

// Without it the next owner would continue behind the acknowledged events, not behind the last
// checkpoint.
static void mark_start(struct assignment *s)
{
    s->state = ASSIGN_MARKING;
    save_checkpoint(s, s->job->batch->items[0].transaction_id, true);
}

static void assignment_run(struct assignment *s)
{
    struct queen_processor *p = s->processor;

    s->state = ASSIGN_HANDLING;
    s->pause_ms = 0;
    if (p->conf.on_events)
        assignment_hand_out(s);
    else if (p->threads)
        threads_run(p->threads, s->job);
    else
        queen_job_finish(s->job, assignment_handle(s->job, p));
}

// ---- after the handler ----

static void on_finished(struct queen_job *job)
{
    struct assignment *s = job->owner;

    if (s->events)
        assignment_read_answers(s);
    if (s->pause_ms > 0 && !s->closing) {
        s->state = ASSIGN_PAUSING;
        s->due_ms = assignment_now_ms(s) + s->pause_ms;
    } else {
        assignment_settle(s);
    }
}

// ---- checkpoints ----

static void save_checkpoint(struct assignment *s, const char *transaction_id, bool before)
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
    struct assignment *s = ctx;
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
    if (s->state == ASSIGN_MARKING && why.code == 0 && !s->closing)
        assignment_run(s);
    else if (s->state == ASSIGN_MARKING)
        assignment_settle(s); // releases the batch
    else if (s->state == ASSIGN_WAITING && s->closing)
        assignment_end(s);
}

static void save_if_due(struct assignment *s, uint64_t now)
{
    struct queen_processor *p = s->processor;
    char *id = NULL;

    if (!saves_checkpoints(s) || s->saving || s->state == ASSIGN_MARKING ||
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

// ---- timers and closing ----

void assignment_tick(struct assignment *s, uint64_t now)
{
    if (s->state == ASSIGN_CLOSED)
        return;
    save_if_due(s, now);
    if (!s->closing && now >= s->valid_until_ms)
        assignment_close(s, QUEEN_CLOSED_LOST);
    else if (s->state == ASSIGN_PAUSING && now >= s->due_ms)
        assignment_run(s);
    else if (s->state == ASSIGN_WAITING && now >= s->due_ms)
        assignment_pop(s);
}

void assignment_close(struct assignment *s, enum queen_closed why)
{
    if (s->state == ASSIGN_CLOSED || s->closing)
        return;
    s->closing = true;
    s->halt = true;
    s->why = why;
    if (s->state == ASSIGN_POPPING)
        call_hang_up(s->pop);
    else if (s->state == ASSIGN_PAUSING)
        assignment_settle(s);
    else if (s->state == ASSIGN_WAITING)
        assignment_end(s);
}

void assignment_doubt(struct assignment *s, const struct queen_error *err)
{
    struct queen_processor *p = s->processor;

    if (s->doubted)
        processor_failed(p, err); // not a single lost response: reconnecting takes its time
    else
        processor_report(p, err);
    s->doubted = true;
    p->look_due_ms = 0;
    s->state = ASSIGN_WAITING;
    assignment_close(s, QUEEN_CLOSED_REBUILT);
}

void assignment_end(struct assignment *s)
{
    struct queen_processor *p = s->processor;

    save_if_due(s, assignment_now_ms(s));
    if (s->saving) {
        s->state = ASSIGN_WAITING; // on_saved() continues
        s->due_ms = UINT64_MAX;
        return;
    }
    s->state = ASSIGN_CLOSED;
    p->n_owned--;
    if (p->conf.on_closed)
        p->conf.on_closed(s->name, s->why, p->conf.ctx);
    if (s->why == QUEEN_CLOSED_GIVEN)
        processor_release(p, s);
    processor_stop_if_done(p);
}
