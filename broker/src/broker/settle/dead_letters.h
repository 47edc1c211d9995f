// dead_letters.h: counts new dead letters and writes a line about them to the log.
#ifndef QUEEN_BROKER_DEAD_LETTERS_H
#define QUEEN_BROKER_DEAD_LETTERS_H

#include "broker/broker_int.h"

// n messages have become dead letters; txid and partition of one of them (SPAN_NONE: not
// known). At most one line per second and broker; the next one says how many had none.
void dead_letters_note(struct broker *b, span queue, span partition, span group, span txid,
                       const char *reason, unsigned n);
// Those among the results of acknowledgements; groups[i] of entry i, or groups[0] for all.
void dead_letters_of(struct broker *b, const struct ack_entry *entries, unsigned n,
                     const span *groups, bool group_each);

#endif
