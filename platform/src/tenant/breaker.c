// breaker.c: opens after consecutive failures, probes with growing pauses, closes after a
// success.
#include "tenant/breaker.h"

void breaker_good(struct breaker *b)
{
    if (b->state == BREAKER_CLOSED)
        b->failures = 0;
}

bool breaker_bad(struct breaker *b, const struct breaker_conf *c, bool hard, uint64_t now_us)
{
    if (b->state != BREAKER_CLOSED)
        return false; // reports of calls that were in progress when it opened
    b->failures++;
    if (!hard && b->failures < c->failures)
        return false;
    b->state = BREAKER_OPEN;
    b->probes = 0;
    b->opened_us = now_us;
    b->next_us = now_us + c->pause_us;
    b->n_opened++;
    return true;
}

bool breaker_is_due(struct breaker *b, uint64_t now_us)
{
    if (b->state != BREAKER_OPEN || now_us < b->next_us)
        return false;
    b->state = BREAKER_PROBING;
    return true;
}

void breaker_probed(struct breaker *b, const struct breaker_conf *c, bool good, uint64_t now_us)
{
    if (b->state != BREAKER_PROBING)
        return;
    if (good) {
        b->state = BREAKER_CLOSED;
        b->failures = b->probes = 0;
        return;
    }
    unsigned doublings = b->probes < 16 ? b->probes + 1 : 16;
    uint64_t pause = c->pause_us << doublings;
    b->probes++;
    b->state = BREAKER_OPEN;
    b->next_us = now_us + (pause < c->max_pause_us ? pause : c->max_pause_us);
}
