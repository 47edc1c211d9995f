// claim_int.h: parts of a claim that ordered partitions and work queues share.
#ifndef QUEEN_BROKER_CLAIM_INT_H
#define QUEEN_BROKER_CLAIM_INT_H

#include "broker/settle/outstanding_int.h"

struct claim_flight {
    struct op_list pops;
    unsigned n_pops, n_targets;
    bool careful;
    bool refused;       // nothing was taken: it never left, or was rolled back
    uint64_t hand_over; // number of the push that it is part of; 0: none (hand_over.c)
    uint64_t left_us;
    struct consumer *targets[];
};

// Takes the pops, which have chosen their targets.
struct claim_flight *claim_flight_new(struct op_list *pops, unsigned n_pops);
void claim_fill(struct pg_params *p, const struct claim_flight *f); // of a fast claim
// Answers the pops and moves their consumers on.  Frees f, not the call that it was part of.
void claim_flight_end(struct call *c, struct claim_flight *f, int status,
                      const struct pg_reply *reply);

// How many messages a claim of c for this pop may take.
int32_t claim_batch(const struct consumer *c, const struct pop_op *pop);
// The answer of pop was written: adapts the number for the next claims of c.
void claim_note_length(struct consumer *c, const struct pop_op *pop);

enum claim_kind { CLAIM_FAST, CLAIM_CAREFULLY, CLAIM_OF_WORK };
// As many queued pops of the kind as one call may carry, in their order.  Returns their number.
unsigned claim_take_pops(struct broker *b, enum claim_kind kind, struct op_list *pops);
void claim_send(struct call *c, unsigned n_pops, pg_done_cb done);
void claim_landed(const struct call *c, unsigned n_pops);

// ---- claim_build.c ----
struct claim_build {
    struct broker *broker;
    struct pop_op *pop;
    const struct lane *lane; // of the last claim
    struct pop_run *runs;
    struct pop_claim *claims;
    unsigned n_runs;
    struct pop_result result;
    int64_t now_us; // of the database
};
struct segment_cols {
    unsigned first_seq, count, created_at, keys, body;
};
struct claim_build claim_build_begin(struct broker *b, struct pop_op *pop, unsigned n_runs,
                                     unsigned n_claims); // at most so many
void claim_build_claim(struct claim_build *build, const struct lane *lane,
                       const uint8_t *partition_id, int retries);
// The messages from start to stop, or what the segment in the row has of them.
void claim_build_run(struct claim_build *build, const struct pg_reply *reply, unsigned row,
                     struct segment_cols cols, int64_t start, int64_t stop);
// Renders a claim that is not empty, or gives its lease back if the client has left.
void claim_build_end(struct claim_build *build);

// ---- claim.c ----
void claim_end_pop(struct broker *b, struct pop_op *pop);
void claim_target_gone(struct broker *b, struct pop_op *pop); // of a claim that is over
// The call has failed: the pops of a consumer learn of it, then come the consumers, then the
// ends of the pops.
void claim_fail_target(struct broker *b, const struct consumer *c, struct pop_op *pop);
void claim_fail_consumer(struct broker *b, struct consumer *c);
void claim_fail_pop(struct broker *b, struct pop_op *pop, int status, bool refused);
// Another session has locked the consumer: try again soon, and less and less often.
void claim_busy(struct broker *b, struct consumer *c);
// The broker forgot the consumer during its claim.  Frees c, unless its number is being
// queried.
void claim_end_gone(struct broker *b, struct consumer *c);
// The queue or the group was deleted.  Frees c.
void claim_gone(struct broker *b, struct consumer *c);

#endif
