// schedule_int.h: scheduled items as parameters; shared by schedule.c, push.c and
// transaction.c.
#ifndef QUEEN_BROKER_SCHEDULE_INT_H
#define QUEEN_BROKER_SCHEDULE_INT_H

#include "broker/broker_int.h"

// The parameters of queen.schedule_messages behind p_origin.
void schedule_fill(struct broker *b, struct push_item *const *items, unsigned n,
                   struct pg_params *p);

// A row of queen.schedule_messages about an item, by the columns where it stands: the item is
// scheduled, a duplicate, or goes again.
struct schedule_cols {
    unsigned status, id, due, wait_us;
};
bool schedule_row_is_sound(const struct pg_reply *reply, unsigned row,
                           const struct schedule_cols *cols);
void schedule_read_row(struct broker *b, struct push_item *it, const struct pg_reply *reply,
                       unsigned row, const struct schedule_cols *cols);
// Sets the timer to the earliest due time in such rows.
void schedule_expect_first(struct broker *b, const struct pg_reply *reply,
                           unsigned col_wait_us);

#endif
