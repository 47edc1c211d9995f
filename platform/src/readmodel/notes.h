// notes.h: which tenants had changes since the control database was last told.
#ifndef QUEEN_READMODEL_NOTES_H
#define QUEEN_READMODEL_NOTES_H

#include "base/span.h"
#include "pg/params.h"

struct note;
struct notes { // {0} is empty
    struct note *each;
    unsigned n;
};

void notes_add(struct notes *n, span tenant); // copied
// The parameter of note_changes.
void notes_put(const struct notes *n, struct pg_params *p);
void notes_move(struct notes *into, struct notes *from); // from is empty afterwards
void notes_deinit(struct notes *n);

#endif
