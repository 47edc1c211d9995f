// reconnect.c: the three layers as one state.
#include "reconnect.h"

static const unsigned pauses_ms[] = {5000, 10000, 15000};

const struct heal_conf heal_defaults = {
    .pauses_ms = pauses_ms,
    .n_pauses = sizeof pauses_ms / sizeof pauses_ms[0],
    .watchdog_ms = 60000,
    .stale_ms = 300000,
};

void heal_init(struct heal *h, const struct heal_conf *conf, struct heal_ops ops,
               uint64_t now_ms)
{
    *h = (struct heal){.conf = *conf, .ops = ops, .last_event_ms = now_ms};
}

// The next try of the second layer, or of the third when those are used up.
static void wait_for_next(struct heal *h, uint64_t now_ms)
{
    bool by_watchdog = h->n_failed >= h->conf.n_pauses;

    h->state = by_watchdog ? HEAL_WATCHDOG : HEAL_WAITING;
    h->due_ms = now_ms + (by_watchdog ? h->conf.watchdog_ms : h->conf.pauses_ms[h->n_failed]);
}

void heal_error(struct heal *h, uint64_t now_ms)
{
    if (h->state == HEAL_HEALTHY)
        wait_for_next(h, now_ms);
}

void heal_event(struct heal *h, uint64_t now_ms) { h->last_event_ms = now_ms; }

void heal_look(struct heal *h, bool has_events, uint64_t now_ms)
{
    if (!has_events) {
        h->last_event_ms = now_ms; // silence is right then
    } else if (h->state == HEAL_HEALTHY && now_ms - h->last_event_ms >= h->conf.stale_ms) {
        h->state = HEAL_WAITING;
        h->due_ms = now_ms;
    }
}

void heal_tick(struct heal *h, uint64_t now_ms)
{
    if ((h->state != HEAL_WAITING && h->state != HEAL_WATCHDOG) || now_ms < h->due_ms)
        return;
    h->state = HEAL_REBUILDING;
    h->n_rebuilds++;
    h->last_event_ms = now_ms;
    h->ops.tear_down(h->ops.ctx);
    h->ops.subscribe(h->ops.ctx);
}

void heal_done(struct heal *h, bool works, uint64_t now_ms)
{
    if (h->state != HEAL_REBUILDING)
        return;
    if (works) {
        h->state = HEAL_HEALTHY;
        h->n_failed = 0;
    } else {
        h->n_failed++;
        wait_for_next(h, now_ms);
    }
}
