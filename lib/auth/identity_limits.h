// identity_limits.h: how much one identity may use: requests and bytes per second, connections,
// and bytes of stored messages.
//
// One table per process holds the state of every subject, shared by all loops without a lock on
// the path of requests. Requests and bytes are token buckets of one second: a subject that was
// idle may use a whole second's worth at once. A bucket is one number, the time at which it is
// full again, so that taking from it is one compare-and-swap.
//
//     limits_find (once per verified token) ──► limits_admit (each request) ──► limits_drop
//                                               limits_spend (each answer)
//
// Stored bytes are counted by the database for all processes. What this process has stored and
// not yet reported there is added, so that the limit holds at once where the sender pushes:
//
//     limits_stored_add (messages were stored) ──► limits_stored_reported (the database has
//     them) limits_stored_set (the sum of the database)
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
    uint64_t connections;
    uint64_t stored; // bytes of messages that are kept
};

enum { LIMITS_MAX_RATE = 1000 * 1000 * 1000 };
#define LIMITS_MAX_STORED UINT64_C(1000000000000000)

// "requests=100,bytes=1000000,connections=10,stored=5000000000", each at most once, in any
// order; "": no limit.
MUST_USE int limits_parse(span text, struct limits *l, struct fault *f);
static inline bool limits_are_none(const struct limits *l)
{
    return l->requests == 0 && l->bytes == 0 && l->connections == 0 && l->stored == 0;
}

enum limit_kind {
    LIMIT_NONE,
    LIMIT_REQUESTS,
    LIMIT_BYTES,
    LIMIT_CONNECTIONS,
    LIMIT_STORED,
    LIMIT_KINDS
};

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

// ---- stored bytes ----

// From now on the stored bytes of this subject are counted.
void limits_stored_count(struct limit_state *s);
bool limits_stored_is_full(const struct limit_state *s, const struct limits *l);
// Whether any subject of the table is counted: without one nothing below needs to be called.
bool limits_stored_any(struct limit_table *t);
// False: this subject is not counted.
bool limits_stored_add(struct limit_table *t, span subject, uint64_t bytes);
void limits_stored_reported(struct limit_table *t, span subject, uint64_t bytes);
void limits_stored_set(struct limit_table *t, span subject, uint64_t bytes);
// Calls cb for each counted subject, under the lock of the table.
void limits_stored_each(struct limit_table *t, void (*cb)(void *ctx, span subject), void *ctx);

#endif
