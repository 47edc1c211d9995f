// model_stats.h: statistics of read models: counters of this process, and the last state seen
// per tenant and model.
#ifndef QUEEN_READMODEL_MODEL_STATS_H
#define QUEEN_READMODEL_MODEL_STATS_H

#include "base/map.h"
#include "base/metric.h"
#include "readmodel/model.h"

enum { MODEL_STATS_NAME_MAX = 64 };

struct model_stat { // of one model of one tenant
    char tenant[MODEL_STATS_NAME_MAX];
    enum model model;
    int64_t stale_us; // age of the oldest change that the last visit had not seen; 0: none
    int64_t refresh_ms, rows; // of the last refresh by this process; -1: none yet
    bool live;
    unsigned unknown_columns;
    UT_hash_handle hh; // by tenant and model
};

struct model_stats {
    struct counter visits, failed, refreshed, built, clean, busy, swap_retries, filled;
    struct counter checked, differing, abandoned, changes_reported;
    struct histogram refresh_us[N_MODELS];
    unsigned n_visiting;
    struct model_stat *each;
};

// Finds or adds an entry.  Borrowed until model_stats_deinit().
struct model_stat *model_stats_get(struct model_stats *f, span tenant, enum model model);
void model_stats_deinit(struct model_stats *f);

#endif
