// conn_int.h: one connection; for pg/ only.
//
//      conn_dial ──► conn_identify ──► ready ──► conn_send ──► answered ──► conn_send ...
//          │             │                        │             │
//          └─────────────┴──► broken ◄────────────┴─────────────┘
//
// A connection carries one call at a time.  After `broken`, or at any time, the pool calls
// conn_close; `closed` is the last event, after which the memory is gone.  Events
// never come from inside conn_dial, conn_send or conn_close.
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
    // The call is over; result (may be NULL) is borrowed.  c->doomed: close it, it is of no
    // use.
    void (*answered)(struct pg_conn *c, struct pg_call *call, int status,
                     const struct pg_reply *reply);
    // Nothing was under way, or the dial failed; why is borrowed.
    void (*broken)(struct pg_conn *c, const char *why);
    void (*closed)(struct pg_conn *c);
};

enum conn_state { CONN_DIALING, CONN_IDLE, CONN_BUSY, CONN_CLOSED };

struct pg_conn {
    enum conn_state state;
    bool doomed; // must not be used again: broken, read-only, or its plans are stale
    void *owner; // the pool
    uint64_t idle_since_us;
    TAILQ_ENTRY(pg_conn) all, idle; // the pool's lists

    const struct conn_events *on;
    uv_loop_t *loop;
    PGconn *pg;
    uint64_t server;        // when its server started, microseconds since 1970
    struct conn_poll *poll; // watches the socket; NULL while there is none
    const struct target *target;
    struct lookup lookup;
    bool looking_up;
    uv_timer_t timer; // of the dial
    unsigned n_handles;

    struct pg_call *call;
    PGresult *result;    // of the call under way: the first failure, else the last result
    bool piped;          // Execute shares its round trip with what goes before it
    unsigned n_limit;    // results of what sets the time limit of this call, which is first
    bool preparing;      // the next is Prepare
    bool no_prepare;     // unnamed statements only, and nothing stays set
    int64_t limit_ms;    // that the server holds us to; 0: as it began; -1: not known
    unsigned n_results;  // seen in this pipeline
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
struct pg_conn *conn_dial(uv_loop_t *loop, const struct target *target, unsigned timeout_ms,
                          const struct conn_events *on, void *owner);
// Watches for events (0: stop) and sends them to cb; re-made when libpq changed its socket.
void conn_watch(struct pg_conn *c, int events, uv_poll_cb cb);
void conn_unwatch(struct pg_conn *c);                      // before the socket is closed
void conn_dial_failed(struct pg_conn *c, const char *why); // ends in `broken`; why is borrowed

// identify.c --------------------------------------------------------------------------------

void conn_identify(struct pg_conn *c); // from dial.c: connected; ends in conn_ready() or broken

// conn.c ---------------------------------------------------------------------------------

void conn_ready(struct pg_conn *c); // from identify.c: take over the socket
// 0: the call is under way.  Otherwise nothing was sent, c is doomed and the caller tells the
// call.
MUST_USE int conn_send(struct pg_conn *c, struct pg_call *call);
const char *conn_error(struct pg_conn *c); // libpq's last words, one line; borrowed
void conn_handle_gone(struct pg_conn *c);  // one of c->n_handles is closed
void conn_close(struct pg_conn *c);        // c->call, if any, is the caller's to tell

#endif
