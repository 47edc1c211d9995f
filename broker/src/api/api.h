// api.h: the endpoints, and what they share.
//
//      http_req ──► endpoint ──► broker op ──► done ──► http_reply_*
//
// One struct api per worker: http_server_conf.app of that worker's server.  It is written by
// its worker alone (counters) and, before the loops run, by broker/src/server, which fills in
// the fields marked "filled".  Reading the counters of other workers' structs is fine from any
// thread.
#ifndef QUEEN_API_API_H
#define QUEEN_API_API_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "api/snapshot.h"
#include "auth/audit.h"
#include "auth/guard.h"
#include "base/metric.h"
#include "base/span.h"
#include "http/route.h"
#include "http/server.h"

struct broker;
struct house;
struct http_req;
struct peers;
struct collector;
struct trace_sink;
struct pg_transfer;

// One per process; all of it is filled before the loops run, the flags change later.
struct api_shared {
    const struct http_routes *routes; // filled: compiled from api_routes
    struct house *house;              // filled
    struct auth *auth;                // filled
    struct pg_transfer *transfer;     // filled: the copy into another database
    struct peers *peers;              // filled: other servers; NULL: none
    struct collector *collector;      // filled: of traces; NULL: none
    struct api **workers;             // filled: n_workers of them, for sums
    unsigned n_workers;               // filled
    uint64_t started_us;              // filled: clock_mono_us() at start
    span version;                     // filled
    unsigned port;                    // filled: of HTTP
    bool exposed;                     // filled: no authentication on a network address
    bool show_details;                // filled: in /health
    unsigned metrics_period_ms;       // filled: how often metrics go into the database
    const char *metrics_queues;       // filled: queues with series of their own
    const char *web_root;             // filled: folder of the dashboard; NULL: none
    span settings;                    // filled: JSON for GET /api/v1/system/settings
    span server;                      // filled: this server's name, for /health
    _Atomic bool ready;               // set once the database can be used
    _Atomic bool stopping;            // set when the server drains

    // When the certificate of the listener expires: seconds since 1970; NULL: plain HTTP.
    const _Atomic int64_t *tls_expires;
};

struct api_route_stats {
    struct histogram us;
    struct counter class_[6]; // answers by first digit of the status; [0]: any other
};

struct api {
    struct api_shared *shared;           // filled
    struct broker *broker;               // filled: this worker's
    struct http_server_stats http_stats; // other workers read it until the last has ended
    struct guard_stats guard_stats;
    struct audit_stats audit_stats;
    unsigned index;                 // filled: number of the worker
    char reason[256];               // why the server is not ready yet; "": no failure so far
    uint32_t default_timeout_ms;    // filled: of long polls
    uint32_t default_batch;         // filled: of pops
    uint32_t max_items;             // filled: of one list in a request; 0: any number
    uint32_t max_failures;          // filled: acknowledgements other than completed; 0: any
    span default_subscription_mode; // filled: "new", "new-only" or "all"; "" is "all"

    struct api_route_stats *routes; // by http_route_index(); the last one: no route
    size_t n_routes;                // without the last one
    struct snapshot snapshot;       // for /metrics/prometheus
    struct queue_size *queue_sizes; // partition_key.c
    struct trace_sink *traces;      // filled: NULL: this server records no traces
    uint64_t logged_s;              // second of the last db.request_failed line ...
    unsigned n_logged;              // ... and the number of failures in it
    struct queue_place *places;     // permission.c
};

// The table: NULL-terminated, for http_routes_new().
extern const struct http_route *const api_routes[];

// Allocates the counters; shared->routes must be filled.
void api_init(struct api *a, struct api_shared *shared);
void api_deinit(struct api *a);

// For http_server_conf.fallback: files of the dashboard.
void api_asset(struct http_req *req);

// For audit_conf.store; ctx is the struct api.
bool api_store_audit(void *ctx, struct audit *a, struct pg_params *params);

// For http_server_conf.observe; app is the struct api.
void api_observe(void *app, const struct http_route *route, int status, uint64_t us);

#endif
