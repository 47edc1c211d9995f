// answer.c: evaluates responses: successes, entries for the ledger, acknowledgements to send.
#include "bench/load/worker.h"

#include "base/clock.h"
#include "base/err.h"

static int on_bench_pushed(struct worker *w, struct conn *c, span body);
static int on_bench_popped(struct worker *w, struct conn *c, span body, uint64_t now);
static int on_bench_acked(struct worker *w, struct conn *c, span body);

static void note_bad_answer(struct worker *w, const struct conn *c, const struct bench_reply *r)
{
    static const char *const names[] = {"push", "pop", "ack", "configure"};

    bench_stats_note(&w->stats, "%s answered %d: %.*s", names[c->op], r->status,
                     (int)(r->body.len < 120 ? r->body.len : 120),
                     r->body.len > 0 ? r->body.ptr : "");
}

unsigned worker_doubt(struct worker *w, struct conn *c)
{
    unsigned n = 0;

    for (unsigned i = 0; i < c->n_sent; i++) {
        if (!c->sent[i].accepted) {
            ledger_doubt(w->load->ledger, c->id, c->sent[i].partition, c->sent[i].number);
            n++;
        }
    }
    return n;
}

bool worker_answer(struct worker *w, struct conn *c, const struct bench_reply *r)
{
    uint64_t now = clock_mono_us();
    bool measured = phase_of(w->load) == BENCH_MEASURE;
    int n = r->status >= 200 && r->status <= 299 ? 0 : QE_BAD_REQUEST;

    if (c->op == BENCH_OP_PUSH)
        n = on_bench_pushed(w, c, n == 0 ? r->body : SPAN_NONE);
    else if (n == 0 && c->op == BENCH_OP_POP)
        n = on_bench_popped(w, c, r->body, now);
    else if (n == 0 && c->op == BENCH_OP_ACK)
        n = on_bench_acked(w, c, r->body);
    if (n < 0 || (c->op == BENCH_OP_ACK && c->n_acks > 0)) {
        note_bad_answer(w, c, r);
        counter_add(&w->stats.http_errors, n < 0);
    }
    if (c->op == BENCH_OP_ACK)
        c->n_acks = 0;
    counter_add(&w->stats.requests[c->op], 1);
    if (n < 0)
        return false;

    counter_add(&w->stats.messages[c->op], (uint64_t)n);
    bool empty = c->op == BENCH_OP_POP && n == 0;
    counter_add(&w->stats.empty_pops, empty);
    if (measured) {
        uint64_t from = c->produces ? c->due_us : c->sent_us;
        counter_add(&w->stats.window_requests[c->op], 1);
        counter_add(&w->stats.window_messages[c->op], (uint64_t)n);
        if (!empty)
            bench_hist_add(&w->stats.latency[c->op], now - from);
    }
    return !empty || w->load->text->conf->wait_ms > 0;
}

// These three return the number of successful messages, or an error code.
static int on_bench_pushed(struct worker *w, struct conn *c, span body)
{
    unsigned buffered = 0;
    int rc = bench_read_push(body, c->sent, c->n_sent, &buffered);
    unsigned refused = worker_doubt(w, c);

    counter_add(&w->stats.not_accepted, rc == 0 ? refused : 0);
    counter_add(&w->stats.buffered, buffered);
    if (rc == 0 && refused > 0)
        bench_stats_note(&w->stats, "push: %u of %u not accepted: %.*s", refused, c->n_sent,
                         (int)(body.len < 120 ? body.len : 120), body.ptr);
    return rc != 0 ? rc : (int)(c->n_sent - refused);
}

static int on_bench_popped(struct worker *w, struct conn *c, span body, uint64_t now)
{
    struct bench_load *l = w->load;
    bool measured = phase_of(l) == BENCH_MEASURE;
    uint64_t origin = l->text->origin_us;
    struct bench_popped m;
    int n = 0;

    if (body.len == 0)
        return 0;
    struct ledger_answer answer = {
        .id = ledger_answer_id(l->ledger),
        .group = c->group < 0 ? 0 : (uint32_t)c->group,
        .sent_ms = (uint32_t)((c->sent_us - origin) / 1000),
        .now_ms = (uint32_t)((now - origin) / 1000),
    };
    struct bench_walk walk = bench_walk_begin(body);
    buf_reset(&c->acks);
    for (; bench_walk_next(&walk, l->text, &m); n++) {
        if (l->text->conf->ack) {
            bench_put_ack_entry(&c->acks, &m);
            c->n_acks++;
        }
        if (!m.ours || !ledger_receive(l->ledger, &answer, m.producer, m.partition, m.number))
            counter_add(&w->stats.foreign, 1);
        else if (measured && l->plan.drains)
            bench_hist_add(&w->stats.e2e, now > m.due_us ? now - m.due_us : 0);
    }
    int rc = bench_walk_end(&walk);
    if (rc != 0)
        c->n_acks = 0;
    return rc != 0 ? rc : n;
}

static int on_bench_acked(struct worker *w, struct conn *c, span body)
{
    unsigned ok;
    int rc = bench_read_acks(body, &ok);

    if (rc != 0)
        return rc;
    counter_add(&w->stats.ack_refused, c->n_acks > ok ? c->n_acks - ok : 0);
    if (ok >= c->n_acks)
        c->n_acks = 0; // all successful; otherwise worker_answer() records an error
    return (int)ok;
}
