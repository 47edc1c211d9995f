// pop_int.h: a pop under way, shared by pop.c (asking) and pop_render.c (answering).
#ifndef QUEEN_API_POP_INT_H
#define QUEEN_API_POP_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "broker/broker.h"
#include "http/req.h"

enum { POP_PLAIN, POP_EVENT, POP_EVENTS }; // one CloudEvent, or a batch of them

// Of a pop that names its owner; see pop_fence.c.
struct pop;
struct pop_fence {
    span owner;
    int64_t epoch;
    struct pop *pop;
    struct custom_op op;
    void (*looked)(struct pop *p, bool is_owner);
};
// Reads the parameters; false: they are wrong and the request is answered.
bool pop_fence_read(struct pop *p);
void pop_fence_look(struct pop *p, void (*looked)(struct pop *p, bool is_owner));

// In the request's arena.  Below the line: written by pop_render(), on the home's thread.
struct pop {
    struct http_req *req;
    struct pop_op op;
    uint8_t as;
    bool is_early;           // it came before the schema was in place, and does not ask to wait
    struct pop_fence *fence; // NULL: it names no owner

    uint8_t lease[16];
    bool has_lease;
    struct pop_aside *aside;   // messages that cannot be read; NULL, as nearly always: none
    bool links_wanted;         // set before: this server records traces
    struct trace_links *links; // to the senders of the messages; NULL: none
};

// pop_aside.c.  Add is for renderers: n messages of the lane from sequence `first` on are not
// in the answer.  Send makes dead letters of them, then calls done.
void pop_aside_add(struct pop *p, int64_t lane, int64_t first, unsigned n);
void pop_aside_send(struct pop *p, void (*done)(struct pop *p));
void pop_aside_free(struct pop *p);

// pop_op.render of a pop inside a struct pop.
void pop_render(struct pop_op *op, const struct pop_result *result);
void pop_render_events(struct pop_op *op, const struct pop_result *result);

#endif
