// pool.h: the PostgreSQL connections of one loop.
//
//     pg_pool_exec ──► (queued) ──► a connection ──► call->done
//
// Connections are opened on demand, up to a limit, and closed again after being idle for long.
// All work is non-blocking (libpq + uv_poll). When a connection breaks, the call in flight on
// it fails with QE_PG_GONE (outcome unknown) and the connection is reopened in the background
// with jittered back-off. Calls that were not sent yet move to another connection, or fail
// with QE_PG_AWAY once the outage is confirmed.
//
// State that a caller remembers about one server may be wrong for the next, even if that is the
// same server after a crash: a promoted standby may lack its last commits, a restored one all
// since the backup. When a connection is to another server, or all connections were lost, the
// pool closes the connections to the previous server, calls on_new_server, and fails queued
// calls that carry numbers of the previous server (QE_PG_RETRY).
#ifndef QUEEN_PG_POOL_H
#define QUEEN_PG_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/err.h"
#include "base/metric.h"
#include "base/span.h"
#include "pg/conninfo.h"
#include "pg/params.h"
#include "pg/reply.h"

struct pg_pool;
struct pg_call;

// One SQL statement. Its text is in broker/sql/TOPIC/statements.sql and embedded at build time
// (tools/embed_sql.py writes pg/sql.gen.h and .c: `extern const struct pg_statement
// pg_stmt_NAME;`). A text built at run time is a statement, too: with the index PG_UNPREPARED
// it is sent unnamed each time, and like params it is borrowed until done.
struct pg_statement {
    const char *name; // also the name it is prepared under
    const char *text;
    unsigned index; // dense, for the "is prepared" bits of each connection
    // The columns of its result: see reply_check() in reply_shape.c. NULL: the caller checks.
    const char *returns;
};
enum { PG_UNPREPARED = INT32_MAX };

// Called exactly once, never from inside pg_pool_exec(). status is 0 or a code of err.h. reply
// is borrowed until the callback returns and never NULL (on failure it has no rows but may
// carry SQLSTATE and message).
typedef void (*pg_done_cb)(struct pg_call *call, int status, const struct pg_reply *reply);

// Lives in the caller's memory until done. params (NULL: none) are borrowed until done, since a
// call may wait for a connection. done may free the call, pass it to pg_pool_exec() again, or
// close the pool.
struct pg_call {
    const struct pg_statement *statement;
    const struct pg_params *params;
    pg_done_cb done;
    void *owner;          // for done
    unsigned deadline_ms; // 0: that of the pool. May be changed until done
    // The server cancels this call after this time (QE_PG_RETRY), whatever the session's
    // statement_timeout is, and within seconds after this process ends; 0: the session's
    // limit. Costs no round trip.
    unsigned statement_timeout_ms;
    bool of_server; // its parameters hold numbers or positions obtained from the server
    // Overtakes all queued calls. If all connections are busy, it gets one beyond max_conns,
    // which is closed afterwards. For one call at a time.
    bool urgent;

    STAILQ_ENTRY(pg_call) link; // private to the pool from here on
    uint64_t queued_us, sent_us;
    bool sent;   // may be read in done: it was sent
    int refusal; // status for done if it was never sent
};

struct pg_pool_stats { // read from other threads with relaxed loads
    struct counter opened, broken, calls, failed;
    _Atomic unsigned n_open, n_busy, n_queued;
    _Atomic bool up; // a connection works
};

struct pg_pool_conf {
    // Another server, or all connections were lost: ctx (of pg_pool_open) must discard
    // remembered state. May use the pool, must not close it. NULL: no state is remembered.
    void (*on_new_server)(void *ctx);
    // A notification for a channel that a call has subscribed to with LISTEN; payload is
    // borrowed. Subscriptions end with their connection, so this is for a pool of one
    // connection. Must not close the pool. NULL: ignored.
    void (*on_notified)(void *ctx, span payload);
    const char *conninfo; // keyword=value string; copied
    unsigned max_conns;   // opened on demand
    unsigned keep_conns;  // kept open when idle
    unsigned connect_timeout_ms;
    unsigned deadline_ms;   // a call without a result for this long: drop the connection
    unsigned idle_close_ms; // surplus connections are closed after this
    // Over TCP: drop the connection when a call receives more; 0: never.
    size_t max_result_bytes;
    bool paused; // no connection is opened before pg_pool_resume()
    enum pg_pooler pooler;
    struct pg_pool_stats *stats; // borrowed for longer than the pool lives; NULL: its own
};

// conf is copied. on_state (may be NULL) is called when the database becomes unavailable or
// available.
struct pg_pool *pg_pool_open(uv_loop_t *loop, const struct pg_pool_conf *conf,
                             void (*on_state)(void *ctx, bool up), void *ctx);
// For a pool that was opened paused, once: the database can be used. Until then calls wait for
// a second, later ones fail at once (QE_PG_AWAY).
void pg_pool_resume(struct pg_pool *p);
void pg_pool_exec(struct pg_pool *p,
                  struct pg_call *call); // cannot fail: done receives every failure
// True if a new call would be sent at once (a connection is idle).
bool pg_pool_has_idle(const struct pg_pool *p);
bool pg_pool_is_full(const struct pg_pool *p);      // all permitted connections are up and busy
uint64_t pg_pool_heard_us(const struct pg_pool *p); // when the database last sent a result
// Since when calls are in flight without any result; 0: none is in flight.
uint64_t pg_pool_silent_since_us(const struct pg_pool *p);
// The database seems to hang: limits all deadlines to ms. 0: restores the configured ones.
void pg_pool_hurry(struct pg_pool *p, unsigned ms);
uint64_t pg_pool_server(const struct pg_pool *p); // identifies the server; 0: none yet
// Connections are to a transaction pooler; known once one has been opened.
bool pg_pool_is_pooled(const struct pg_pool *p);
const char *
pg_pool_error(const struct pg_pool *p); // error of the last connection that failed; "": none
const struct pg_pool_stats *pg_pool_stats(const struct pg_pool *p);
// Fails queued calls with QE_STOPPING, lets sent calls finish, then closes and frees the pool.
void pg_pool_close(struct pg_pool *p, void (*closed)(void *ctx), void *ctx);

#endif
