// transaction_int.h: a transaction under way, shared by transaction.c (asking) and
// transaction_reply.c (answering).
#ifndef QUEEN_API_TRANSACTION_INT_H
#define QUEEN_API_TRANSACTION_INT_H

#include "api/api_int.h"

enum { STEP_UNKNOWN = TX_ACK + 1 }; // a tx_step.kind of ours: an operation of no known type

// In the request's arena.
struct tx {
    struct http_req *req;
    struct tx_op op;
    uint8_t id[16]; // of the answer

    // All steps of the request, flattened, in request order; ends with the step that made us
    // refuse.
    struct tx_step *steps;
    unsigned n_steps;
    unsigned n_operations;
    bool refused; // before the call to the database
    span why, unknown_type, bad_status;

    unsigned cap_steps, cap_items, cap_entries, cap_groups, cap_required;
};

// Answers 200: committed, or rolled back (refused by us, or failed in the database).
void tx_reply(struct tx *t, bool committed);

#endif
