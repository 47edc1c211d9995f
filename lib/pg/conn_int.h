// conn_int.h: one connection; private to lib/pg.
//
//     conn_dial ──► conn_identify ──► ready ──► conn_send ──► answered ──► conn_send ...
//         │               │                         │             │
//         └───────────────┴──► broken ◄─────────────┴─────────────┘
//
// A connection carries one call at a time. After `broken`, or at any time, the pool calls
// conn_close(). `closed` is the last event; the memory is freed after it. No event is raised
// from inside conn_dial(), conn_send() or conn_close().
#ifndef QUEEN_PG_CONN_INT_H
#define QUEEN_PG_CONN_INT_H

#include <libpq-fe.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/attrs.h"
#include "pg/pool.h"
#include "pg/target_int.h"

struct pg_conn;
struct conn_poll;

struct conn_events {
    void (*ready)(struct pg_conn *c); // the dial succeeded
    // The call is finished; result (may be NULL) is borrowed. c->doomed: the connection must be
    // closed.
    void (*answered)(struct pg_conn *c, struct pg_call *call, int status,
                     const struct pg_reply *reply);
    // No call was in flight, or the dial failed; why is borrowed.
    void (*broken)(struct pg_conn *c, const char *why);
    void (*closed)(struct pg_conn *c);
};

enum conn_state { CONN_DIALING, CONN_IDLE, CONN_BUSY, CONN_CLOSED };

struct pg_conn {
    enum conn_state state;
    bool doomed; // must not be used again: broken, read-only, or its plans are stale
    void *owner; // the pool
    void (*on_notified)(void *ctx, span payload); // see struct pg_pool_conf; NULL: ignored
    void *notified_ctx;
    uint64_t idle_since_us;
    TAILQ_ENTRY(pg_conn) all, idle; // lists of the pool

    const struct conn_events *on;
    uv_loop_t *loop;
    PGconn *pg;
    uint64_t server;        // identifies its server; not pooled: start time, us since 1970
    char ident[2][8];       // of the guard behind a pooler: see identify.c
    bool has_reset;         // the second one is known
    struct conn_poll *poll; // polls the socket; NULL while there is none
    struct target *target;
    struct lookup lookup;
    bool looking_up;
    uv_timer_t timer; // of the dial
    unsigned n_handles;

    struct pg_call *call;
    PGresult *result;    // of the current call: the first failure, else the last result
    uint64_t received;   // bytes on the socket when the call was sent
    bool too_large;      // its result is larger than permitted
    bool piped;          // Execute is sent in one pipeline with other commands
    unsigned n_limit;    // number of leading results that belong to settings
    bool preparing;      // the next result is that of Prepare
    bool pooled;         // use unnamed statements only and leave no setting behind
    bool isolate;        // each transaction must set its isolation level
    bool other_server;   // the guard failed: the call was not run
    int64_t limit_ms;    // limit currently set in the session; 0: the initial one; -1: unknown
    unsigned n_results;  // received in this pipeline
    uint64_t *prepared;  // one bit per statement index
    unsigned n_prepared; // words
    char why[160];       // for conn_error()
};

struct conn_poll {
    uv_poll_t handle;
    struct pg_conn *conn;
    int fd, events;
};

// dial.c ---------------------------------------------------------------------------------

// target is borrowed until `closed`.
struct pg_conn *conn_dial(uv_loop_t *loop, struct target *target, unsigned timeout_ms,
                          const struct conn_events *on, void *owner);
// Polls for events (0: stop) and passes them to cb. Creates a new handle if libpq has changed
// its socket.
void conn_watch(struct pg_conn *c, int events, uv_poll_cb cb);
void conn_unwatch(struct pg_conn *c);                      // call before the socket is closed
void conn_dial_failed(struct pg_conn *c, const char *why); // raises `broken`; why is borrowed

// identify.c --------------------------------------------------------------------------------

// called by dial.c once connected; ends in conn_ready() or broken
void conn_identify(struct pg_conn *c);

// conn.c ---------------------------------------------------------------------------------

void conn_ready(struct pg_conn *c); // called by identify.c: takes over the socket
// 0: the call is in flight. Otherwise nothing was sent, c is doomed and the caller must finish
// the call.
MUST_USE int conn_send(struct pg_conn *c, struct pg_call *call);
const char *conn_error(struct pg_conn *c); // libpq's last error message as one line; borrowed
// Logs pg.unexpected_result, at most once a second.
void conn_log_unexpected(const char *statement, const char *why);
void conn_handle_gone(struct pg_conn *c); // one of c->n_handles is closed
void conn_close(struct pg_conn *c);       // the caller must finish c->call, if there is one

#endif
