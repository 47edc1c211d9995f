// snapshot.c: how old is too old.
#include "api/snapshot.h"

static bool is_younger(const struct snapshot *s, uint64_t now_us, unsigned ms)
{
    return s->got_us != 0 && now_us - s->got_us < ms * 1000ull;
}

bool snapshot_is_fresh(const struct snapshot *s, uint64_t now_us, unsigned period_ms)
{
    unsigned half = period_ms / 2;

    return is_younger(s, now_us, half < SNAPSHOT_FRESH_MS ? half : SNAPSHOT_FRESH_MS);
}

void snapshot_put(const struct snapshot *s, uint64_t now_us, struct buf *out)
{
    if (is_younger(s, now_us, SNAPSHOT_USABLE_MS))
        buf_put(out, buf_span(&s->text));
}

void snapshot_deinit(struct snapshot *s) { buf_free(&s->text); }
