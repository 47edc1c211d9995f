// schedule_int.h: scheduled items as parameters; shared by schedule.c and transaction.c.
#ifndef QUEEN_BROKER_SCHEDULE_INT_H
#define QUEEN_BROKER_SCHEDULE_INT_H

#include "broker/broker_int.h"

// The parameters of queen.schedule_messages behind p_origin.
void schedule_fill(struct broker *b, struct push_item *const *items, unsigned n,
                   struct pg_params *p);
// Those of the call make_slices, for the times of these items.
void slices_fill(struct push_item *const *items, unsigned n, struct pg_params *p);

#endif
