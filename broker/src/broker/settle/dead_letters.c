// dead_letters.c: counts new dead letters and writes a line about them to the log.
#include "broker/settle/dead_letters.h"

#include "base/clock.h"
#include "base/log.h"

void dead_letters_note(struct broker *b, span queue, span partition, span group, span txid,
                       const char *reason, unsigned n)
{
    uint64_t now_s = clock_mono_us() / 1000000;

    counter_add(&b->stats.dead_letters, n);
    if (now_s == b->dead_logged_s) {
        b->n_dead_unlogged += n;
        return;
    }
    log_warn("dlq.added",
             "reason=\"%s\" queue=\"" SPAN_FMT "\" partition=\"" SPAN_FMT "\" group=\"" SPAN_FMT
             "\" transaction=\"" SPAN_FMT "\" n=%u unlogged=%u",
             reason, SPAN_ARG(queue), SPAN_ARG(partition), SPAN_ARG(group), SPAN_ARG(txid), n,
             b->n_dead_unlogged);
    b->dead_logged_s = now_s;
    b->n_dead_unlogged = 0;
}

void dead_letters_of(struct broker *b, const struct ack_entry *entries, unsigned n,
                     const span *groups, bool group_each)
{
    for (unsigned i = 0; i < n; i++) {
        const struct ack_entry *e = &entries[i];
        if (e->dead && e->why == ACK_OK)
            dead_letters_note(b, e->queue, e->partition, groups[group_each ? i : 0], e->txid,
                              e->status == ACK_FAILED ? "retries exhausted" : "requested", 1);
    }
}
