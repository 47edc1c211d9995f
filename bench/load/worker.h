// worker.h: one generator thread; for load.c, worker.c and answer.c only.
#ifndef QUEEN_CLI_BENCH_WORKER_H
#define QUEEN_CLI_BENCH_WORKER_H

#include <pthread.h>
#include <stdatomic.h>
#include <sys/queue.h>

#include "bench/load/load.h"

// A connection is in exactly one list: busy, idle (a producer that waits for its due time),
// resting, or none when its part is over.
TAILQ_HEAD(conn_queue, conn);
struct conn {
    struct bench_conn http;
    bool produces, busy;
    uint32_t id; // number of the producer in the ledger, or of the consumer
    int group;
    enum bench_op op;
    uint64_t sent_us, due_us, wake_us;
    struct bench_sent *sent; // the push in flight
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

// The thread: runs until the plan or the phase ends it. arg is the worker, initialised.
void *worker_main(void *arg);

// In answer.c: counts an answer and passes its messages to the ledger. False: pause before the
// next request.
bool worker_answer(struct worker *w, struct conn *c, const struct bench_reply *r);
// Messages of the push in flight that were not accepted become doubtful.
unsigned worker_doubt(struct worker *w, struct conn *c);

#endif
