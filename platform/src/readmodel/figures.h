// figures.h: what is counted about read models, per process; and per tenant and model what was
// last seen.
#ifndef QUEEN_READMODEL_FIGURES_H
#define QUEEN_READMODEL_FIGURES_H

#include "base/map.h"
#include "base/metric.h"
#include "readmodel/model.h"

enum { FIGURES_NAME_MAX = 64 };

struct figure { // of one model of one tenant
    char tenant[FIGURES_NAME_MAX];
    enum model model;
    int64_t stale_us; // since the oldest change that the last visit had not seen; 0: none
    int64_t refresh_ms, rows; // of the last refresh by this process; -1: none yet
    bool live;
    unsigned unknown_columns;
    UT_hash_handle hh; // by tenant and model
};

struct figures {
    struct counter visits, failed, refreshed, built, clean, busy, swap_retries, filled;
    struct counter checked, differing, abandoned, changes_told;
    struct histogram refresh_us[N_MODELS];
    unsigned n_visiting;
    struct figure *each;
};

// Made when it is not there.  Borrowed until figures_deinit().
struct figure *figures_of(struct figures *f, span tenant, enum model model);
void figures_deinit(struct figures *f);

#endif
