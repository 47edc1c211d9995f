// reconnect.c: the state machine of reconnecting.
#include "reconnect.h"

static const unsigned pauses_ms[] = {5000, 10000, 15000};

const struct reconnect_conf reconnect_defaults = {
    .pauses_ms = pauses_ms,
    .n_pauses = sizeof pauses_ms / sizeof pauses_ms[0],
    .watchdog_ms = 60000,
    .stale_ms = 300000,
};

void reconnect_init(struct reconnect *h, const struct reconnect_conf *conf,
                    struct reconnect_ops ops, uint64_t now_ms)
{
    *h = (struct reconnect){.conf = *conf, .ops = ops, .last_event_ms = now_ms};
}

// The next attempt of the second layer, or of the third once those are exhausted.
static void wait_for_next(struct reconnect *h, uint64_t now_ms)
{
    bool by_watchdog = h->n_failed >= h->conf.n_pauses;

    h->state = by_watchdog ? RECONNECT_WATCHDOG : RECONNECT_WAITING;
    h->due_ms = now_ms + (by_watchdog ? h->conf.watchdog_ms : h->conf.pauses_ms[h->n_failed]);
}

void reconnect_error(struct reconnect *h, uint64_t now_ms)
{
    if (h->state == RECONNECT_HEALTHY)
        wait_for_next(h, now_ms);
}

void reconnect_event(struct reconnect *h, uint64_t now_ms) { h->last_event_ms = now_ms; }

void reconnect_look(struct reconnect *h, bool has_events, uint64_t now_ms)
{
    if (!has_events) {
        h->last_event_ms = now_ms; // silence is expected then
    } else if (h->state == RECONNECT_HEALTHY && now_ms - h->last_event_ms >= h->conf.stale_ms) {
        h->state = RECONNECT_WAITING;
        h->due_ms = now_ms;
    }
}

void reconnect_tick(struct reconnect *h, uint64_t now_ms)
{
    if ((h->state != RECONNECT_WAITING && h->state != RECONNECT_WATCHDOG) || now_ms < h->due_ms)
        return;
    h->state = RECONNECT_REBUILDING;
    h->n_rebuilds++;
    h->last_event_ms = now_ms;
    h->ops.tear_down(h->ops.ctx);
    h->ops.subscribe(h->ops.ctx);
}

void reconnect_done(struct reconnect *h, bool works, uint64_t now_ms)
{
    if (h->state != RECONNECT_REBUILDING)
        return;
    if (works) {
        h->state = RECONNECT_HEALTHY;
        h->n_failed = 0;
    } else {
        h->n_failed++;
        wait_for_next(h, now_ms);
    }
}
