// The part that keeps read models fresh, and its metrics.
#include <inttypes.h>
#include <stdio.h>

#include "base/id.h"
#include "http/prom_text.h"
#include "platform/platform_int.h"
#include "platform/settings.h"
#include "readmodel/readmodel.h"

static void start_readmodel(struct platform *p)
{
    struct readmodel_conf conf = settings_readmodel(p->conf);
    uint64_t start_id; // a claim belongs to one start, also with a configured id
    char who[128];

    id_random(&start_id, sizeof start_id);
    snprintf(who, sizeof(who), "%.80s/%016" PRIx64, p->id, start_id);
    conf.who = who;
    p->readmodel = readmodel_open(&p->loop, p->control, p->pools, &conf);
}

static void on_refresh_part_closed(void *ctx)
{
    struct platform *p = ctx;

    p->readmodel = NULL;
    platform_part_stopped(p);
}

// Ingestion stops first: the changes of its last transactions must be reported, too.
static void refresh_part_stop(struct platform *p)
{
    if (p->ingest)
        p->readmodel_waits = true;
    else
        readmodel_close(p->readmodel, on_refresh_part_closed, p);
}

void platform_ingest_stopped(struct platform *p)
{
    if (p->readmodel_waits)
        refresh_part_stop(p);
}

// The tenant's database determines which models are affected; checking costs one statement.
void platform_data_changed(struct platform *p, span tenant)
{
    if (p->readmodel)
        readmodel_changed(p->readmodel, tenant);
}

static const char *labels_of(const struct model_stat *f, struct buf *scratch)
{
    span model = model_name(f->model);

    buf_reset(scratch);
    buf_printf(scratch, "tenant=\"%s\",model=\"" SPAN_FMT "\"", f->tenant, SPAN_ARG(model));
    buf_putc(scratch, '\0');
    return scratch->ptr;
}

static void expose_each(const struct model_stats *f, struct buf *out)
{
    struct buf scratch = {0};
    const struct model_stat *each;

    prom_family(out, "queen_platform_read_model_stale_seconds", "gauge",
                "age of the oldest change that is not in the view; 0 for live models");
    for (each = f->each; each; each = each->hh.next)
        prom_seconds(out, "queen_platform_read_model_stale_seconds", labels_of(each, &scratch),
                     (double)each->stale_us / 1e6);
    prom_family(out, "queen_platform_read_model_refresh_seconds", "gauge",
                "duration of the last refresh by this process");
    for (each = f->each; each; each = each->hh.next)
        if (each->refresh_ms >= 0)
            prom_seconds(out, "queen_platform_read_model_refresh_seconds",
                         labels_of(each, &scratch), (double)each->refresh_ms / 1e3);
    prom_family(out, "queen_platform_read_model_rows", "gauge", "rows after the last refresh");
    for (each = f->each; each; each = each->hh.next)
        if (each->rows >= 0)
            prom_u64(out, "queen_platform_read_model_rows", labels_of(each, &scratch),
                     (uint64_t)each->rows);
    prom_family(out, "queen_platform_read_model_unknown_columns", "gauge",
                "columns of the write model that no read model contains");
    for (each = f->each; each; each = each->hh.next)
        if (each->unknown_columns > 0)
            prom_u64(out, "queen_platform_read_model_unknown_columns",
                     labels_of(each, &scratch), each->unknown_columns);
    buf_free(&scratch);
}

static void refresh_part_expose(struct platform *p, struct buf *out)
{
    static const char duration[] = "queen_platform_refresh_duration_seconds";

    if (!p->readmodel)
        return;
    const struct model_stats *f = readmodel_stats(p->readmodel);
#define COUNTER(name, help, v) \
    prom_single(out, "queen_platform_" name "_total", "counter", help, counter_get(&f->v))
    COUNTER("read_model_visits", "visits of read models", visits);
    COUNTER("read_model_visits_failed", "visits that failed", failed);
    COUNTER("refreshes", "views refreshed", refreshed);
    COUNTER("view_builds", "views rebuilt and swapped", built);
    COUNTER("refreshes_clean", "refreshes that found no changes", clean);
    COUNTER("refreshes_busy", "refreshes delayed by another session", busy);
    COUNTER("view_swap_retries", "swaps delayed by readers", swap_retries);
    COUNTER("live_chunks", "chunks of live tables filled", filled);
    COUNTER("live_rows_checked", "rows of live tables compared", checked);
    COUNTER("live_rows_differing", "rows that differed and were repaired", differing);
    COUNTER("refreshes_abandoned", "visits whose process stopped renewing its claim",
            abandoned);
#undef COUNTER
    prom_single(out, "queen_platform_read_model_visiting", "gauge", "visits in progress",
                f->n_visiting);
    prom_family(out, duration, "histogram", "duration of refreshes");
    prom_histogram(out, duration, "model=\"customer_attributes\"",
                   &f->refresh_us[MODEL_ATTRIBUTES], 1e-6);
    prom_histogram(out, duration, "model=\"customer_transactions\"",
                   &f->refresh_us[MODEL_TRANSACTIONS], 1e-6);
    expose_each(f, out);
}

static void refresh_part_put_json(struct platform *p, struct buf *out)
{
    if (!p->readmodel)
        return;
    const struct model_stats *f = readmodel_stats(p->readmodel);
    buf_printf(out,
               ",\"readModels\":{\"visiting\":%u,\"visits\":%llu,\"failed\":%llu,"
               "\"refreshed\":%llu,\"built\":%llu,\"clean\":%llu,\"abandoned\":%llu,"
               "\"checkedRows\":%llu,\"differingRows\":%llu}",
               f->n_visiting, (unsigned long long)counter_get(&f->visits),
               (unsigned long long)counter_get(&f->failed),
               (unsigned long long)counter_get(&f->refreshed),
               (unsigned long long)counter_get(&f->built),
               (unsigned long long)counter_get(&f->clean),
               (unsigned long long)counter_get(&f->abandoned),
               (unsigned long long)counter_get(&f->checked),
               (unsigned long long)counter_get(&f->differing));
}

const struct platform_part platform_readmodel_part = {.name = "readmodel",
                                                      .start = start_readmodel,
                                                      .stop = refresh_part_stop,
                                                      .expose = refresh_part_expose,
                                                      .put_json = refresh_part_put_json};
