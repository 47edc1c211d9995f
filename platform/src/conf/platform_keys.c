// platform_keys.c: every setting of queen-platform: name, default, range, description.
#include "conf/platform.h"

#include "conf/access_keys.h"
#include "conf/address_keys.h"
#include "conf/jwt_keys.h"
#include "conf/site_keys.h"
#include "conf/tls_keys.h"

#define AT(field) .offset = offsetof(struct platform_conf, field)

// clang-format off
static const struct conf_key keys[] = {
    {.section = "Listener and process",
     .name = "PLATFORM_PORT", INT(1, 65535), .fallback = "6642", AT(port),
     .text = "Port of the HTTP interface."},
    {.name = "PLATFORM_HOST", TEXT, .fallback = "", AT(host),
     .text = "Address to listen on. If empty: loopback only (127.0.0.1 and ::1) without authentication, all IPv4 addresses "
             "with it."},
    {.name = "PLATFORM_ID", TEXT, .fallback = "", AT(id),
     .text = "Name of this process, unique among those that share a control database; shown by `/health`. With a fixed name a "
             "process that was killed resumes its partitions at once when it starts again. Empty: the host name and a random "
             "part, new at each start; the partitions of a killed process expire after `PLATFORM_EXPIRY_S`."},
    {.name = "LOG_LEVEL", .type = CONF_ENUM, .fallback = "info", AT(log_level),
     .choices = "trace|debug|info|warn|error|critical|off",
     .text = "Minimum level of log lines; `--dev` sets debug."},
    {.name = "LOG_FORMAT", .type = CONF_ENUM, .fallback = "text", .choices = "text|json", AT(log_format),
     .text = "Text (coloured on a terminal, logfmt elsewhere) or one JSON object per line."},
    {.name = "PLATFORM_MAX_BODY_BYTES", SIZE(1024, 1073741824), .unit = "bytes", .fallback = "16777216",
     AT(max_body_bytes), .text = "Maximum size of a request body; a larger one gets 413."},
    {.name = "PLATFORM_GZIP_MIN_BYTES", SIZE(0, 1073741824), .unit = "bytes", .fallback = "8192",
     AT(gzip_min_bytes), .text = "Responses of at least this size are compressed for clients that accept gzip; 0: never."},
    {.name = "PLATFORM_MAX_CONNECTIONS", INT(1, 1000000), .fallback = "10000", AT(max_connections),
     .text = "Maximum number of client connections."},
    {.name = "PLATFORM_HEADER_TIMEOUT_MS", MS(100), .fallback = "10000", AT(header_timeout_ms),
     .text = "Time limit for receiving a request, from its first byte."},
    {.name = "PLATFORM_IDLE_TIMEOUT_MS", MS(100), .fallback = "120000", AT(idle_timeout_ms),
     .text = "A connection without requests is closed after this time."},
    {.name = "PLATFORM_AUDIT_RETENTION_DAYS", INT(1, 36500), .unit = "days", .fallback = "90", AT(audit_retention_days),
     .text = "Age at which records of the audit log are removed."},
    {.name = "PLATFORM_STOP_TIMEOUT_MS", MS(0), .fallback = "10000", AT(stop_timeout_ms),
     .text = "Time limit for requests and batches in progress when the process stops."},

    {.section = "The broker",
     .name = "QUEEN_URL", TEXT, .fallback = "http://localhost:6632", AT(queen_url),
     .text = "Address of the broker, or several separated by commas."},
    {.name = "QUEEN_TOKEN", TEXT, .secret = true, .fallback = "", AT(queen_token),
     .text = "Token for the broker, if it requires one."},
    {.name = "QUEEN_TOKEN_FILE", TEXT, .fallback = "", AT(queen_token_file),
     .text = "File with the token; read again when it changes."},
    {.name = "QUEEN_CA_FILE", TEXT, .fallback = "", AT(queen_ca_file),
     .text = "PEM file with the authorities of an https broker; empty: those of the system."},
    {.name = "QUEEN_FINGERPRINT", TEXT, .fallback = "", AT(queen_fingerprint),
     .text = "SHA-256 of the only certificate of an https broker to accept, in hexadecimal digits, with or without colons."},

    JWT_KEYS(.section = "Security",),
    ACCESS_KEYS,
    SITE_KEYS,
    ADDRESS_KEYS,
    TLS_KEYS,

    {.section = "Control database",
     .name = "PLATFORM_PG_HOST", TEXT, .fallback = "", AT(pg_host),
     .text = "Host of the PostgreSQL that holds the control database and the tenants that the platform creates; "
             "empty starts an embedded one."},
    {.name = "PLATFORM_PG_PORT", INT(1, 65535), .fallback = "5432", AT(pg_port), .text = "Its port."},
    {.name = "PLATFORM_PG_DB", TEXT, .fallback = "platform", AT(pg_db),
     .text = "Name of the control database; created if missing."},
    {.name = "PLATFORM_PG_USER", TEXT, .fallback = "postgres", AT(pg_user),
     .text = "Role to connect as; requires CREATEDB."},
    {.name = "PLATFORM_PG_PASSWORD", TEXT, .secret = true, .fallback = "postgres", AT(pg_password),
     .text = "Its password."},
    {.name = "PLATFORM_PG_USE_SSL", .type = CONF_BOOL, .fallback = "false", AT(pg_use_ssl),
     .text = "Connect with TLS; false is sslmode disable."},
    {.name = "PLATFORM_PG_SSL_REJECT_UNAUTHORIZED", .type = CONF_BOOL, .fallback = "true",
     AT(pg_ssl_reject_unauthorized), .text = "With TLS: true is sslmode verify-full, false is prefer."},
    {.name = "PLATFORM_PG_SSL_MODE", TEXT, .choices = "disable|allow|prefer|require|verify-ca|verify-full", .fallback = "",
     AT(pg_ssl_mode), .text = "sslmode of libpq; if set, the two settings above have no effect."},
    {.name = "PLATFORM_PG_SSL_ROOT_CERT", TEXT, .fallback = "", AT(pg_ssl_root_cert),
     .text = "File with the certificates that verify-ca and verify-full trust; empty: `/etc/ssl/certs/ca-certificates.crt`."},
    {.name = "PLATFORM_PG_POOLER", .type = CONF_ENUM, .choices = "auto|none|transaction", .fallback = "auto", AT(pg_pooler),
     .text = "Whether PLATFORM_PG_HOST is a transaction pooler such as PgBouncer; auto: detected, if it refuses startup options or answers with "
     "other processes than those that began the sessions."},
    {.name = "PLATFORM_PG_POOL_SIZE", INT(1, 1000), .fallback = "8", AT(pg_pool_size),
     .text = "Connections to the control database."},
    {.name = "PLATFORM_DATA_DIR", TEXT, .fallback = "", AT(data_dir),
     .text = "Folder of the embedded PostgreSQL. If empty: `queen-platform` in `$XDG_DATA_HOME`, in "
             "`$HOME/.local/share`, or in `/var/lib` (for root)."},
    {.name = "QUEEN_PG_BIN", TEXT, .fallback = "", AT(pg_bin),
     .text = "Folder of the programs postgres and initdb; empty: PATH, then the newest installed version."},
    {.name = "QUEEN_PG_USER", TEXT, .fallback = "postgres", AT(pg_os_user),
     .text = "User that the embedded PostgreSQL runs as when the platform runs as root."},

    {.section = "Tenants",
     .name = "PLATFORM_POOLS_MAX", INT(1, 10000), .fallback = "20", AT(pools_max),
     .text = "Maximum number of tenants with open connections."},
    {.name = "PLATFORM_POOL_IDLE_MS", MS(100), .fallback = "600000", AT(pool_idle_ms),
     .text = "A pool that was not used for this long is closed."},
    {.name = "PLATFORM_POOL_WAIT_MS", MS(1), .fallback = "5000", AT(pool_wait_ms),
     .text = "How long a request waits for a pool when all are in use; after that it gets 429."},
    {.name = "PLATFORM_POOL_SIZE", INT(1, 1000), .fallback = "5", AT(pool_size),
     .text = "Maximum number of connections to one tenant's database; opened on demand."},
    {.name = "PLATFORM_CONNECT_TIMEOUT_MS", MS(1), .fallback = "5000", AT(connect_timeout_ms),
     .text = "Time limit for opening a connection to a tenant's database."},
    {.name = "PLATFORM_CONN_IDLE_MS", MS(1), .fallback = "30000", AT(conn_idle_ms),
     .text = "A surplus connection that was idle for this long is closed."},
    {.name = "PLATFORM_STATEMENT_TIMEOUT_MS", MS(0), .fallback = "30000", AT(statement_timeout_ms),
     .text = "`statement_timeout` of a connection to a tenant's database; 0: none."},
    {.name = "PLATFORM_HEALTH_AFTER_MS", MS(0), .fallback = "5000", AT(health_after_ms),
     .text = "A pool without a reply from its database for this long is checked before use."},
    {.name = "PLATFORM_BREAKER_FAILURES", INT(1, 1000), .fallback = "3", AT(breaker_failures),
     .text = "After this many consecutive failures a tenant's database counts as down and its requests fail immediately."},
    {.name = "PLATFORM_PROBE_MS", MS(10), .fallback = "1000", AT(probe_ms),
     .text = "First pause between probes of a database that is down; it doubles up to 30 times this value."},
    {.name = "PLATFORM_DIRECTORY_MS", MS(10), .fallback = "2000", AT(directory_ms),
     .text = "Interval at which a process reads changes by other processes from the tenant directory."},
    {.name = "PLATFORM_DIRECTORY_WINDOW_S", INT(2, 3600), .unit = "s", .fallback = "60", AT(directory_window_s),
     .text = "Each of these reads covers the changes of this long. A process whose last read is older than half of it compares "
             "all cached tenants with the directory."},
    {.name = "PLATFORM_CREDENTIAL_DIR", TEXT, .fallback = "", AT(credential_dir),
     .text = "Folder that `file:` credentials of tenants must be in; empty: they are refused."},
    {.name = "PLATFORM_CREDENTIAL_ENV_PREFIX", TEXT, .fallback = "PLATFORM_TENANT_", AT(credential_env_prefix),
     .text = "Variables of `env:` credentials of tenants must begin with this."},
    {.name = "PLATFORM_TENANT_ANY_AUTH", .type = CONF_BOOL, .fallback = "false", AT(tenant_any_auth),
     .text = "Send passwords to tenants' databases with any method, including clear text and MD5, and without TLS. "
             "false: only SCRAM with channel binding over TLS, and for MySQL no clear-text plugin."},
    {.name = "PLATFORM_MIGRATE_PARALLEL", INT(1, 64), .fallback = "4", AT(migrate_parallel),
     .text = "Number of tenants whose schema is migrated at the same time."},

    {.section = "Segments and campaigns",
     .name = "PLATFORM_SEGMENT_TIMEOUT_MS", MS(1), .fallback = "10000", AT(segment_timeout_ms),
     .text = "A count, preview or explanation that takes longer in the database is cancelled and gets 503."},
    {.name = "PLATFORM_SEGMENT_CACHE_MS", MS(0), .fallback = "1000", AT(segment_cache_ms),
     .text = "A count up to this age is served from the cache unless the request contains `maxAgeMs`; the response contains its age."},
    {.name = "PLATFORM_TRIGGER_QUEUE", TEXT, .fallback = "platform.triggers", AT(trigger_queue),
     .text = "Queue at the broker for checks of watched segments and runs of campaigns."},
    {.name = "PLATFORM_TRIGGER_CONCURRENCY", INT(1, 64), .fallback = "2", AT(trigger_concurrency),
     .text = "How many of these run at once; each uses a tenant's pool."},
    {.name = "PLATFORM_TRIGGER_TIMEOUT_MS", MS(1), .fallback = "60000", AT(trigger_timeout_ms),
     .text = "Time limit of the query that finds a watched segment's members or a campaign's recipients."},

    {.section = "Read models",
     .name = "PLATFORM_READ_MODEL", .type = CONF_ENUM, .fallback = "live", .choices = "live|views", AT(read_model),
     .text = "Data that segments use: tables kept by the write path, or materialized views that are refreshed. A tenant may "
             "have its own choice."},
    {.name = "PLATFORM_ATTRIBUTES_REFRESH_MS", MS(10), .fallback = "45000", AT(attributes_refresh_ms),
     .text = "`customer_attributes_mv` is due this long after its last refresh, if data changed."},
    {.name = "PLATFORM_ATTRIBUTES_DEBOUNCE_MS", MS(0), .fallback = "10000", AT(attributes_debounce_ms),
     .text = "And when there was no change for this long. Under constant changes it is due after the sum of both."},
    {.name = "PLATFORM_TRANSACTIONS_REFRESH_MS", MS(10), .fallback = "300000", AT(transactions_refresh_ms),
     .text = "The same for `customer_transactions_mv`."},
    {.name = "PLATFORM_TRANSACTIONS_DEBOUNCE_MS", MS(0), .fallback = "60000", AT(transactions_debounce_ms),
     .text = "The same for `customer_transactions_mv`."},
    {.name = "PLATFORM_BULK_WINDOW", TEXT, .fallback = "", AT(bulk_window),
     .text = "Hours with heavy imports, with a time zone (default UTC): `13:00-14:00 Europe/Rome`; empty: none."},
    {.name = "PLATFORM_BULK_DEBOUNCE_MS", MS(0), .fallback = "300000", AT(bulk_debounce_ms),
     .text = "The debounce inside the bulk window."},
    {.name = "PLATFORM_REFRESH_PARALLEL", INT(1, 1000), .fallback = "2", AT(refresh_parallel),
     .text = "Number of tenants whose read models are processed at once, over all processes."},
    {.name = "PLATFORM_REFRESH_WORK_MEM_MB", INT(1, 1048576), .unit = "MB", .fallback = "128", AT(refresh_work_mem_mb),
     .text = "`work_mem` of the transaction of a refresh."},
    {.name = "PLATFORM_REFRESH_TIMEOUT_MS", MS(1000), .fallback = "1800000", AT(refresh_timeout_ms),
     .text = "A refresh that takes longer is cancelled."},
    {.name = "PLATFORM_REFRESH_POLL_MS", MS(10), .fallback = "1000", AT(refresh_poll_ms),
     .text = "Interval at which a process polls for read models that are due."},
    {.name = "PLATFORM_LIVE_CHECK_MS", MS(10), .fallback = "60000", AT(live_check_ms),
     .text = "Interval at which rows of a live model are compared with the write model, while data changes."},
    {.name = "PLATFORM_LIVE_CHECK_ROWS", INT(1, 100000), .fallback = "50", AT(live_check_rows),
     .text = "Number of rows compared, chosen at random."},
    {.name = "PLATFORM_LIVE_SAFETY_MS", MS(10), .fallback = "3600000", AT(live_safety_ms),
     .text = "Interval at which the views behind live models are refreshed, if data changed."},
    {.section = "Events",
     .name = "PLATFORM_QUEUE", TEXT, .fallback = "platform.events", AT(queue),
     .text = "Queue of events; created if missing. Held events are in the queue of this name with the suffix `.held`."},
    {.name = "PLATFORM_GROUP", TEXT, .fallback = "platform", AT(group),
     .text = "Consumer group of the processes that share the work."},
    {.name = "PLATFORM_PARTITIONS", INT(1, 1024), .fallback = "32", AT(partitions),
     .text = "Number of partitions of the queue when it is created."},
    {.name = "PLATFORM_EXPIRY_S", INT(1, 3600), .unit = "s", .fallback = "60", AT(expiry_s),
     .text = "Partitions of a process that did not renew them for this long go to other processes."},
    {.name = "PLATFORM_EVENT_BATCH", INT(1, 10000), .fallback = "500", AT(event_batch),
     .text = "Maximum number of events per batch of a partition."},
    {.name = "PLATFORM_WRITE_EVENTS", INT(1, 10000), .fallback = "500", AT(write_events),
     .text = "Maximum number of events per transaction in a tenant's database."},
    {.name = "PLATFORM_WRITE_PAUSE_MS", INT(0, 5000), .unit = "ms", .fallback = "0", AT(write_pause_ms),
     .text = "Minimum time between the starts of two batches of a partition. It makes transactions fewer and larger, and delays events by half of it on average."},
    {.name = "PLATFORM_WRITE_LIMIT_MS", MS(10), .fallback = "1000", AT(write_limit_ms),
     .text = "A transaction that takes longer is cancelled and its events are held, so that other tenants continue."},
    {.name = "PLATFORM_WRITE_PARALLEL", INT(1, 10000), .fallback = "8", AT(write_parallel),
     .text = "Maximum number of concurrent transactions, in different tenants. Transactions older than 100 ms do not count."},
    {.name = "PLATFORM_HELD_BASE_MS", MS(1), .fallback = "1000", AT(held_base_ms),
     .text = "First pause before held events are retried; further pauses grow like the Fibonacci numbers."},
    {.name = "PLATFORM_HELD_CAP_MS", MS(1), .fallback = "60000", AT(held_cap_ms), .text = "The longest of these pauses."},
};
// clang-format on
_Static_assert(countof(keys) <= CONF_MAX_KEYS, "platform_conf.origin is too small");

static const struct conf_table table = {
    .command = "platform", .prefix = "PLATFORM_", .keys = keys, .n_keys = countof(keys)};

int platform_conf_load(struct platform_conf *c, int n, char *const args[], char *const env[],
                       struct fault *f)
{
    *c = (struct platform_conf){.action = CONF_RUN};
    arena_init(&c->arena);
    struct conf_values into = {&table, c, c->origin, &c->action, &c->arena};
    int rc = conf_read(&into, n, args, env, f);
    if (rc != 0) {
        platform_conf_deinit(c);
        return rc;
    }
    if (c->data_dir[0] == '\0')
        c->data_dir = conf_data_home(&c->arena, env, "queen-platform");
    return 0;
}

void platform_conf_hide_secrets(struct platform_conf *c, int n, char *args[], char *env[])
{
    struct conf_values from = {&table, c, c->origin, &c->action, &c->arena};

    conf_hide_secrets(&from, n, args, env);
}

void platform_conf_deinit(struct platform_conf *c)
{
    arena_deinit(&c->arena);
    *c = (struct platform_conf){0};
}

void platform_conf_print(const struct platform_conf *c, struct buf *out)
{
    conf_put_values(&table, c, c->origin, out);
}

void platform_conf_help(struct buf *out)
{
    buf_put_lit(out, "usage: queen platform [--option VALUE | --option=VALUE]...\n\n"
                     "Without PLATFORM_PG_HOST the platform starts an embedded PostgreSQL. "
                     "Every option is also an\n"
                     "environment variable: --port is PLATFORM_PORT. An option overrides "
                     "the variable.\n\n");
    conf_put_help(&table, out);
}

void platform_conf_markdown(struct buf *out)
{
    buf_put_lit(
        out,
        "# Settings of the platform\n\n"
        "Generated from `platform/src/conf/platform_keys.c` by `make docs`; do not edit.\n\n"
        "Each setting is an environment variable and an option of `queen platform`, with "
        "the rules of\n"
        "[the broker's](../../docs/reference/configuration.md). `queen platform "
        "--print-config` shows "
        "every value and where it\ncame from.\n");
    conf_put_tables(&table, out);
}
