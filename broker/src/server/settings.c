// settings.c: which setting goes where.
#include "server/settings.h"

#include <stdlib.h>
#include <sys/stat.h>

#include "base/log.h"
#include "conf/table.h"
#include "db/sql.gen.h"
#include "pg/conninfo.h"
#include "json/write.h"

enum {
    EMBEDDED_CONNECTIONS = 230, // of its max_connections, the rest is for people and chores
    KEPT_CONNECTIONS = 4,       // per worker, when nothing happens
    IDLE_CLOSE_MS = 60000,
    MAX_PIPELINED = 256,
};

enum settings_use {
    SETTINGS_POOL,  // the workers' connections
    SETTINGS_CHORE, // migrations: no limits on time, the planner left alone
};

static struct pg_conninfo limits(const struct serve_conf *c, enum settings_use use)
{
    struct pg_conninfo info = {
        .application_name = use == SETTINGS_POOL ? "queen" : "queen-chore",
        .connect_timeout_ms = (unsigned)c->db_connection_timeout_ms,
        .tcp_user_timeout_ms = (unsigned)c->db_tcp_user_timeout_ms,
        .keepalives_idle_s = (unsigned)c->db_keepalives_idle_s,
        .keepalives_interval_s = (unsigned)c->db_keepalives_interval_s,
        .keepalives_count = (unsigned)c->db_keepalives_count,
    };

    if (use == SETTINGS_POOL) {
        info.statement_timeout_ms = (unsigned)c->db_statement_timeout_ms;
        info.lock_timeout_ms = (unsigned)c->db_lock_timeout_ms;
        info.idle_in_transaction_ms = (unsigned)c->db_idle_timeout_ms;
        info.probes_only = true;
    }
    return info;
}

static struct pg_conninfo conninfo_for(const struct serve_conf *c, enum settings_use use)
{
    struct pg_conninfo info = limits(c, use);

    info.hosts = c->pg_host;
    info.port = (unsigned)c->pg_port;
    info.db = c->pg_db;
    info.user = c->pg_user;
    info.password = c->pg_password;
    info.sslmode = pg_sslmode(c->pg_ssl_mode, c->pg_use_ssl, c->pg_ssl_reject_unauthorized);
    info.ssl_root_cert = pg_ssl_root_cert(c->pg_ssl_root_cert);
    return info;
}

struct database_conf settings_database(const struct serve_conf *c)
{
    return (struct database_conf){
        .pool = conninfo_for(c, SETTINGS_POOL),
        .chore = conninfo_for(c, SETTINGS_CHORE),
        .data_dir = c->data_dir,
        .pg_bin = c->pg_bin,
        .os_user = c->pg_os_user,
        .embedded_db = "postgres",
        .schema = &pg_schema_queen,
        .no_data_dir = "QUEEN_DATA_DIR or PG_HOST",
    };
}

static struct batch_conf batch(const struct serve_conf *c, enum serve_op op)
{
    const struct serve_batch *b = &c->op[op];
    int hold_ms = b->max_hold_ms < 0 ? c->sidecar_micro_batch_wait_ms : b->max_hold_ms;

    return (struct batch_conf){
        .max_requests = (unsigned)b->max_batch_size,
        .max_items = (unsigned)c->sidecar_max_items_per_tx,
        .preferred = (unsigned)b->preferred_batch_size,
        .hold_ms = (unsigned)hold_ms,
        .max_flights = (unsigned)b->max_concurrent,
    };
}

static unsigned pool_size(const struct serve_conf *c, bool embedded)
{
    unsigned size = (unsigned)serve_conf_pool_per_worker(c);
    unsigned most = EMBEDDED_CONNECTIONS / (unsigned)c->num_workers;

    if (most == 0)
        most = 1;
    if (!embedded || size <= most)
        return size;
    log_info("pool.capped",
             "asked=%u used=%u why=\"the embedded PostgreSQL takes 250 connections\"", size,
             most);
    return most;
}

struct broker_conf settings_broker(const struct serve_conf *c, const char *conninfo,
                                   bool embedded)
{
    unsigned max_conns = pool_size(c, embedded);

    return (struct broker_conf){
        .pg = {.conninfo = conninfo,
               .max_conns = max_conns,
               .keep_conns = max_conns < KEPT_CONNECTIONS ? max_conns : KEPT_CONNECTIONS,
               .connect_timeout_ms = (unsigned)c->db_connection_timeout_ms,
               .deadline_ms = (unsigned)c->inflight_deadline_ms,
               .idle_close_ms = IDLE_CLOSE_MS,
               .paused = true,
               .pooler = embedded ? PG_POOLER_NONE : (enum pg_pooler)c->pg_pooler},
        .push = batch(c, SERVE_PUSH),
        .pop = batch(c, SERVE_POP),
        .ack = batch(c, SERVE_ACK),
        .renew = batch(c, SERVE_RENEW_LEASE),
        .tx = batch(c, SERVE_TRANSACTION),
        .cycle = batch(c, SERVE_STREAMS_CYCLE),
        .custom = batch(c, SERVE_CUSTOM),
        .limit = {.fixed = c->concurrency_mode == SERVE_STATIC,
                  .min = (unsigned)c->vegas_min_limit,
                  .max = (unsigned)c->vegas_max_limit,
                  .alpha = (unsigned)c->vegas_alpha,
                  .beta = (unsigned)c->vegas_beta,
                  .window_samples = (unsigned)c->vegas_rtt_window_samples,
                  .min_window_s = (unsigned)c->vegas_rtt_min_window_s,
                  .update_ms = (unsigned)c->vegas_update_interval_ms},
        .max_pending = (unsigned)c->max_pending,
        .poll_initial_ms = (unsigned)c->pop_wait_initial_ms,
        .poll_threshold = (unsigned)c->pop_wait_backoff_threshold,
        .poll_max_ms = (unsigned)c->pop_wait_max_ms,
        .poll_multiplier = c->pop_wait_backoff_multiplier,
        .evict = {(unsigned)c->eviction_interval_ms, (unsigned)c->eviction_batch_size},
        .retain = {(unsigned)c->retention_interval_ms, (unsigned)c->retention_batch_size},
        .timer_probe_ms = 5000,
        .idle_partition_days = (unsigned)c->partition_cleanup_days,
        .history_days = (unsigned)c->metrics_retention_days,
        .attempts_days = (unsigned)c->retry_history_days,
        .audit_days = (unsigned)c->audit_retention_days,
        .stats_ms = (unsigned)c->stats_interval_ms,
        .stats_reconcile_ms = (unsigned)c->stats_reconcile_interval_ms,
        .stats_history_days = (unsigned)c->stats_history_retention_days,
        .refresh_ms = (unsigned)c->cache_refresh_interval_ms,
        .record = {.sample_ms = (unsigned)c->metrics_sample_ms,
                   .every_ms = (unsigned)c->metrics_aggregate_s * 1000,
                   .keep_days = (unsigned)c->metrics_retention_days,
                   .port = (unsigned)c->port,
                   .process = c->worker_id},
    };
}

struct spool_conf settings_spool(const struct serve_conf *c)
{
    return (struct spool_conf){
        .dir = c->file_buffer_dir,
        .events_per_file = (unsigned)c->file_buffer_events_per_file,
        .idle_ms = 2 * (unsigned)c->file_buffer_flush_ms,
        .max_bytes = c->file_buffer_max_bytes,
    };
}

struct replay_conf settings_replay(const struct serve_conf *c)
{
    return (struct replay_conf){
        .max_batch = (unsigned)c->file_buffer_max_batch,
        .refresh_ms = (unsigned)c->cache_refresh_interval_ms,
    };
}

struct http_server_conf settings_http(const struct serve_conf *c)
{
    return (struct http_server_conf){
        .max_header_bytes = (size_t)c->max_headers_bytes,
        .max_body_bytes = c->max_body_bytes,
        .max_inflight_bytes = c->max_inflight_bytes,
        .max_unsent_bytes = c->max_unsent_bytes,
        .max_request_bytes = c->max_request_bytes,
        .gzip_min_bytes = c->gzip_min_bytes,
        .max_pipelined = MAX_PIPELINED,
        .header_timeout_ms = (unsigned)c->header_timeout_ms,
        .body_timeout_ms = (unsigned)c->addresses.body_timeout_ms,
        .idle_timeout_ms = (unsigned)c->idle_timeout_ms,
    };
}

static struct collector_conf trace_conf(const struct serve_conf *c)
{
    return (struct collector_conf){.url = c->trace.endpoint,
                                   .headers = c->trace.headers,
                                   .service = c->trace.service,
                                   .server = c->worker_id,
                                   .version = QUEEN_VERSION,
                                   .ratio = c->trace.ratio};
}

int settings_check_traces(const struct serve_conf *c, struct fault *f)
{
    struct collector_conf conf = trace_conf(c);

    return c->trace.endpoint[0] == '\0' ? 0 : collector_check(&conf, f);
}

int settings_traces(const struct serve_conf *c, struct collector **out, struct fault *f)
{
    struct collector_conf conf = trace_conf(c);

    *out = NULL;
    return c->trace.endpoint[0] == '\0' ? 0 : collector_new(out, &conf, f);
}

int settings_keys(const struct serve_conf *c, struct keyring **k, struct fault *f)
{
    *k = NULL;
    return c->encryption_key[0] == '\0' ? 0 : keyring_parse(span_of(c->encryption_key), k, f);
}

int settings_web_root(const struct serve_conf *c, char **root, struct fault *f)
{
    static const char *const places[] = {"./webapp/dist", "../webapp/dist",
                                         "../../webapp/dist"};
    struct stat st;

    *root = NULL;
    if (c->webapp_root[0] != '\0') {
        if (stat(c->webapp_root, &st) != 0 || !S_ISDIR(st.st_mode))
            return fault_set(f, QE_CONF, "WEBAPP_ROOT: %s is no folder", c->webapp_root);
        *root = realpath(c->webapp_root, NULL);
        return 0;
    }
    for (unsigned i = 0; i < countof(places) && !*root; i++)
        if (stat(places[i], &st) == 0 && S_ISDIR(st.st_mode))
            *root = realpath(places[i], NULL);
    return 0;
}

static void put_setting(void *ctx, const struct conf_value *v)
{
    struct buf *out = ctx;

    buf_put(out, out->ptr[out->len - 1] == '[' ? SPAN("{\"name\":") : SPAN(",{\"name\":"));
    js_put_text(out, span_of(v->name));
    buf_put_lit(out, ",\"value\":");
    js_put_text(out, v->value);
    buf_put_lit(out, ",\"origin\":");
    js_put_text(out, span_of(v->origin));
    buf_put_lit(out, ",\"unit\":");
    if (v->unit)
        js_put_text(out, span_of(v->unit));
    else
        buf_put_lit(out, "null");
    buf_put_lit(out, ",\"description\":");
    js_put_text(out, span_of(v->text));
    buf_putc(out, '}');
}

void settings_json(const struct serve_conf *c, struct buf *out)
{
    buf_put_lit(out, "{\"server\":");
    js_put_text(out, span_of(c->worker_id));
    buf_put_lit(out, ",\"settings\":[");
    serve_conf_each(c, put_setting, out);
    buf_put_lit(out, "]}");
}
