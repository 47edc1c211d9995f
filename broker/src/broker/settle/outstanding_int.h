// outstanding_int.h: acknowledgements of whole batches; see outstanding.c.
#ifndef QUEEN_BROKER_OUTSTANDING_INT_H
#define QUEEN_BROKER_OUTSTANDING_INT_H

#include "broker/settle/ack_int.h"

// The messages of c under this lease: added while it is CLAIMING, dropped when it leaves
// LEASED.
void outstanding_add(struct broker *b, struct consumer *c, const uint8_t lease[16],
                     const struct pop_claim *claim);
void outstanding_drop(struct broker *b, struct consumer *c);

// true: each group is the whole batch of its lease; they are ready for outstanding_fill().
bool outstanding_match(struct broker *b, struct ack_group *groups, unsigned n);
// The parameters of queen.finish behind p_origin.
void outstanding_fill(struct broker *b, struct pg_params *p, struct ack_group *const *groups,
                      unsigned n);
// The rows of queen.finish: groups that were finished are marked done.  Returns 0 or
// QE_PG_SHAPE.
MUST_USE int outstanding_read(struct broker *b, struct ack_group *const *groups, unsigned n,
                              const struct pg_reply *reply);

#endif
