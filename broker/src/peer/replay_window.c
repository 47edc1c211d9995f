// One replay window per sender.
#include "peer/replay_window.h"

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

static bool has_ended(const struct replay_window *s, const char *session)
{
    for (unsigned i = 0; i < REPLAY_WINDOW_ENDED; i++)
        if (s->ended[i][0] != '\0' && strcmp(s->ended[i], session) == 0)
            return true;
    return false;
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

const struct replay_window *replay_window_admit(struct replay_windows *h,
                                                const struct peer_note *note, uint64_t now_us,
                                                uint64_t dead_us)
{
    struct replay_window *s = replay_window_find(h, note->sender);

    if (!s) {
        s = replay_window_make_room(h, now_us, dead_us);
        if (!s)
            return NULL;
        *s = (struct replay_window){0};
        memcpy(s->sender, note->sender, sizeof s->sender);
        begin_session(s, note);
    } else if (strcmp(s->session, note->session) != 0) {
        if (has_ended(s, note->session))
            return NULL;
        memcpy(s->ended[s->n_restarts++ % REPLAY_WINDOW_ENDED], s->session, sizeof s->session);
        h->n_restarts++;
        begin_session(s, note);
    } else if (!is_new(s, note->sequence)) {
        return NULL;
    }
    s->received_us = now_us;
    return s;
}

unsigned replay_window_alive(const struct replay_windows *h, uint64_t now_us, uint64_t dead_us)
{
    unsigned n = 0;

    for (unsigned i = 0; i < h->n; i++)
        n += now_us - h->server[i].received_us <= dead_us;
    return n;
}
