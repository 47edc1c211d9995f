// platform_int.h: the process, for its endpoints and parts.
//
//       STARTING ──► SERVING ──► DRAINING ──► STOPPING_PARTS ──► CLOSING ──► STOPPING_DATABASE
//
// An endpoint gets the process from http_req_app().  Background work (ingestion, refreshing
// read models) is a part: a descriptor in parts.c.
#ifndef QUEEN_PLATFORM_PLATFORM_INT_H
#define QUEEN_PLATFORM_PLATFORM_INT_H

#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include <queen/client.h>

#include "auth/audit.h"
#include "auth/guard.h"
#include "auth/rules.h"
#include "base/buf.h"
#include "base/metric.h"
#include "conf/platform.h"
#include "http/req.h"
#include "http/server.h"
#include "net/listeners.h"
#include "net/signals.h"
#include "net/tls_files.h"
#include "pg/database.h"
#include "pg/pool.h"
#include "tenant/pools.h"

struct platform;

enum platform_phase { STARTING, SERVING, DRAINING, STOPPING_PARTS, CLOSING, STOPPING_DATABASE };

// All functions may be NULL.
struct platform_part {
    const char *name;
    // Called when the control database is ready and requests are served.
    void (*start)(struct platform *p);
    // Starts no new work and calls platform_part_stopped() when nothing is in progress,
    // immediately or later.  Called only after start.
    void (*stop)(struct platform *p);
    void (*expose)(struct platform *p, struct buf *out);   // metrics for Prometheus
    void (*put_json)(struct platform *p, struct buf *out); // `,"name":{...}` for /metrics
};
extern const struct platform_part *const platform_parts[]; // parts.c; ends with NULL
void platform_part_stopped(struct platform *p);

struct route_stats {
    struct histogram us;
    struct counter class_[6]; // responses by first digit of the status; [0]: any other
};

struct platform {
    const struct platform_conf *conf;
    char id[PLATFORM_ID_MAX + 1]; // unique among the processes that share a control database
    uv_loop_t loop;
    struct signals signals;
    struct listeners listeners;
    struct addresses *addresses; // limits per client address
    struct tls_files *tls;       // NULL: plain HTTP only
    bool exposed;                // no authentication on a network address
    unsigned port;
    struct http_routes *routes;
    struct auth *auth;
    struct guard *guard;
    struct guard_stats guard_stats;
    struct audit *audit;
    struct audit_stats audit_stats;
    uv_timer_t audit_trim; // part of audit.c
    struct http_server *http;
    struct route_stats *stats; // by http_route_index(); the last entry: no route
    struct database *database; // the control database, and the server of tenants without a URL
    struct pg_pool
        *control; // connections to it: statements of platform/sql/control; NULL: not yet
    struct tenant_pools *pools;      // NULL: not yet
    struct queen_client *broker;     // on this loop
    struct audience_state *audience; // segments and campaigns: audience.h
    struct readmodel *readmodel;     // NULL before start and after stop
    bool readmodel_waits;            // it stops when ingestion has stopped
    struct ingest *ingest;           // events.c; NULL: not yet

    enum platform_phase phase;
    uint64_t start_us, stop_ms;
    unsigned n_parts_running;
    unsigned n_closing; // handles that are still closing
    uv_timer_t limit;   // time limit of the phase
    int exit_code;
};

extern const struct http_route *const platform_routes[]; // routes.c; ends with NULL

const char *platform_phase_name(const struct platform *p);
bool platform_is_up(const struct platform *p); // the control database is reachable

// stop.c: shuts down, once; from any phase up to SERVING.
void platform_stop(struct platform *p);
void platform_close_handles(struct platform *p);

// Replies with an error: the text of why if there is one, else that of the code.
void platform_reply_failed(struct http_req *req, int status, const struct fault *why);

// audit.c
bool platform_store_audit(void *ctx, struct audit *a, struct pg_params *params);
extern const struct platform_part platform_audit_part;
extern const struct http_route platform_list_audit;

// observe.c
void platform_observe(void *app, const struct http_route *route, int status, uint64_t us);
void observe_expose(struct platform *p, struct buf *out);

extern const struct http_route platform_health, platform_live, platform_ready; // health.c
extern const struct http_route platform_metrics, platform_prometheus;          // metrics.c
extern const struct http_route platform_identity;                              // identity.c
extern const struct http_route platform_openapi;                               // openapi.c
// segments.c, segment_explain.c
extern const struct http_route platform_segment_attributes, platform_segment_count,
    platform_segment_preview, platform_segment_explain;
// saved.c, saved_count.c, subscriptions.c
extern const struct http_route platform_save_segment, platform_list_segments,
    platform_get_segment, platform_delete_segment, platform_segment_counts,
    platform_count_saved, platform_subscribe, platform_unsubscribe;
// campaigns.c, campaign_runs.c
extern const struct http_route platform_create_campaign, platform_list_campaigns,
    platform_get_campaign, platform_delete_campaign, platform_campaign_runs,
    platform_campaign_recipient;
// tenants.c, migrate.c
extern const struct http_route platform_tenant_list, platform_tenant_add, platform_tenant_show,
    platform_tenant_change, platform_tenant_remove, platform_tenant_migrate;
extern const struct http_route platform_tenant_health; // tenant_health.c
extern const struct http_route platform_pools;         // pools.c
extern const struct platform_part platform_pools_part;
// refresh.c, refresh_part.c
extern const struct http_route platform_read_model_list, platform_read_model_show,
    platform_read_model_mode, platform_read_model_refresh;
extern const struct platform_part platform_readmodel_part;
// Called when ingestion has stopped.
void platform_ingest_stopped(struct platform *p);
// Called when ingestion has committed changes of a tenant's data.
void platform_data_changed(struct platform *p, span tenant);
// events.c, events_push.c, events_held.c
extern const struct platform_part platform_events;
extern const struct http_route platform_events_push, platform_events_held;

#endif
