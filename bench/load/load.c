// load.c: distributes the connections of a plan over threads, and observes them.
#include "bench/load/load.h"

#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "base/mem.h"
#include "bench/load/worker.h"

// Every worker gets its share of both roles.
static void worker_setup(struct worker *w, unsigned index)
{
    const struct bench_plan *p = &w->load->plan;
    const struct bench_conf *conf = w->load->text->conf;
    uint32_t total = p->producers + p->consumers;

    TAILQ_INIT(&w->idle);
    TAILQ_INIT(&w->resting);
    w->conns = mem_new_array(struct conn, total / p->threads + 2);
    for (uint32_t i = index; i < p->producers; i += p->threads) {
        struct conn *c = &w->conns[w->n_conns++];
        *c = (struct conn){.http = {.fd = -1}, .produces = true, .id = p->first_producer + i};
        c->sent = mem_new_array(struct bench_sent, p->batch);
        w->n_producers++;
    }
    for (uint32_t i = index; i < p->consumers; i += p->threads) {
        struct conn *c = &w->conns[w->n_conns++];
        *c = (struct conn){.http = {.fd = -1}, .id = i};
        c->group = conf->groups > 0 ? (int)(i % conf->groups) : -1;
        bench_put_pop(&c->pop, w->load->text, i, c->group);
    }
    if (p->rate > 0 && w->n_producers > 0)
        w->step_us = 1e6 * p->batch / (p->rate * w->n_producers / p->producers);
}

struct bench_load *load_new(struct bench_plan plan, const struct bench_addr *addr,
                            const struct bench_text *text, struct ledger *ledger)
{
    struct bench_load *l = mem_new(struct bench_load);

    l->plan = plan;
    l->addr = addr;
    l->text = text;
    l->ledger = ledger;
    l->workers = mem_new_array(struct worker, plan.threads);
    for (unsigned i = 0; i < plan.threads; i++) {
        struct worker *w = &l->workers[i];
        w->load = l;
        worker_setup(w, i);
        int rc = pthread_create(&w->thread, NULL, worker_main, w);
        if (rc != 0)
            BUG("cannot start a thread: %s", strerror(rc));
    }
    return l;
}

// ---- for the main thread ----

void load_set_phase(struct bench_load *l, enum bench_phase phase)
{
    atomic_store(&l->phase, (int)phase);
}

bool load_is_done(const struct bench_load *l)
{
    for (unsigned i = 0; i < l->plan.threads; i++)
        if (!atomic_load(&l->workers[i].done))
            return false;
    return true;
}

uint64_t load_messages(const struct bench_load *l, enum bench_op op)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < l->plan.threads; i++)
        n += counter_get(&l->workers[i].stats.messages[op]);
    return n;
}

uint64_t load_requests(const struct bench_load *l, enum bench_op op)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < l->plan.threads; i++)
        n += counter_get(&l->workers[i].stats.requests[op]);
    return n;
}

uint64_t load_errors(const struct bench_load *l)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < l->plan.threads; i++)
        n += bench_stats_errors(&l->workers[i].stats);
    return n;
}

uint64_t load_parked(const struct bench_load *l)
{
    uint64_t n = 0;
    for (unsigned i = 0; i < l->plan.threads; i++)
        n += atomic_load_explicit(&l->workers[i].n_busy, memory_order_relaxed);
    return n;
}

void load_free(struct bench_load *l, struct bench_stats *sum)
{
    for (unsigned i = 0; i < l->plan.threads; i++) {
        pthread_join(l->workers[i].thread, NULL);
        bench_stats_merge(sum, &l->workers[i].stats);
    }
    free(l->workers);
    free(l);
}
