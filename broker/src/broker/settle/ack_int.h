// ack_int.h: entries of one partition and group, as the database wants them; for acks and
// transactions.
#ifndef QUEEN_BROKER_ACK_INT_H
#define QUEEN_BROKER_ACK_INT_H

#include "broker/broker_int.h"

struct ack_group {
    struct ack_entry *first, *last; // chained by next, in request order
    unsigned n;
    struct ack_entry **at; // the same by position, built when a row needs it
    span name;             // of the consumer group
    bool uniform;          // all completed under one lease (or none)
    bool has_lease;
    bool has_tries; // an entry has earlier tries
    uint8_t lease[16];
    struct arena *arena; // of the request; names go there
    bool named;
    // of a whole batch: see outstanding.c
    int64_t consumer, lane, ver;
    span queue, partition; // names
    bool done;             // answered: not sent again with its request
    struct queue *counted; // where its metrics go; NULL: not known (yet)
};

// Groups the entries by partition (and group name: names[i] for entry i, or names[0] for all).
// Entries whose partition can't exist are answered at once and left out.  In the arena.
struct ack_group *ack_groups_make(struct arena *a, struct ack_entry *entries, unsigned n,
                                  const span *names, bool name_each, unsigned *n_groups);
// The parameters of queen.settle from p_lane_id to p_entry_error.
void ack_groups_fill(struct pg_params *p, struct ack_group *const *groups, unsigned n);
// Those from p_entry_code to p_worker.
void ack_groups_fill_more(struct pg_params *p, struct ack_group *const *groups, unsigned n);
void ack_groups_fill_after(struct pg_params *p, struct ack_group *const *groups, unsigned n);
// p_entry_tries of queen.settle_tries.
void ack_groups_fill_tries(struct pg_params *p, struct ack_group *const *groups, unsigned n);
// Adds n results to the metrics of its queue.
void ack_group_count(struct broker *b, struct ack_group *g, span queue, bool ok, unsigned n);
// Does that row answer an entry of the group, or all of them?
bool ack_row_is_sound(const struct ack_group *g, const struct pg_reply *reply, unsigned row,
                      unsigned col);
// One row of queen.settle, whose columns start at col.
void ack_group_read(struct broker *b, struct ack_group *g, const struct pg_reply *reply,
                    unsigned row, unsigned col);
// The retry in that row; read after it.
void ack_group_read_retry(struct broker *b, struct ack_group *g, const struct pg_reply *reply,
                          unsigned row);

#endif
