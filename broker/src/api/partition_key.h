// partition_key.h: maps a key chosen by the producer to one of a queue's fixed partitions.
//
// partition = fnv_partition(key, n), named in decimal (documented for other programs in
// docs/reference/protocol.md).  The number of partitions of a queue never changes, so it is
// remembered for a while: pushes without keys cost nothing, those with keys one small statement
// now and then.
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
