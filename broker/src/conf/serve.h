// serve.h: the settings of `queen serve`, from environment and command line.
//
//     struct serve_conf c;
//     struct fault f;
//     int rc = serve_conf_load(&c, argc - 2, argv + 2, environ, &f);   // after "queen serve"
//     if (rc != 0)
//         print f.text and exit
//     log_setup(c.log_level, c.log_format);
//     serve_conf_log(&c);                                              // warnings, once
//
// One table, serve_keys.c, holds the name, default, range and description of every setting;
// this struct holds the values. A flag overrides the environment, which overrides the default.
// Unset and empty mean the default. An invalid value of a known setting is an error. Only
// server/ and cli/ include this header: other modules get a small struct of their own.
#ifndef QUEEN_CONF_SERVE_H
#define QUEEN_CONF_SERVE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "conf/shared.h"
#include "conf/table.h"

enum serve_concurrency { SERVE_VEGAS, SERVE_STATIC };

// The kinds of operation; index of conf.op. Transactions, cycles and custom calls are never
// batched: only their max_concurrent is used.
enum serve_op {
    SERVE_PUSH,
    SERVE_POP,
    SERVE_ACK,
    SERVE_TRANSACTION,
    SERVE_RENEW_LEASE,
    SERVE_CUSTOM,
    SERVE_STREAMS_CYCLE,
    SERVE_N_OPS
};

struct serve_batch {
    int preferred_batch_size; // a batch of this many requests is sent without waiting
    int max_hold_ms;          // -1: sidecar_micro_batch_wait_ms
    int max_batch_size;       // most requests in one batch
    int max_concurrent;       // most batches in flight, per worker
};

struct serve_conf {
    enum conf_action action; // action chosen on the command line

    // listener and process
    int port;
    const char *host; // "": loopback without authentication, all of IPv4 with it
    const char *worker_id;
    int num_workers;
    enum log_level log_level;
    enum log_format log_format;
    int max_headers_bytes; // UWS_HTTP_MAX_HEADERS_SIZE
    size_t max_body_bytes;
    int max_request_items;    // most entries of one list in a body
    size_t max_request_bytes; // memory that one request may allocate
    const char *webapp_root;  // "": search
    size_t gzip_min_bytes;
    size_t max_inflight_bytes; // bodies in the memory of one worker
    size_t max_unsent_bytes;   // answers that clients do not read, per worker
    int max_connections;
    int max_pending; // requests waiting in one worker
    int header_timeout_ms;
    int idle_timeout_ms;
    int stop_timeout_ms;

    // defaults of a pop
    int default_timeout_ms;
    int default_batch_size;
    const char *default_subscription_mode; // "", "all", "new" or "new-only"

    // PostgreSQL
    const char *pg_host; // "": embedded; else a host, or several separated by commas
    int pg_port;
    const char *pg_db;
    const char *pg_user;
    const char *pg_password;
    bool pg_use_ssl;
    bool pg_ssl_reject_unauthorized;
    const char *pg_ssl_mode;      // "": derived from the two above
    const char *pg_ssl_root_cert; // "": those of the operating system
    enum conf_pooler pg_pooler;
    int db_pool_size; // for all workers together; 0: not set, use sidecar_pool_size
    int db_connection_timeout_ms;
    int db_statement_timeout_ms;
    int db_lock_timeout_ms;
    int db_idle_timeout_ms;
    int db_tcp_user_timeout_ms;
    int db_keepalives_idle_s;
    int db_keepalives_interval_s;
    int db_keepalives_count;
    int inflight_deadline_ms; // never 0: derived from db_statement_timeout_ms if not set

    // the embedded PostgreSQL
    const char *data_dir; // never "": derived if not set ("" only if there is no $HOME)
    const char *pg_bin;   // "": search
    const char *pg_os_user;

    // micro-batching and concurrency
    int sidecar_pool_size; // connections of one worker
    int sidecar_micro_batch_wait_ms;
    int sidecar_max_items_per_tx;
    enum serve_concurrency concurrency_mode;
    int vegas_min_limit;
    int vegas_max_limit;
    int vegas_alpha;
    int vegas_beta;
    int vegas_rtt_window_samples;
    int vegas_rtt_min_window_s;
    int vegas_update_interval_ms;
    struct serve_batch op[SERVE_N_OPS];

    // long polling
    int pop_wait_initial_ms;
    int pop_wait_backoff_threshold;
    double pop_wait_backoff_multiplier;
    int pop_wait_max_ms;

    // file buffer and maintenance
    const char *file_buffer_dir; // never "": derived if not set
    int file_buffer_flush_ms;
    int file_buffer_max_batch;
    int file_buffer_events_per_file;
    size_t file_buffer_max_bytes;
    int cache_refresh_interval_ms;

    // several servers
    const char *udp_peers; // "": none
    int udp_port;
    bool sql_notify;
    bool sync_enabled;
    const char *sync_secret;
    int sync_heartbeat_ms;
    int sync_dead_ms;
    int sync_receive_mb;

    // security
    const char *encryption_key;    // "": none
    const char *migration_targets; // "": /api/v1/migration is off
    int migration_stall_s;
    struct conf_jwt jwt;
    struct conf_access access;
    struct conf_site site;
    struct conf_addresses addresses;
    struct conf_tls tls;

    // maintenance
    int eviction_interval_ms;
    int eviction_batch_size;
    int retention_interval_ms;
    int retention_batch_size;
    int partition_cleanup_days;
    int stats_interval_ms;
    int stats_reconcile_interval_ms;
    int stats_history_retention_days;
    int retry_history_days;
    int audit_retention_days;

    // metrics over time
    int metrics_sample_ms;
    int metrics_aggregate_s;
    const char *metrics_queues; // patterns, separated by commas
    int metrics_retention_days;
    struct conf_trace trace;

    // private to conf/ from here on
    unsigned char origin[CONF_MAX_KEYS]; // enum conf_origin, by row of the table
    char **unknown;                      // names that look like ours but are unknown
    unsigned n_unknown;
    const char *unused; // "A B": known names that are set but have no effect
    struct arena arena; // derived texts
};

// args: the n arguments after the command; env: NULL-terminated "NAME=value" list; both
// borrowed for the life of c. On failure f names the setting, its value and the valid values,
// and c owns nothing.
MUST_USE int serve_conf_load(struct serve_conf *c, int n, char *const args[], char *const env[],
                             struct fault *f);
void serve_conf_deinit(struct serve_conf *c);
// The arguments and the environment of the process, from serve_conf_load().
void serve_conf_hide_secrets(struct serve_conf *c, int n, char *args[], char *env[]);

// Logs one warning per unknown variable, with the nearest known name, and one line that lists
// variables that are set but not used by this version.
void serve_conf_log(const struct serve_conf *c);

// Connections of one worker: db_pool_size split over the workers, or sidecar_pool_size.
int serve_conf_pool_per_worker(const struct serve_conf *c);

void serve_conf_print(const struct serve_conf *c,
                      struct buf *out); // --print-config: values and origins
// The same, one by one.
struct conf_value;
void serve_conf_each(const struct serve_conf *c,
                     void (*each)(void *ctx, const struct conf_value *v), void *ctx);
void serve_conf_help(struct buf *out);     // --help
void serve_conf_markdown(struct buf *out); // docs/reference/configuration.md

#endif
