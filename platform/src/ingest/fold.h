// fold.h: the events of one transaction, folded into rows.
//
// Later events about the same row win, adjustments of a wallet add up (those in one direction
// share a transaction), logs are appended to.  A
// customer.deleted does not share a transaction with other kinds of events, so that what came
// before it is deleted and what comes after is not: fold_add() refuses, and the caller begins
// another.
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
    struct fold_row *rows[N_TABLES]; // by id
    struct fold_id *events, *deleted;
    unsigned n_events, n_deleted;
};

void fold_init(struct fold *f, struct arena *a);
void fold_deinit(struct fold *f);

// e is borrowed as long as the fold.  false: it belongs into another transaction (the same
// event is here already, a deletion meets something else, or an adjustment the opposite one).
bool fold_add(struct fold *f, const struct event *e);

bool fold_has(const struct fold *f, enum event_table table);
void fold_put_rows(const struct fold *f, enum event_table table, struct buf *out); // JSON array

// Whose the rows of a table are, one after the other, some more than once: begin with
// fold_rows(); NULL at the end.
const struct fold_row *fold_rows(const struct fold *f, enum event_table table);
const uint8_t *fold_next_customer(const struct fold_row **at);

// Ids in the order they came; each once.
const uint8_t *fold_next(const struct fold_id **at);
static inline const struct fold_id *fold_events(const struct fold *f) { return f->events; }
static inline const struct fold_id *fold_deleted(const struct fold *f) { return f->deleted; }

#endif
