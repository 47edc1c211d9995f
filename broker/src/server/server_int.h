// server_int.h: the acceptor, shared by server.c (up) and stop.c (down).
//
//      STARTING ──► SERVING ──► DRAINING ──► HANGING_UP ──► STOPPING ──► STOPPING_DATABASE
//
// Each step of a stop is requested from all workers. The next begins when all have reported, or
// when its time is over.
#ifndef QUEEN_SERVER_SERVER_INT_H
#define QUEEN_SERVER_SERVER_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "api/api.h"
#include "auth/auth.h"
#include "conf/serve.h"
#include "crypt/keyring.h"
#include "net/listeners.h"
#include "net/mailbox.h"
#include "net/signals.h"
#include "net/tls_files.h"
#include "peer/peers.h"
#include "pg/database.h"
#include "server/sql_wake.h"
#include "server/worker.h"

enum server_phase { STARTING, SERVING, DRAINING, HANGING_UP, STOPPING, STOPPING_DATABASE };

struct early_conn {
    int fd;
    bool tls;
};

struct server {
    const struct serve_conf *conf;
    uv_loop_t loop;
    struct mailbox reports; // from the workers
    struct signals signals;
    struct listeners listeners;
    struct tls_files *tls; // NULL: plain HTTP only
    unsigned port;
    struct database *database;
    struct house *house;
    struct peers *peers;       // other servers; NULL: none
    struct sql_wake *sql_wake; // NULL: off
    struct pg_pool_conf pg;    // of the workers; set when they are opened
    struct spool *spool;       // the file buffer
    struct keyring *keys;      // of encryption at rest; NULL: none
    struct auth *auth;
    struct http_routes *routes;
    struct buf settings;      // JSON, for shared
    char *web_root;           // for shared; NULL: none
    struct api_shared shared; // with the workers' endpoints; and whether the schema is in place

    struct worker **workers;
    unsigned n_workers;
    unsigned next;               // worker that gets the next connection
    struct addresses *addresses; // limits per client address
    unsigned max_connections;    // as many as the limit of open files allows
    uint64_t n_dealt;            // connections accepted so far
    struct early_conn *early;    // those that came before the workers
    unsigned n_early;

    enum server_phase phase;
    unsigned n_awaited; // workers that have not reported this phase yet
    uv_timer_t limit;   // of this phase
    uint64_t stop_ms;   // loop time of the first signal
    uint64_t start_us;
    bool forced; // some worker did not end in time
    int exit_code;
};

const char *server_phase_name(const struct server *s);
extern const struct worker_events server_worker_events; // the reports that stop.c waits for

// Begins the way down, once; from any phase up to SERVING.
void server_stop(struct server *s);
// Closes what only the acceptor has; its loop ends then.
void server_close_handles(struct server *s);

#endif
