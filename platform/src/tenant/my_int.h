// my_int.h: one MySQL connection and its replies; for tenant/ only.
//
//       my_conn_dial ──► ready ──► my_conn_send ──► answered ──► my_conn_send ...
//           └──► broken              (prepare, execute, store, next ..., close the statement)
//
// Callbacks never run from inside my_conn_dial, my_conn_send or my_conn_close; `closed` is the
// last one.
#ifndef QUEEN_TENANT_MY_INT_H
#define QUEEN_TENANT_MY_INT_H

#include <mysql.h>

#include "tenant/my_pool.h"

struct my_reply { // all rows, copied; the connection keeps and reuses the memory
    struct buf data;
    struct my_cell {
        size_t at, len; // in data; len is SIZE_MAX for NULL
    } * cells;
    size_t n_cells, room;
    unsigned cols;
    uint64_t affected;
    unsigned number;
    char sqlstate[6], message[256];
};
void my_reply_reset(struct my_reply *r);
void my_reply_deinit(struct my_reply *r);
// Copies the rows of a stored result and discards those of an earlier one.
void my_reply_take(struct my_reply *r, MYSQL_STMT *stmt);
void my_reply_fail(struct my_reply *r, unsigned number, const char *sqlstate,
                   const char *message);
// Maps the error number of the server or the connector to a code of err.h.
int my_code(unsigned number, const char *sqlstate);

// The server's own mode may store a value that does not fit as another one, and read quotes in
// another way.  A procedure keeps the mode of the session that created it.
#define MY_SQL_MODE "STRICT_ALL_TABLES,ERROR_FOR_DIVISION_BY_ZERO,NO_ENGINE_SUBSTITUTION"

// Sets the options for TLS and authentication of a new connection.
void my_place_secure(const struct my_place *p, MYSQL *my);

struct my_conn;
struct my_events {
    void (*ready)(struct my_conn *c);
    void (*answered)(struct my_conn *c, struct my_call *call, int status,
                     const struct my_reply *reply);
    void (*broken)(struct my_conn *c, const char *why); // the connection attempt failed
    void (*closed)(struct my_conn *c);
};

enum my_step {
    MY_LOOKUP,
    MY_CONNECT,
    MY_IDLE,
    MY_PREPARE,
    MY_EXECUTE,
    MY_STORE,
    MY_NEXT,
    MY_FREE,
    MY_CLOSED
};

struct my_conn {
    enum my_step step;
    bool doomed;     // must not be used again
    bool prepared;   // the server has received the call's statement
    struct buf text; // of the call's statement
    void *owner;
    uint64_t idle_since_us;
    TAILQ_ENTRY(my_conn) all, idle;

    const struct my_events *on;
    uv_loop_t *loop;
    const struct my_place *place;
    unsigned timeout_ms, statement_timeout_ms;
    uv_getaddrinfo_t lookup;
    struct addrinfo *found, *next; // addresses of the host, and the one to try next
    unsigned attempt_ms;           // limit for each of them
    char address[64];              // numeric
    MYSQL my;
    bool has_my;
    MYSQL_STMT *stmt;
    uv_poll_t *poll;
    uv_timer_t timer;
    unsigned n_handles;
    MYSQL *connected; // results of steps
    int ret;
    my_bool freed;

    struct my_call *call;
    int status;
    struct my_reply reply;
    size_t max_result_bytes; // see struct my_pool_conf
    uint64_t received;       // bytes on the socket when the call was sent
    bool too_large;          // its result is larger than permitted
};

struct my_conn *my_conn_dial(uv_loop_t *loop, const struct my_place *place, unsigned timeout_ms,
                             unsigned statement_timeout_ms, const struct my_events *on,
                             void *owner);
void my_conn_send(struct my_conn *c, struct my_call *call);
void my_conn_abort(struct my_conn *c); // the call in progress fails soon, and c is doomed
void my_conn_close(struct my_conn *c); // no call may be in progress

#endif
