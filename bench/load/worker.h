// bench_worker.h: one generator thread, for bench_load.c and its two halves only.
#ifndef QUEEN_CLI_BENCH_WORKER_H
#define QUEEN_CLI_BENCH_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "bench/load/load.h"

// A connection is in exactly one place: busy, idle (producers that wait for their due
// time), resting, or, when its part is over, nowhere.
TAILQ_HEAD(conn_queue, conn);
struct conn {
    struct bench_conn http;
    bool produces, busy;
    uint32_t id; // producer's name in the ledger, or number of the consumer
    int group;
    enum bench_op op;
    uint64_t sent_us, due_us, wake_us;
    struct bench_sent *sent; // the push under way
    unsigned n_sent;
    struct buf pop; // a consumer's request, always the same
    struct buf acks;
    unsigned n_acks;
    struct conn_queue *in; // idle, resting, or NULL
    TAILQ_ENTRY(conn) link;
};

struct worker {
    struct bench_load *load;
    pthread_t thread;
    struct conn *conns;
    uint32_t n_conns, n_producers;
    int epoll, timer;
    struct conn_queue idle, resting; // resting: by wake_us
    uint64_t next_due_us, armed_us;
    double step_us, step_rest; // between two pushes; rest: fraction not yet spent
    _Atomic uint32_t n_busy;
    _Atomic bool done;
    struct bench_stats stats;
};

struct bench_load {
    struct bench_plan plan;
    const struct bench_addr *addr;
    const struct bench_text *text;
    struct ledger *ledger;
    struct worker *workers;
    _Atomic int phase;
    _Atomic uint64_t taken; // of plan.limit
};

static inline enum bench_phase phase_of(const struct bench_load *l)
{
    return (enum bench_phase)atomic_load_explicit(&l->phase, memory_order_relaxed);
}

// The thread: runs until the plan or the phase says so.  arg is the worker, set up.
void *worker_main(void *arg);

// In bench_answer.c: counts an answer and gives its messages to the ledger.  False: give
// the server a moment before the next request.
bool worker_answer(struct worker *w, struct conn *c, const struct bench_reply *r);
// Everything of the push under way that was not accepted may still turn up, or not.
unsigned worker_doubt(struct worker *w, struct conn *c);

#endif
