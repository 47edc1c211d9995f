// stats.c: counts events.
#include "ingest/stats.h"

#include <time.h>

static int64_t wall_us(void)
{
    struct timespec t;

    clock_gettime(CLOCK_REALTIME, &t);
    return (int64_t)t.tv_sec * 1000000 + t.tv_nsec / 1000;
}

void ingest_count(struct ingest_stats *s, const struct event_type *type,
                  enum ingest_outcome outcome)
{
    unsigned t = type ? (unsigned)(type - event_types) : n_event_types;

    counter_add(&s->events[t][outcome], 1);
}

void ingest_count_item(struct ingest_stats *s, const struct item *item)
{
    int64_t late_us = wall_us() - item->position_us;

    if (item->outcome == ITEM_BAD) {
        ingest_count(s, item->event.type, OUTCOME_BAD);
        return;
    }
    ingest_count(s, item->event.type,
                 item->outcome == ITEM_APPLIED ? OUTCOME_APPLIED : OUTCOME_DUPLICATE);
    if (late_us > 0)
        histogram_add(&s->visible_us, (uint64_t)late_us);
}
