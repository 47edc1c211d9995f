// fold.h: merges the events of one transaction into rows.
//
// Of the events about one row the newest by event time wins; of two with the same time, the
// later one.  Wallet adjustments are summed; a transaction contains only adjustments of one
// direction per wallet.  Patches and log events are appended.  The database writes records
// first, then patches and adjustments, so a record must not follow a patch or an adjustment of
// its row.  A customer.deleted shares a transaction only with other deletions, so that it
// deletes the rows before it and not those after it.  fold_add() returns false for an event
// that must start the next transaction.
#ifndef QUEEN_INGEST_FOLD_H
#define QUEEN_INGEST_FOLD_H

#include <stdbool.h>

#include "base/arena.h"
#include "base/buf.h"
#include "ingest/event.h"

struct fold_row;
struct fold_id;

struct fold {
    struct arena *arena; // borrowed
    struct fold_row *first[N_TABLES], **last[N_TABLES];
    struct fold_row *rows[N_TABLES]; // by row id
    struct fold_id *events, *deleted;
    unsigned n_events, n_deleted;
};

void fold_init(struct fold *f, struct arena *a);
void fold_deinit(struct fold *f);

// e is borrowed for the life of the fold.  Returns false if the event must go into another
// transaction.
bool fold_add(struct fold *f, const struct event *e);

bool fold_has(const struct fold *f, enum event_table table);
void fold_put_rows(const struct fold *f, enum event_table table, struct buf *out); // JSON array

// Iterates over the customers of the rows of a table, with repetitions.  Start with
// fold_rows(); returns NULL at the end.
const struct fold_row *fold_rows(const struct fold *f, enum event_table table);
const uint8_t *fold_next_customer(const struct fold_row **at);

// Iterates over ids in order of arrival, each once.
const uint8_t *fold_next(const struct fold_id **at);
static inline const struct fold_id *fold_events(const struct fold *f) { return f->events; }
static inline const struct fold_id *fold_deleted(const struct fold *f) { return f->deleted; }

#endif
