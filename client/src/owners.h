// owners.h: the requests about owners of partitions (docs/guide/processor.md).
#ifndef QUEEN_CLIENT_OWNERS_H
#define QUEEN_CLIENT_OWNERS_H

#include "base/arena.h"
#include "base/buf.h"
#include "queen/client.h"

struct owner_record {
    const char *partition, *partition_id; // the id may be NULL
    const char *owner, *wanted_by;        // NULL: none
    int64_t epoch, lag;
    int64_t free_ms; // how long it has had no owner; -1: it has one, or the server is older
    bool expired;
};

// In the arena of the caller.
struct owner_list {
    struct owner_record *records;
    unsigned n;
};

// 0, or QUEEN_E_PROTOCOL.
MUST_USE int owners_read(const struct queen_response *r, struct arena *a,
                         struct owner_list *out, struct queen_error *err);

// Of claim and checkpoint: one per requested partition, in order.
struct owner_result {
    const char *partition, *error; // error NULL: success
    const char *partition_id;      // of a claim
    int64_t epoch;
};
MUST_USE int owners_read_results(const struct queen_response *r, struct arena *a,
                                 struct owner_result **results, unsigned *n,
                                 struct queen_error *err);
// Names of the partitions that a renewal reports as lost.
MUST_USE int owners_read_lost(const struct queen_response *r, struct arena *a,
                              const char ***names, unsigned *n, struct queen_error *err);

// ---- bodies: {"owner": ..., "partitions": [{"partition", "epoch"}, ...], ...} ----

void owners_begin(struct buf *body, const char *owner);
// transaction_id NULL: not a checkpoint.
void owners_add(struct buf *body, const char *partition, int64_t epoch,
                const char *transaction_id, bool before);
void owners_end(struct buf *body, unsigned expiry_s, bool steal, bool manual);

#endif
