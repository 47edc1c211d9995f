// events.c: the part of the platform that ingests events, and its metrics.
#include <inttypes.h>
#include <stdlib.h>

#include "http/prom_text.h"
#include "ingest/ingest.h"
#include "platform/platform_int.h"
#include "platform/settings.h"

// ---- the part ----

static void on_events_changed(span tenant, void *ctx) { platform_data_changed(ctx, tenant); }

static void start_ingest(struct platform *p)
{
    struct ingest_conf conf = settings_ingest(p->conf);

    conf.owner = p->id;
    conf.on_changed = on_events_changed;
    conf.ctx = p;
    p->ingest = ingest_open(&p->loop, p->broker, p->control, p->pools, &conf);
}

static void on_events_closed(void *ctx)
{
    struct platform *p = ctx;

    p->ingest = NULL;
    platform_ingest_stopped(p);
    platform_part_stopped(p);
}

static void events_stop(struct platform *p) { ingest_close(p->ingest, on_events_closed, p); }

// ---- metrics ----

static const char *const outcomes[] = {[OUTCOME_APPLIED] = "applied",
                                       [OUTCOME_DUPLICATE] = "duplicate",
                                       [OUTCOME_BAD] = "bad",
                                       [OUTCOME_HELD] = "held"};

static const char *type_name(unsigned t)
{
    return t < n_event_types ? event_types[t].name : "unknown";
}

static void expose_events(const struct ingest_stats *s, struct buf *out)
{
    char labels[100];

    prom_family(out, "queen_platform_events_total", "counter", "events by type and outcome");
    for (unsigned t = 0; t <= n_event_types; t++)
        for (unsigned o = 0; o < N_OUTCOMES; o++) {
            uint64_t v = counter_get(&s->events[t][o]);
            snprintf(labels, sizeof labels, "type=\"%s\",outcome=\"%s\"", type_name(t),
                     outcomes[o]);
            if (v > 0)
                prom_u64(out, "queen_platform_events_total", labels, v);
        }
    prom_family(out, "queen_platform_event_visible_seconds", "histogram",
                "from the push of an event to the commit in the tenant's database");
    prom_histogram(out, "queen_platform_event_visible_seconds", NULL, &s->visible_us, 1e-6);
    prom_family(out, "queen_platform_event_batch", "histogram",
                "events per batch of a partition");
    prom_histogram(out, "queen_platform_event_batch", NULL, &s->batch, 1);
}

static void events_expose(struct platform *p, struct buf *out)
{
    if (!p->ingest)
        return;
    const struct writer_stats *w = ingest_writer_stats(p->ingest);
    const struct lanes_stats *l = ingest_lanes_stats(p->ingest);
    struct queen_processor_stats processor;

    ingest_processor_stats(p->ingest, &processor);
    expose_events(ingest_stats(p->ingest), out);
    prom_family(out, "queen_platform_write_events", "histogram", "events per transaction");
    prom_histogram(out, "queen_platform_write_events", NULL, &w->events, 1);
    prom_family(out, "queen_platform_write_seconds", "histogram", "duration of a transaction");
    prom_histogram(out, "queen_platform_write_seconds", NULL, &w->us, 1e-6);
    prom_single(out, "queen_platform_write_retries_total", "counter",
                "transactions that were retried immediately", counter_get(&w->retries));
    prom_single(out, "queen_platform_write_failures_total", "counter",
                "transactions that failed; their events are held", counter_get(&w->failures));
    prom_single(out, "queen_platform_owned_partitions", "gauge",
                "partitions of the queue that this process owns", processor.owned);
    prom_single(out, "queen_platform_held_lanes", "gauge",
                "lanes (partition and tenant) with held events in those partitions", l->n_open);
    prom_single(out, "queen_platform_held_events_total", "counter", "events that were held",
                counter_get(&l->held));
    prom_single(out, "queen_platform_held_drained_total", "counter",
                "held events that were applied", counter_get(&l->drained));
    prom_single(out, "queen_platform_held_attempts_total", "counter",
                "failed attempts to apply held events", counter_get(&l->attempts));
    prom_single(out, "queen_platform_tenants_behind_total", "counter",
                "transactions refused because the tenant's database lost committed events",
                counter_get(&w->behind));
    prom_single(out, "queen_platform_replays_total", "counter",
                "lanes whose lost events were replayed", counter_get(&l->replays));
    prom_single(out, "queen_platform_replayed_events_total", "counter",
                "lost events that were applied again", counter_get(&l->replayed));
    prom_single(out, "queen_platform_replays_incomplete_total", "counter",
                "replays for which the broker or the checkpoint was missing",
                counter_get(&l->unreplayed));
}

static uint64_t sum_of(const struct ingest_stats *s, enum ingest_outcome o)
{
    uint64_t n = 0;

    for (unsigned t = 0; t <= n_event_types; t++)
        n += counter_get(&s->events[t][o]);
    return n;
}

static void events_put_json(struct platform *p, struct buf *out)
{
    if (!p->ingest)
        return;
    const struct ingest_stats *s = ingest_stats(p->ingest);

    buf_put_lit(out, ",\"events\":{");
    for (unsigned o = 0; o < N_OUTCOMES; o++)
        buf_printf(out, "%s\"%s\":%" PRIu64, o > 0 ? "," : "", outcomes[o], sum_of(s, o));
    buf_printf(
        out, ",\"visibleP50Ms\":%" PRIu64 ",\"visibleP99Ms\":%" PRIu64 ",\"heldLanes\":%u}",
        histogram_quantile(&s->visible_us, 0.5) / 1000,
        histogram_quantile(&s->visible_us, 0.99) / 1000, ingest_lanes_stats(p->ingest)->n_open);
}

const struct platform_part platform_events = {.name = "events",
                                              .start = start_ingest,
                                              .stop = events_stop,
                                              .expose = events_expose,
                                              .put_json = events_put_json};
