// write.h: one transaction in a tenant's database.
#ifndef QUEEN_INGEST_WRITE_H
#define QUEEN_INGEST_WRITE_H

#include "base/arena.h"
#include "ingest/fold.h"
#include "ingest/group.h"
#include "pg/pool.h"
#include "tenant/my_pool.h"

struct write {
    const char *queue; // of events: checkpoints are kept by it
    struct item **items;
    unsigned n;
    struct fold fold;
    struct arena arena;
    struct pg_params params;
    struct my_params my_params;
    union {
        struct pg_call pg;
        struct my_call my;
    } call;
    // status 0: either all was applied (n_duplicates is 0), or nothing, because the items
    // marked ITEM_DUPLICATE were applied before.  QE_PG_DATA: the data is to blame;
    // QE_PG_RETRY: the same may work at once; anything else: the database.  why is borrowed for
    // the call.
    void (*done)(struct write *w, int status, unsigned n_duplicates, span why);
    void *owner;
};

void write_begin(struct write *w); // then fold_add(); the params keep their memory
void write_pg(struct write *w, struct pg_pool *p, unsigned limit_ms);
void write_my(struct write *w, struct my_pool *p, unsigned limit_ms);
void write_end(struct write *w); // frees what the transaction took
void write_free(struct write *w);

// For write_pg.c and write_my.c: the partitions of the items and how far each goes.
struct write_mark {
    span partition;
    int64_t position_us;
};
unsigned write_marks(struct write *w, struct write_mark **marks); // in w->arena
// Calls w->done.  message is the database's, "" for none: any bytes of any length.
void write_done(struct write *w, int status, unsigned n_duplicates, const char *message);
// Marks those items; the number of them.
unsigned write_mark_duplicate(struct write *w, const uint8_t id[16]);

#endif
