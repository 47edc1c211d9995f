// One replay window per sender.
#include "peer/replay_window.h"

#include <stdio.h>
#include <string.h>

enum { WINDOW = 64 };

static struct replay_window *replay_window_find(struct replay_windows *h, const char *sender)
{
    for (unsigned i = 0; i < h->n; i++)
        if (strcmp(h->server[i].sender, sender) == 0)
            return &h->server[i];
    return NULL;
}

// Room for another: a new place, or the place of one that is dead.
static struct replay_window *replay_window_make_room(struct replay_windows *h, uint64_t now_us,
                                                     uint64_t dead_us)
{
    struct replay_window *oldest = &h->server[0];

    if (h->n < REPLAY_WINDOWS_MAX)
        return &h->server[h->n++];
    for (unsigned i = 1; i < h->n; i++)
        if (h->server[i].received_us < oldest->received_us)
            oldest = &h->server[i];
    return now_us - oldest->received_us > dead_us ? oldest : NULL;
}

static void begin_session(struct replay_window *s, const struct peer_note *note)
{
    memcpy(s->session, note->session, sizeof s->session);
    s->top = note->sequence;
    s->seen = 1;
}

static bool is_new(struct replay_window *s, uint64_t sequence)
{
    if (sequence > s->top) {
        uint64_t by = sequence - s->top;
        s->seen = (by < WINDOW ? s->seen << by : 0) | 1;
        s->top = sequence;
        return true;
    }
    uint64_t back = s->top - sequence;
    if (back >= WINDOW || (s->seen >> back & 1))
        return false;
    s->seen |= 1ull << back;
    return true;
}

static bool is_fresh(const struct peer_note *note, uint64_t wall_ms)
{
    uint64_t apart = note->at_ms > wall_ms ? note->at_ms - wall_ms : wall_ms - note->at_ms;

    return apart <= PEER_FRESH_MS;
}

enum replay_verdict replay_window_admit(struct replay_windows *h, const struct peer_note *note,
                                        const struct replay_clock *clock)
{
    struct replay_window *s = replay_window_find(h, note->sender);

    if (!is_fresh(note, clock->wall_ms))
        return REPLAY_STALE;
    if (!s) {
        s = replay_window_make_room(h, clock->now_us, clock->dead_us);
        if (!s)
            return REPLAY_OLD;
        *s = (struct replay_window){0};
        memcpy(s->sender, note->sender, sizeof s->sender);
        begin_session(s, note);
    } else if (strcmp(s->session, note->session) != 0) {
        bool is_dead = clock->now_us - s->received_us > clock->dead_us;
        if (strcmp(note->session, s->session) < 0 && !is_dead)
            return REPLAY_OLD;
        h->n_restarts++;
        begin_session(s, note);
    } else if (!is_new(s, note->sequence)) {
        return REPLAY_OLD;
    }
    s->received_us = clock->now_us;
    return REPLAY_NEW;
}

void replay_session_make(char session[PEER_SESSION + 1], uint64_t wall_ms, uint16_t random)
{
    snprintf(session, PEER_SESSION, "%0*llx%04x", SESSION_TIME_DIGITS,
             (unsigned long long)(wall_ms & 0xfffffffffffull), random);
}

unsigned replay_window_alive(const struct replay_windows *h, uint64_t now_us, uint64_t dead_us)
{
    unsigned n = 0;

    for (unsigned i = 0; i < h->n; i++)
        n += now_us - h->server[i].received_us <= dead_us;
    return n;
}
