// serve_keys.c: every setting of `queen serve`: name, default, range, description.
#include "conf/access_keys.h"
#include "conf/address_keys.h"
#include "conf/jwt_keys.h"
#include "conf/serve_int.h"
#include "conf/site_keys.h"
#include "conf/tls_keys.h"
#include "conf/trace_keys.h"

#define AT(field) .offset = offsetof(struct serve_conf, field)

// The setting of an operation that is never batched.
#define OP_ALONE(T, kind, concurrent, sentence)                                     \
    {                                                                               \
        .name = "QUEEN_" T "_MAX_CONCURRENT", INT(1, 1000), .fallback = concurrent, \
        .text = sentence, AT(op[kind].max_concurrent)                               \
    }

// The four settings of an operation that is batched.
#define OP(T, kind, preferred, batch, concurrent)                               \
    {.name = "QUEEN_" T "_PREFERRED_BATCH_SIZE",                                \
     INT(1, 100000),                                                            \
     .fallback = preferred,                                                     \
     .text = "A batch of this many requests is sent without waiting.",          \
     AT(op[kind].preferred_batch_size)},                                        \
        {.name = "QUEEN_" T "_MAX_HOLD_MS",                                     \
         INT(-1, 60000),                                                        \
         .unit = "ms",                                                          \
         .fallback = "-1",                                                      \
         .text = "How long a request may wait for others to form a batch; -1: " \
                 "SIDECAR_MICRO_BATCH_WAIT_MS.",                                \
         AT(op[kind].max_hold_ms)},                                             \
        {.name = "QUEEN_" T "_MAX_BATCH_SIZE",                                  \
         INT(1, 100000),                                                        \
         .fallback = batch,                                                     \
         .text = "Most requests in one batch.",                                 \
         AT(op[kind].max_batch_size)},                                          \
        OP_ALONE(T, kind, concurrent, "Most batches of this kind in flight, per worker.")

// clang-format off
const struct conf_key serve_keys[] = {
    {.section = "Listener and process",
     .name = "PORT", INT(1, 65535), .fallback = "6632", AT(port),
     .text = "Port of the HTTP interface."},
    {.name = "HOST", TEXT, .fallback = "", AT(host),
     .text = "Address to listen on. If empty: loopback only (127.0.0.1 and ::1) without authentication, all IPv4 addresses "
     "with it."},
    {.name = "WORKER_ID", TEXT, .fallback = "queen-1", AT(worker_id),
     .text = "Name of this process, shown by `/health` as `server` and in system metrics as `workerId`."},
    {.name = "NUM_WORKERS", INT(1, 256), .fallback = "2", AT(num_workers),
     .text = "Number of event-loop threads. More threads make smaller batches, so measure before raising it."},
    {.name = "LOG_LEVEL", .type = CONF_ENUM, .fallback = "info", AT(log_level),
     .choices = "trace|debug|info|warn|error|critical|off",
     .text = "Lowest level that is logged; `--dev` means debug."},
    {.name = "LOG_FORMAT", .type = CONF_ENUM, .fallback = "text", .choices = "text|json", AT(log_format),
     .text = "Text (coloured on a terminal, logfmt elsewhere) or one JSON object per line."},
    {.name = "UWS_HTTP_MAX_HEADERS_SIZE", INT(1024, 1048576), .unit = "bytes", .fallback = "16384",
     AT(max_headers_bytes), .text = "Longest header block of a request; more is answered with 431."},
    {.name = "QUEEN_MAX_BODY_BYTES", SIZE(1024, 1073741824), .unit = "bytes", .fallback = "104857600",
     AT(max_body_bytes), .text = "Longest body of a request; more is answered with 413. "
     "The contract promises at least 64 MB."},
    {.name = "QUEEN_MAX_REQUEST_ITEMS", INT(1, 10000000), .fallback = "100000", AT(max_request_items),
     .text = "Messages, acknowledgements or operations in one request; more are answered with 413."},
    {.name = "QUEEN_MAX_REQUEST_MEMORY", SIZE(1048576, 1099511627776.0), .unit = "bytes", .fallback = "268435456",
     AT(max_request_bytes), .text = "Memory that one request may use in addition to its body; more is answered with 413."},
    {.name = "WEBAPP_ROOT", TEXT, .fallback = "", AT(webapp_root),
     .text = "Folder of files that replace the built-in dashboard. If empty: the first of `./webapp/dist`, `../webapp/dist` and "
     "`../../webapp/dist` that exists; without any the built-in one is served."},
    {.name = "QUEEN_GZIP_MIN_BYTES", SIZE(0, 1073741824), .unit = "bytes", .fallback = "8192",
     AT(gzip_min_bytes), .text = "Answers from this size on are compressed for clients that accept gzip; 0: never."},
    {.name = "QUEEN_MAX_INFLIGHT_BYTES", SIZE(1048576, 1099511627776.0), .unit = "bytes",
     .fallback = "268435456", AT(max_inflight_bytes),
     .text = "Limit of all request bodies in one worker; requests beyond it are answered with 429."},
    {.name = "QUEEN_MAX_UNSENT_BYTES", SIZE(1048576, 1099511627776.0), .unit = "bytes",
     .fallback = "268435456", AT(max_unsent_bytes),
     .text = "Limit of all answers in one worker that clients have not read yet; beyond it the connections that have gone "
     "longest without reading are closed."},
    {.name = "QUEEN_MAX_CONNECTIONS", INT(1, 1000000), .fallback = "50000", AT(max_connections),
     .text = "Most client connections."},
    {.name = "QUEEN_MAX_PENDING", INT(1, 10000000), .fallback = "20000", AT(max_pending),
     .text = "Requests that may wait in one worker before new ones are answered with 429."},
    {.name = "QUEEN_HEADER_TIMEOUT_MS", MS(100), .fallback = "10000", AT(header_timeout_ms),
     .text = "Time for the head of a request to arrive, from its first byte. A body must arrive at 1 KB/s or more, measured over this time."},
    {.name = "QUEEN_IDLE_TIMEOUT_MS", MS(100), .fallback = "120000", AT(idle_timeout_ms),
     .text = "An idle connection is closed after this time."},
    {.name = "QUEEN_STOP_TIMEOUT_MS", MS(0), .fallback = "10000", AT(stop_timeout_ms),
     .text = "Time that requests in flight get to finish when the server stops."},

    {.section = "Pop defaults",
     .name = "DEFAULT_TIMEOUT", MS(0), .fallback = "30000", AT(default_timeout_ms),
     .text = "Long-poll timeout of a pop without `timeout`."},
    {.name = "DEFAULT_BATCH_SIZE", INT(1, 100000), .fallback = "1", AT(default_batch_size),
     .text = "`batch` of a pop that does not specify it."},
    {.name = "DEFAULT_SUBSCRIPTION_MODE", TEXT, .choices = "all|new|new-only", .fallback = "",
     AT(default_subscription_mode), .text = "`subscriptionMode` of a pop that does not specify it; empty means all."},

    {.section = "PostgreSQL",
     .name = "PG_HOST", TEXT, .fallback = "", AT(pg_host),
     .text = "Host of the database, or several separated by commas; empty starts the embedded PostgreSQL."},
    {.name = "PG_PORT", INT(1, 65535), .fallback = "5432", AT(pg_port), .text = "Its port."},
    {.name = "PG_DB", TEXT, .fallback = "postgres", AT(pg_db), .text = "Name of the database."},
    {.name = "PG_USER", TEXT, .fallback = "postgres", AT(pg_user), .text = "Role to connect as."},
    {.name = "PG_PASSWORD", TEXT, .secret = true, .fallback = "postgres", AT(pg_password),
     .text = "Its password."},
    {.name = "PG_USE_SSL", .type = CONF_BOOL, .fallback = "false", AT(pg_use_ssl),
     .text = "Connect with TLS; false is sslmode disable."},
    {.name = "PG_SSL_REJECT_UNAUTHORIZED", .type = CONF_BOOL, .fallback = "true",
     AT(pg_ssl_reject_unauthorized), .text = "With TLS: true is sslmode verify-full, false is prefer."},
    {.name = "PG_SSL_MODE", TEXT, .choices = "disable|allow|prefer|require|verify-ca|verify-full", .fallback = "",
     AT(pg_ssl_mode), .text = "sslmode of libpq; if set, the two settings above have no effect."},
    {.name = "PG_SSL_ROOT_CERT", TEXT, .fallback = "", AT(pg_ssl_root_cert),
     .text = "File with the certificates that verify-ca and verify-full trust; empty: `/etc/ssl/certs/ca-certificates.crt`."},
    {.name = "PG_POOLER", .type = CONF_ENUM, .choices = "auto|none|transaction", .fallback = "auto", AT(pg_pooler),
     .text = "Whether PG_HOST is a transaction pooler such as PgBouncer; auto: detected, if it refuses startup options or answers with "
     "other processes than those that began the sessions."},
    {.name = "DB_POOL_SIZE", INT(0, 10000), .fallback = "0", AT(db_pool_size),
     .text = "Connections of all workers together; 0: SIDECAR_POOL_SIZE for each worker."},
    {.name = "DB_CONNECTION_TIMEOUT", MS(1), .fallback = "2000", AT(db_connection_timeout_ms),
     .text = "Limit for opening a connection."},
    {.name = "DB_STATEMENT_TIMEOUT", MS(0), .fallback = "30000", AT(db_statement_timeout_ms),
     .text = "`statement_timeout` of a connection; 0: none. A request may have two acknowledgements other than "
     "`completed` per millisecond of it (60000 by default); more are answered with 413."},
    {.name = "DB_LOCK_TIMEOUT", MS(0), .fallback = "10000", AT(db_lock_timeout_ms),
     .text = "`lock_timeout` of a connection; 0: none."},
    {.name = "DB_IDLE_TIMEOUT", MS(0), .fallback = "30000", AT(db_idle_timeout_ms),
     .text = "`idle_in_transaction_session_timeout` of a connection; 0: none."},
    {.name = "DB_TCP_USER_TIMEOUT_MS", MS(0), .fallback = "30000", AT(db_tcp_user_timeout_ms),
     .text = "A connection is closed if sent data is not acknowledged for this long; 0: the system's default."},
    {.name = "DB_KEEPALIVES_IDLE", INT(0, 86400), .unit = "s", .fallback = "60", AT(db_keepalives_idle_s),
     .text = "Idle time before the first TCP keepalive; 0: the system's default."},
    {.name = "DB_KEEPALIVES_INTERVAL", INT(0, 86400), .unit = "s", .fallback = "10",
     AT(db_keepalives_interval_s), .text = "Time between keepalives; 0: the system's default."},
    {.name = "DB_KEEPALIVES_COUNT", INT(0, 127), .fallback = "3", AT(db_keepalives_count),
     .text = "Lost keepalives before the connection is closed; 0: the system's default."},
    {.name = "LIBQUEEN_INFLIGHT_DEADLINE_MS", MS(0), .fallback = "0", AT(inflight_deadline_ms),
     .text = "A connection that has not answered for this long is dropped; "
     "0: DB_STATEMENT_TIMEOUT + 5000. At least 2000."},

    {.section = "Embedded PostgreSQL",
     .name = "QUEEN_DATA_DIR", TEXT, .fallback = "", AT(data_dir),
     .text = "Folder of its data; empty: `$XDG_DATA_HOME/queen` or `~/.local/share/queen`; "
             "`/var/lib/queen` for root."},
    {.name = "QUEEN_PG_BIN", TEXT, .fallback = "", AT(pg_bin),
     .text = "Folder of `initdb` and `postgres`; empty: found in the usual places."},
    {.name = "QUEEN_PG_USER", TEXT, .fallback = "postgres", AT(pg_os_user),
     .text = "System user that runs it when the server is root, since PostgreSQL refuses root."},

    {.section = "Micro-batching and concurrency",
     .name = "SIDECAR_POOL_SIZE", INT(1, 1000), .fallback = "50", AT(sidecar_pool_size),
     .text = "Most database connections of one worker; opened on demand."},
    {.name = "SIDECAR_MICRO_BATCH_WAIT_MS", INT(0, 60000), .unit = "ms", .fallback = "5",
     AT(sidecar_micro_batch_wait_ms), .text = "How long a request may wait to form a batch."},
    {.name = "SIDECAR_MAX_ITEMS_PER_TX", INT(1, 1000000), .fallback = "1000", AT(sidecar_max_items_per_tx),
     .text = "Most messages in one database transaction, unless a single request has more."},
    {.name = "QUEEN_CONCURRENCY_MODE", .type = CONF_ENUM, .choices = "vegas|static", .fallback = "vegas",
     AT(concurrency_mode), .text = "Limit of batches in flight: adapted to the database's response times, or fixed."},
    {.name = "QUEEN_VEGAS_MIN_LIMIT", INT(1, 1000), .fallback = "1", AT(vegas_min_limit),
     .text = "Fewest batches in flight."},
    {.name = "QUEEN_VEGAS_MAX_LIMIT", INT(1, 1000), .fallback = "32", AT(vegas_max_limit),
     .text = "Most batches in flight."},
    {.name = "QUEEN_VEGAS_ALPHA", INT(0, 1000), .fallback = "3", AT(vegas_alpha),
     .text = "Estimated queue in the database below which the limit grows."},
    {.name = "QUEEN_VEGAS_BETA", INT(0, 1000), .fallback = "12", AT(vegas_beta),
     .text = "Estimated queue in the database above which the limit shrinks."},
    {.name = "QUEEN_VEGAS_RTT_WINDOW_SAMPLES", INT(1, 100000), .fallback = "50", AT(vegas_rtt_window_samples),
     .text = "Number of response times in the current estimate."},
    {.name = "QUEEN_VEGAS_RTT_MIN_WINDOW_SEC", INT(1, 86400), .unit = "s", .fallback = "30",
     AT(vegas_rtt_min_window_s), .text = "How long the best response time is remembered."},
    {.name = "QUEEN_VEGAS_UPDATE_INTERVAL_MS", MS(1), .fallback = "1000", AT(vegas_update_interval_ms),
     .text = "Time between two changes of the limit."},
    OP("PUSH", SERVE_PUSH, "50", "500", "24"),
    OP("POP", SERVE_POP, "20", "500", "16"),
    OP("ACK", SERVE_ACK, "50", "500", "16"),
    OP("RENEW_LEASE", SERVE_RENEW_LEASE, "10", "100", "2"),
    OP_ALONE("TRANSACTION", SERVE_TRANSACTION, "16", "Most transactions in flight, per worker; they are never batched."),
    OP_ALONE("CUSTOM", SERVE_CUSTOM, "8", "Most other calls (configure, registering a stream, reading its state, administration) in flight, per worker; they are never batched."),
    OP_ALONE("STREAMS_CYCLE", SERVE_STREAMS_CYCLE, "16", "Most stream cycles in flight, per worker; they are never batched."),

    {.section = "Long polling",
     .name = "SIDECAR_POP_WAIT_INITIAL_MS", .alias = "POP_WAIT_INITIAL_INTERVAL_MS", MS(1), .fallback = "100",
     AT(pop_wait_initial_ms), .text = "Delay before a waiting pop checks the database again; a push wakes it at once."},
    {.name = "SIDECAR_POP_WAIT_BACKOFF_THRESHOLD", .alias = "POP_WAIT_BACKOFF_THRESHOLD", INT(0, 1000000),
     .fallback = "3", AT(pop_wait_backoff_threshold), .text = "Empty checks before the delay grows."},
    {.name = "SIDECAR_POP_WAIT_BACKOFF_MULTIPLIER", .alias = "POP_WAIT_BACKOFF_MULTIPLIER",
     .type = CONF_FLOAT, .min = 1, .max = 1000, .fallback = "3.0", AT(pop_wait_backoff_multiplier),
     .text = "Its growth."},
    {.name = "SIDECAR_POP_WAIT_MAX_MS", .alias = "POP_WAIT_MAX_INTERVAL_MS", MS(1), .fallback = "5000",
     AT(pop_wait_max_ms), .text = "Its ceiling."},
    {.name = "QUEEN_SQL_NOTIFY", .type = CONF_BOOL, .fallback = "true", AT(sql_notify),
     .text = "Messages that SQL functions push are delivered at once: the server listens for them on one more connection to PostgreSQL. "
             "Behind a transaction pooler it is off; such messages are then found by the poll above."},

    {.section = "File buffer and maintenance",
     .name = "FILE_BUFFER_DIR", TEXT, .fallback = "", AT(file_buffer_dir),
     .text = "Folder of the file buffer; must not be shared with another process. Empty: `buffers` in QUEEN_DATA_DIR with the "
             "embedded PostgreSQL, else `/var/lib/queen/buffers`."},
    {.name = "FILE_BUFFER_FLUSH_MS", MS(1), .fallback = "100", AT(file_buffer_flush_ms),
     .text = "A buffer file is complete after twice this time without new records."},
    {.name = "FILE_BUFFER_MAX_BATCH", INT(1, 100000), .fallback = "100", AT(file_buffer_max_batch),
     .text = "Most messages that one replay transaction takes from the buffer; ten times as many while more than "
             "that wait."},
    {.name = "FILE_BUFFER_EVENTS_PER_FILE", INT(1, 10000000), .fallback = "10000",
     AT(file_buffer_events_per_file), .text = "Messages after which a buffer file is complete."},
    {.name = "QUEEN_FILE_BUFFER_MAX_BYTES", SIZE(1048576, 1099511627776.0), .unit = "bytes",
     .fallback = "4294967296", AT(file_buffer_max_bytes),
     .text = "Limit of the file buffer; pushes beyond it are answered with 503."},
    {.name = "QUEEN_CACHE_REFRESH_INTERVAL_MS", MS(10), .fallback = "60000", AT(cache_refresh_interval_ms),
     .text = "How often the maintenance modes are read from the database, and how long a worker "
             "caches whether a queue is encrypted."},

    {.section = "Several servers",
     .name = "QUEEN_UDP_PEERS", TEXT, .fallback = "", AT(udp_peers),
     .text = "Other servers of this database as `host[:port],...`. They are notified by UDP, so that their consumers wake "
             "at once. This server's own address may be included. Empty: they find new messages by polling the database."},
    {.name = "QUEEN_UDP_NOTIFY_PORT", INT(1, 65535), .fallback = "6633", AT(udp_port),
     .text = "UDP port of this server, and of peers without a port."},
    {.name = "QUEEN_SYNC_ENABLED", .type = CONF_BOOL, .fallback = "true", AT(sync_enabled),
     .text = "False: QUEEN_UDP_PEERS is ignored."},
    {.name = "QUEEN_SYNC_SECRET", TEXT, .secret = true, .fallback = "", AT(sync_secret),
     .text = "Key that signs the datagrams, the same on all servers; empty: not signed and not checked."},
    {.name = "QUEEN_SYNC_HEARTBEAT_MS", MS(10), .fallback = "1000", AT(sync_heartbeat_ms),
     .text = "Period of heartbeats."},
    {.name = "QUEEN_SYNC_DEAD_THRESHOLD_MS", MS(10), .fallback = "5000", AT(sync_dead_ms),
     .text = "A peer counts as dead after this time without a datagram."},
    {.name = "QUEEN_SYNC_RECV_BUFFER_MB", INT(1, 1024), .unit = "MB", .fallback = "8", AT(sync_receive_mb),
     .text = "Receive buffer of the UDP socket; the system may limit it."},

    {.section = "Security",
     .name = "QUEEN_ENCRYPTION_KEY", TEXT, .secret = true, .fallback = "", AT(encryption_key),
     .text = "Key of queues with `encryptionEnabled`: 64 hexadecimal digits, or several as `id:digits,id:digits`, "
             "of which the first encrypts and all decrypt. Empty: such queues are stored unencrypted, with a warning."},
    {.name = "QUEEN_MIGRATION_TARGETS", TEXT, .fallback = "", AT(migration_targets),
     .text = "Databases that `/api/v1/migration` may copy everything to: `host[:port][/database]`, separated by commas. "
             "Empty: these endpoints are off and answer 404."},
    {.name = "QUEEN_MIGRATION_STALL_SECONDS", INT(1, 86400), .unit = "s", .fallback = "300", AT(migration_stall_s),
     .text = "A migration fails when its target accepts no data for this long."},
    JWT_KEYS(),
    ACCESS_KEYS,
    SITE_KEYS,
    ADDRESS_KEYS,
    TLS_KEYS,

    {.section = "Chores",
     .name = "EVICTION_INTERVAL", MS(100), .fallback = "60000", AT(eviction_interval_ms),
     .text = "Interval of removing messages that have waited too long or expired."},
    {.name = "EVICTION_BATCH_SIZE", INT(1, 1000000), .fallback = "1000", AT(eviction_batch_size),
     .text = "Most segments (of up to 256 messages) that one such transaction removes; "
     "transactions follow one another until nothing is due."},
    {.name = "RETENTION_INTERVAL", MS(100), .fallback = "300000", AT(retention_interval_ms),
     .text = "Interval of removing messages by retention, and unused partitions."},
    {.name = "RETENTION_BATCH_SIZE", INT(1, 1000000), .fallback = "1000", AT(retention_batch_size),
     .text = "Most segments that one retention transaction removes, as for EVICTION_BATCH_SIZE."},
    {.name = "PARTITION_CLEANUP_DAYS", INT(1, 36500), .unit = "days", .fallback = "30", AT(partition_cleanup_days),
     .text = "Partitions without messages, and consumers without a position, are removed after this time without use."},
    {.name = "RETRY_HISTORY_RETENTION_DAYS", INT(1, 36500), .unit = "days", .fallback = "90", AT(retry_history_days),
     .text = "Age at which the history of failed deliveries is removed."},
    {.name = "QUEEN_AUDIT_RETENTION_DAYS", INT(1, 36500), .unit = "days", .fallback = "90", AT(audit_retention_days),
     .text = "Age at which records of the audit log are removed."},
    {.name = "STATS_INTERVAL_MS", MS(100), .fallback = "10000", AT(stats_interval_ms),
     .text = "Interval of updating statistics for status pages; one process does it."},
    {.name = "STATS_RECONCILE_INTERVAL_MS", MS(1000), .fallback = "120000", AT(stats_reconcile_interval_ms),
     .text = "Interval at which that update reads all consumer states and recounts the next 1,000 partitions."},
    {.name = "STATS_HISTORY_RETENTION_DAYS", INT(1, 36500), .fallback = "7", AT(stats_history_retention_days),
     .text = "Age at which statistics per minute are removed."},

    {.section = "Metrics over time",
     .name = "METRICS_SAMPLE_INTERVAL_MS", MS(100), .fallback = "1000", AT(metrics_sample_ms),
     .text = "How often gauges are sampled: event loop, connections, memory, processor."},
    {.name = "METRICS_AGGREGATE_INTERVAL_S", INT(1, 3600), .unit = "s", .fallback = "60",
     AT(metrics_aggregate_s), .text = "How often counters are written to the metrics tables."},
    {.name = "QUEEN_METRICS_QUEUES", TEXT, .fallback = "*", AT(metrics_queues),
     .text = "Queues with series of their own in `/metrics/prometheus`: names separated by commas, in which `*` stands for any characters. "
     "At most the 1,000 largest backlogs are shown."},
    {.name = "METRICS_RETENTION_DAYS", INT(1, 36500), .unit = "days", .fallback = "90", AT(metrics_retention_days),
     .text = "Age at which rows of the metrics tables and of retention_history are removed."},

    TRACE_KEYS,
};
// clang-format on
const unsigned serve_n_keys = countof(serve_keys);
const struct conf_table serve_table = {
    .command = "serve", .prefix = "QUEEN_", .keys = serve_keys, .n_keys = countof(serve_keys)};
_Static_assert(countof(serve_keys) <= CONF_MAX_KEYS, "serve_conf.origin is too small");

#define NOTHING(name)                                 \
    {                                                 \
        name, "no counterpart in this implementation" \
    }
#define ALONE(T)                                             \
    {"QUEEN_" T "_PREFERRED_BATCH_SIZE", "each goes alone"}, \
        {"QUEEN_" T "_MAX_HOLD_MS", "each goes alone"},      \
    {                                                        \
        "QUEEN_" T "_MAX_BATCH_SIZE", "each goes alone"      \
    }
// Registering a stream and reading its state count as custom calls.
#define AS_CUSTOM(T) \
    ALONE(T), { "QUEEN_" T "_MAX_CONCURRENT", "QUEEN_CUSTOM_MAX_CONCURRENT applies" }

// clang-format off
const struct serve_unused serve_unused[] = {
    NOTHING("DB_THREAD_POOL_SERVICE_THREADS"), NOTHING("QUEUE_BACKOFF_CLEANUP_THRESHOLD"),
    NOTHING("RESPONSE_TIMER_INTERVAL_MS"), NOTHING("RESPONSE_BATCH_SIZE"), NOTHING("RESPONSE_BATCH_MAX"),
    NOTHING("SIDECAR_MAX_BATCH_SIZE"), NOTHING("SIDECAR_MAX_PENDING_COUNT"),
    NOTHING("PARTITION_LOOKUP_RECONCILE_INTERVAL_MS"), NOTHING("PARTITION_LOOKUP_RECONCILE_LOOKBACK_SECONDS"),
    NOTHING("QUEEN_CACHE_PARTITION_MAX"), NOTHING("QUEEN_CACHE_PARTITION_TTL_MS"),
    NOTHING("DB_MAX_RETRIES"), NOTHING("DB_POOL_ACQUISITION_TIMEOUT"), NOTHING("DB_QUERY_TIMEOUT"),
    NOTHING("LOG_TIMESTAMP"), NOTHING("MAX_PARTITION_CANDIDATES"),
    ALONE("TRANSACTION"), ALONE("CUSTOM"),
    ALONE("STREAMS_CYCLE"), AS_CUSTOM("STREAMS_REGISTER"), AS_CUSTOM("STREAMS_STATE_GET"),
};
const unsigned serve_n_unused = countof(serve_unused);

const char *const serve_foreign[] = {
    "QUEEN_CLIENT_LOG", "QUEEN_STREAMS_LOG", "QUEEN_URL", "QUEEN_SERVER_URL", "QUEEN_SERVER", "QUEEN_TOKEN",
    "QUEEN_BEARER_TOKEN", "QUEEN_CONFIG", "QUEEN_E2E", "QUEEN_RETENTION_INTERVAL_MS", "QUEEN_URLS",
    "QUEEN_TIMEOUT", "QUEEN_RETRY_ATTEMPTS", "QUEEN_RETRY_DELAY", "QUEEN_LB_STRATEGY",
    "QUEEN_ENABLE_FAILOVER", "QUEEN_HEALTH_RETRY_AFTER", "QUEEN_AFFINITY_HASH_RING",
    // our tests
    "QUEEN_BIN", "QUEEN_START_TIMEOUT", "QUEEN_TEST_PORTS", "QUEEN_TIME_FACTOR",
};
// clang-format on
const unsigned serve_n_foreign = countof(serve_foreign);
