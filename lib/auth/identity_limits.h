// identity_limits.h: how much one identity may use: requests and bytes per second, and
// connections.
//
// One table per process holds the state of every subject, shared by all loops without a lock on
// the path of requests. Requests and bytes are token buckets of one second: a subject that was
// idle may use a whole second's worth at once. A bucket is one number, the time at which it is
// full again, so that taking from it is one compare-and-swap.
//
//     limits_find (once per verified token) ──► limits_admit (each request) ──► limits_drop
//                                               limits_spend (each answer)
#ifndef QUEEN_AUTH_IDENTITY_LIMITS_H
#define QUEEN_AUTH_IDENTITY_LIMITS_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

struct limits {               // 0: no limit
    uint64_t requests, bytes; // per second
    unsigned connections;
};

enum { LIMITS_MAX_RATE = 1000 * 1000 * 1000 };

// "requests=100,bytes=1000000,connections=10", each at most once, in any order; "": no limit.
MUST_USE int limits_parse(span text, struct limits *l, struct fault *f);
static inline bool limits_are_none(const struct limits *l)
{
    return l->requests == 0 && l->bytes == 0 && l->connections == 0;
}

enum limit_kind { LIMIT_NONE, LIMIT_REQUESTS, LIMIT_BYTES, LIMIT_CONNECTIONS, LIMIT_KINDS };

struct limit_table;
struct limit_state; // of one subject

struct limit_table *limits_new(void);
void limits_free(struct limit_table *t); // t may be NULL; after all connections are closed

// The state of a subject, made if there is none; given: limits_drop(). A state whose buckets
// are not full, or that has connections, stays also without a user, so that a client gains
// nothing by making the server forget it.
struct limit_state *limits_find(struct limit_table *t, span subject, uint64_t now_us);
void limits_drop(struct limit_state *s); // s may be NULL

// LIMIT_NONE: admitted, and one request is taken. Otherwise *wait_s is the time to wait.
enum limit_kind limits_admit(struct limit_state *s, const struct limits *l, uint64_t now_us,
                             unsigned *wait_s);
// The same without taking anything.
enum limit_kind limits_look(const struct limit_state *s, const struct limits *l,
                            uint64_t now_us, unsigned *wait_s);
// Bytes are counted when they are known. A bucket may be overdrawn by one request and its
// answer; the next requests wait until it has recovered.
void limits_spend(struct limit_state *s, const struct limits *l, uint64_t bytes,
                  uint64_t now_us);
_Atomic unsigned *limits_connections(struct limit_state *s);

#endif
