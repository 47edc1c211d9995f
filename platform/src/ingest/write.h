// write.h: one transaction in a tenant's database.
#ifndef QUEEN_INGEST_WRITE_H
#define QUEEN_INGEST_WRITE_H

#include "base/arena.h"
#include "ingest/bundle.h"
#include "ingest/fold.h"
#include "pg/pool.h"
#include "tenant/my_pool.h"

// A partition of the items with its last position.
struct write_mark {
    span partition;
    int64_t position_us; // 0: the checkpoint stays
    int64_t seen_us;     // the last stamp that was committed; 0: unknown
};

// The last committed stamp of a partition.  The checkpoint in the database carries this stamp
// or a later one, unless the database was restored or is a standby that lagged.
struct write_seen {
    char *partition;
    int64_t stamp_us;
    bool in_doubt; // see write_doubt_stamps()
};

struct write {
    const char *queue; // event queue; the key of the checkpoints
    struct item **items;
    unsigned n;
    struct write_mark *marks; // in arena, from write_pg() or write_my() to write_end()
    unsigned n_marks;
    int64_t stamp_us; // of this transaction; it increases
    struct write_seen *seen;
    unsigned n_seen;
    struct fold fold;
    struct arena arena;
    struct pg_params params;
    struct my_params my_params;
    union {
        struct pg_call pg;
        struct my_call my;
    } call;
    bool is_unique_violation; // the cause of QE_PG_RETRY, for done
    // With status 0, either everything was applied (n_duplicates is 0), or nothing was, because
    // the items now marked ITEM_DUPLICATE had been applied earlier.  QE_PG_DATA: the data
    // caused the error. QE_PG_RETRY: the same transaction may succeed immediately.
    // QE_CONFLICT: the database lost what it had committed; nothing was applied.  Any other
    // status: the database failed.  why is borrowed for the call.
    void (*done)(struct write *w, int status, unsigned n_duplicates, span why);
    void *owner;
};

void write_begin(struct write *w); // followed by fold_add(); the params keep their memory
void write_pg(struct write *w, struct pg_pool *p, unsigned limit_ms);
void write_my(struct write *w, struct my_pool *p, unsigned limit_ms);
void write_end(struct write *w); // frees the memory of the transaction
void write_free(struct write *w);

// Lost events of this partition are about to be replayed, so its checkpoint is not compared
// until the next transaction is committed.
void write_forget(struct write *w, span partition);

// Around loading the saved stamps, if the name may be that of another tenant by now: forgets
// the stamps of partitions for which none was loaded.
void write_doubt_stamps(struct write *w);
void write_forget_doubted(struct write *w);

// This stamp of the partition was committed, by this process or an earlier one.
void write_note_stamp(struct write *w, span partition, int64_t stamp_us);

// For write_pg.c and write_my.c.
void write_make_marks(struct write *w); // and the stamp
// True if sqlstate means that the database lost committed events.
bool write_is_behind(const struct write *w, const char *sqlstate);
// Calls w->done.  message is the text of the database, "" for none: any bytes of any length.
void write_done(struct write *w, int status, unsigned n_duplicates, const char *message);
// Marks the items with this id and returns their number.
unsigned write_mark_duplicate(struct write *w, const uint8_t id[16]);

#endif
