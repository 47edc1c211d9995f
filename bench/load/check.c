// check.c: the ledger: one cursor per group and stream, plus two sets for the exceptions.
#include "bench/load/check.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/mem.h"
#include "bench/load/set.h"

enum { N_STRIPES = 64 };

// The position of a group in a stream.
struct cursor {
    uint32_t next;    // youngest number seen, plus one
    uint32_t answer;  // the pop that returned the youngest
    uint32_t seen_ms; // when it arrived
};

// Streams of the same partition share a stripe: its lock, its sets, its counts.
struct stripe {
    pthread_mutex_t lock;
    struct bench_set missing;  // cursor index << 32 | number
    struct bench_set doubtful; // stream index << 32 | number
    uint64_t repeated, disordered;
};

struct ledger {
    struct ledger_shape shape;
    uint64_t n_streams;
    _Atomic uint32_t *sent; // per stream: numbers given out
    struct cursor *cursors; // per group and stream
    struct stripe stripes[N_STRIPES];
    _Atomic uint64_t delivered, doubtful;
    _Atomic uint32_t answers;
};

struct ledger *ledger_new(struct ledger_shape shape)
{
    uint64_t streams = (uint64_t)shape.producers * shape.partitions;
    uint64_t bytes =
        streams * sizeof(uint32_t) + streams * shape.groups * sizeof(struct cursor);

    if (bytes > (uint64_t)4 << 30)
        return NULL;
    struct ledger *l = mem_new(struct ledger);
    l->shape = shape;
    l->n_streams = streams;
    l->sent = mem_new_array(_Atomic uint32_t, streams + 1);
    l->cursors = mem_new_array(struct cursor, streams * shape.groups + 1);
    for (unsigned i = 0; i < N_STRIPES; i++)
        pthread_mutex_init(&l->stripes[i].lock, NULL);
    return l;
}

void ledger_free(struct ledger *l)
{
    if (!l)
        return;
    for (unsigned i = 0; i < N_STRIPES; i++) {
        bench_set_free(&l->stripes[i].missing);
        bench_set_free(&l->stripes[i].doubtful);
        pthread_mutex_destroy(&l->stripes[i].lock);
    }
    free(l->sent);
    free(l->cursors);
    free(l);
}

static uint64_t stream_of(const struct ledger *l, uint32_t producer, uint32_t partition)
{
    return (uint64_t)producer * l->shape.partitions + partition;
}

uint32_t ledger_send(struct ledger *l, uint32_t producer, uint32_t partition)
{
    return atomic_fetch_add_explicit(&l->sent[stream_of(l, producer, partition)], 1,
                                     memory_order_relaxed);
}

void ledger_doubt(struct ledger *l, uint32_t producer, uint32_t partition, uint32_t number)
{
    struct stripe *s = &l->stripes[partition % N_STRIPES];

    pthread_mutex_lock(&s->lock);
    bench_set_add(&s->doubtful, stream_of(l, producer, partition) << 32 | number);
    pthread_mutex_unlock(&s->lock);
    atomic_fetch_add_explicit(&l->doubtful, 1, memory_order_relaxed);
}

uint32_t ledger_answer_id(struct ledger *l)
{
    // From 1: a new cursor names answer 0, which no message has.
    return atomic_fetch_add_explicit(&l->answers, 1, memory_order_relaxed) + 1;
}

// True if the message had not been delivered to this group before.
static bool bench_check_decide(struct stripe *s, struct cursor *c, uint64_t index,
                               const struct ledger_answer *a, uint32_t number)
{
    if (number >= c->next) {
        for (uint32_t n = c->next; n < number; n++)
            bench_set_add(&s->missing, index << 32 | n);
        *c = (struct cursor){.next = number + 1, .answer = a->id, .seen_ms = a->now_ms};
        return true;
    }
    if (!bench_set_take(&s->missing, index << 32 | number)) {
        s->repeated++;
        return false;
    }
    if (a->id == c->answer || a->sent_ms > c->seen_ms)
        s->disordered++;
    return true;
}

bool ledger_receive(struct ledger *l, const struct ledger_answer *a, uint32_t producer,
                    uint32_t partition, uint32_t number)
{
    if (producer >= l->shape.producers || partition >= l->shape.partitions ||
        a->group >= l->shape.groups)
        return false;
    uint64_t stream = stream_of(l, producer, partition);
    if (number >= atomic_load_explicit(&l->sent[stream], memory_order_relaxed))
        return false;
    uint64_t index = a->group * l->n_streams + stream;
    struct stripe *s = &l->stripes[partition % N_STRIPES];

    pthread_mutex_lock(&s->lock);
    bool first = bench_check_decide(s, &l->cursors[index], index, a, number);
    pthread_mutex_unlock(&s->lock);
    if (first)
        atomic_fetch_add_explicit(&l->delivered, 1, memory_order_relaxed);
    return true;
}

uint64_t ledger_delivered(const struct ledger *l)
{
    return atomic_load_explicit(&l->delivered, memory_order_relaxed);
}

uint64_t ledger_doubtful(const struct ledger *l)
{
    return atomic_load_explicit(&l->doubtful, memory_order_relaxed);
}

// Doubtful messages that did not arrive are not lost: subtract them from both counts.
static void excuse_doubtful(const struct ledger *l, const struct stripe *s,
                            struct ledger_sum *sum)
{
    for (size_t i = 0; i < s->doubtful.cap; i++) {
        if (s->doubtful.slot[i] == 0)
            continue;
        uint64_t key = s->doubtful.slot[i] - 1, stream = key >> 32;
        for (uint32_t g = 0; g < l->shape.groups; g++) {
            uint64_t index = g * l->n_streams + stream;
            if ((uint32_t)key >= l->cursors[index].next)
                sum->remaining--;
            else if (bench_set_has(&s->missing, index << 32 | (uint32_t)key))
                sum->skipped--;
        }
    }
}

struct ledger_sum ledger_sum(struct ledger *l)
{
    struct ledger_sum sum = {.doubtful = ledger_doubtful(l), .delivered = ledger_delivered(l)};

    for (uint64_t i = 0; i < l->n_streams; i++)
        sum.sent += l->sent[i];
    for (uint32_t g = 0; g < l->shape.groups; g++)
        for (uint64_t i = 0; i < l->n_streams; i++)
            sum.remaining += l->sent[i] - l->cursors[g * l->n_streams + i].next;
    for (unsigned i = 0; i < N_STRIPES; i++) {
        sum.repeated += l->stripes[i].repeated;
        sum.disordered += l->stripes[i].disordered;
        sum.skipped += l->stripes[i].missing.n;
        excuse_doubtful(l, &l->stripes[i], &sum);
    }
    return sum;
}
