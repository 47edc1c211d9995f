// partition_key.h: a key of the producer's choice into one of a queue's fixed partitions.
//
// partition = fnv_partition(key, n), named in decimal (docs/reference/protocol.md says so to
// other programs).  How many a queue has never changes while it lives, so it is remembered for
// a while: pushes without keys pay nothing, those with keys one small statement now and then.
#ifndef QUEEN_API_PARTITION_KEY_H
#define QUEEN_API_PARTITION_KEY_H

#include "broker/broker.h"
#include "http/req.h"

struct api;

// Replaces the keys of items that are by_key, then calls go(ctx), perhaps at once.  Or answers
// req: 400 for a queue without a fixed set, else the error of the database.
void partition_keys_resolve(struct http_req *req, struct push_item *items, unsigned n,
                            void (*go)(void *ctx), void *ctx);
void partition_keys_forget(struct api *api); // all that is remembered

#endif
