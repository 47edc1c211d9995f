// queue_set.h: a set of queue names, by their hashes.
//
// Names are compared by 64 bits: two that collide are both held back for a moment.
#ifndef QUEEN_BROKER_QUEUE_SET_H
#define QUEEN_BROKER_QUEUE_SET_H

#include <stdbool.h>

#include "base/span.h"

struct queue_set;

struct queue_set *queue_set_new(void);
void queue_set_free(struct queue_set *s); // s may be NULL
void queue_set_add(struct queue_set *s, span queue);
bool queue_set_has(const struct queue_set *s, span queue);

#endif
