// pool.h: PostgreSQL connections of one loop.
//
//      pg_pool_exec ──► (queued) ──► a connection ──► call->done
//
// Connections are opened as load asks for them, up to a limit, and closed again when
// idle for long.  All work is non-blocking (libpq + uv_poll).  A connection that breaks fails
// the calls it carried with QE_PG_GONE (outcome unknown) and is reopened in the background with
// jittered back-off; calls that were not sent yet go to another connection, or fail with
// QE_PG_AWAY once the outage is known.
//
// What a caller remembers of one server may be wrong for the next, even if that is the same one
// after a crash: a promoted standby may lack its last commits, a restored one all since the
// backup.  When a connection is to another server, or all connections were lost, the pool
// closes connections to the one before, tells on_new_server, and refuses (QE_PG_RETRY) queued
// calls that carry numbers of the one before.
#ifndef QUEEN_PG_POOL_H
#define QUEEN_PG_POOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/err.h"
#include "base/metric.h"
#include "base/span.h"
#include "pg/params.h"
#include "pg/reply.h"

struct pg_pool;
struct pg_call;

// One SQL call: the text lives in broker/sql/calls/NAME.sql and is embedded at build time
// (tools/embed_sql.py writes pg/sql.gen.h and .c: `extern const struct pg_statement
// pg_stmt_NAME;`).  A text that is made at run time is a statement, too: with the index
// PG_UNPREPARED it is sent unnamed each time, and like params it is borrowed until done.
struct pg_statement {
    const char *name; // also the name it is prepared under
    const char *text;
    unsigned index; // dense, for per-connection "is prepared" bits
    // The columns of its result: see reply_check() in reply.c.  NULL: the caller checks.
    const char *returns;
};
enum { PG_UNPREPARED = INT32_MAX };

// Called exactly once, never from inside pg_pool_exec().  status is 0 or a code of
// err.h; reply is borrowed until the return and never NULL (on failure it has no rows but may
// carry SQLSTATE and message).
typedef void (*pg_done_cb)(struct pg_call *call, int status, const struct pg_reply *reply);

// Lives in the caller's memory until done.  params (NULL: none) are borrowed until done, since
// a call may wait for its connection.  done may free the call, give it to pg_pool_exec() again,
// or close the pool.
struct pg_call {
    const struct pg_statement *statement;
    const struct pg_params *params;
    pg_done_cb done;
    void *owner;          // for done
    unsigned deadline_ms; // 0: the pool's.  May be changed until done
    // The server gives this call up after so long (QE_PG_RETRY), whatever the session's
    // statement_timeout is, and within seconds of our end; 0: as the session says.  Costs no
    // round trip.
    unsigned statement_timeout_ms;
    bool of_server; // its parameters hold numbers or positions learnt from the server
    // Goes before all that wait, and if all connections are busy it gets one beyond max_conns,
    // which is closed again afterwards.  For one call at a time.
    bool urgent;

    STAILQ_ENTRY(pg_call) link; // the pool's own from here on
    uint64_t queued_us, sent_us;
    bool sent;   // may be read in done: it had a connection
    int refusal; // told to done when it was never sent
};

struct pg_pool_stats { // read from other threads with relaxed loads
    struct counter opened, broken, calls, failed;
    _Atomic unsigned n_open, n_busy, n_queued;
    _Atomic bool up; // the last thing seen was a working connection
};

struct pg_pool_conf {
    // Another server, or all connections were lost: ctx (of pg_pool_open) forgets what it knew.
    // May use the pool; must not close it.  NULL: nothing is remembered.
    void (*on_new_server)(void *ctx);
    const char *conninfo; // keyword=value string; copied
    unsigned max_conns;   // opened on demand
    unsigned keep_conns;  // kept open when idle
    unsigned connect_timeout_ms;
    unsigned deadline_ms;        // a call without an answer for this long: drop the connection
    unsigned idle_close_ms;      // surplus connections are closed after this
    bool no_prepare;             // for transaction-pooling proxies: send the text each time
    bool untrusted;              // another's database: odd results are logged, and read as NULL
    struct pg_pool_stats *stats; // borrowed for longer than the pool lives; NULL: its own
};

// conf is copied.  on_state (may be NULL) is told when the database goes away or comes back.
struct pg_pool *pg_pool_open(uv_loop_t *loop, const struct pg_pool_conf *conf,
                             void (*on_state)(void *ctx, bool up), void *ctx);
void pg_pool_exec(struct pg_pool *p,
                  struct pg_call *call); // cannot fail: failure is told to done
// True if a call given now would be sent at once (an idle connection is there).
bool pg_pool_has_idle(const struct pg_pool *p);
bool pg_pool_is_full(
    const struct pg_pool *p); // all connections that it may have are up and busy
uint64_t pg_pool_heard_us(const struct pg_pool *p); // when the database last answered anything
// Since when calls are out and nothing at all was answered; 0: none is out.
uint64_t pg_pool_silent_since_us(const struct pg_pool *p);
// The database seems to hang: no call waits longer than ms from now on.  0: as configured
// again.
void pg_pool_hurry(struct pg_pool *p, unsigned ms);
uint64_t pg_pool_server(const struct pg_pool *p); // when the server started; 0: none seen yet
const char *
pg_pool_error(const struct pg_pool *p); // of the last connection that failed; "": none
const struct pg_pool_stats *pg_pool_stats(const struct pg_pool *p);
// Fails what is queued with QE_STOPPING, lets sent calls finish, then closes and frees.
void pg_pool_close(struct pg_pool *p, void (*closed)(void *ctx), void *ctx);

#endif
