// settings.c: assigns settings to modules.
#include "platform/settings.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "auth/identity_limits.h"
#include "tenant/sql.gen.h"

enum {
    VISIT_LEASE_MS = 15000, // claims of a process that stopped renewing them expire
    LIVE_FILL_CHUNK = 500,  // customers per transaction of a backfill: about 100 ms
    MAX_PIPELINED = 64,
    MAX_HEADER_BYTES = 16384,
    MAX_INFLIGHT_BYTES = 256 << 20,
    MAX_REQUEST_BYTES = 256 << 20,
    CONTROL_DEADLINE_MS = 35000,
    CONTROL_STATEMENT_MS = 30000,
    CONTROL_LOCK_MS = 10000,
    IDLE_IN_TRANSACTION_MS = 30000,
    TCP_USER_TIMEOUT_MS = 30000,
    IDLE_CLOSE_MS = 60000,
};

static struct pg_conninfo conninfo_for(const struct platform_conf *c, bool chore)
{
    return (struct pg_conninfo){
        .hosts = c->pg_host,
        .port = (unsigned)c->pg_port,
        .db = c->pg_db,
        .user = c->pg_user,
        .password = c->pg_password,
        .sslmode = pg_sslmode(c->pg_ssl_mode, c->pg_use_ssl, c->pg_ssl_reject_unauthorized),
        .ssl_root_cert = pg_ssl_root_cert(c->pg_ssl_root_cert),
        .application_name = chore ? "queen-platform-chore" : "queen-platform",
        .connect_timeout_ms = (unsigned)c->connect_timeout_ms,
        .tcp_user_timeout_ms = TCP_USER_TIMEOUT_MS,
        .statement_timeout_ms = chore ? 0 : CONTROL_STATEMENT_MS,
        .lock_timeout_ms = chore ? 0 : CONTROL_LOCK_MS,
        .idle_in_transaction_ms = chore ? 0 : IDLE_IN_TRANSACTION_MS,
    };
}

struct database_conf settings_control(const struct platform_conf *c)
{
    return (struct database_conf){
        .pool = conninfo_for(c, false),
        .chore = conninfo_for(c, true),
        .data_dir = c->data_dir,
        .pg_bin = c->pg_bin,
        .os_user = c->pg_os_user,
        .embedded_db = c->pg_db,
        .schema = &pg_schema_platform,
        .create = true,
        .no_data_dir = "PLATFORM_DATA_DIR or PLATFORM_PG_HOST",
    };
}

struct pg_pool_conf settings_control_pool(const struct platform_conf *c, const char *conninfo)
{
    return (struct pg_pool_conf){
        .conninfo = conninfo,
        .max_conns = (unsigned)c->pg_pool_size,
        .keep_conns = 1,
        .connect_timeout_ms = (unsigned)c->connect_timeout_ms,
        .deadline_ms = CONTROL_DEADLINE_MS,
        .pooler = (enum pg_pooler)c->pg_pooler,
        .idle_close_ms = IDLE_CLOSE_MS,
    };
}

struct tenant_auth settings_tenant_auth(const struct platform_conf *c)
{
    return (struct tenant_auth){
        .dir = c->credential_dir,
        .env_prefix = c->credential_env_prefix,
        .ssl_root_cert = pg_ssl_root_cert(c->pg_ssl_root_cert),
        .any = c->tenant_any_auth,
    };
}

struct tenant_pools_conf settings_pools(const struct platform_conf *c, struct pg_pool *control,
                                        const struct database *home)
{
    return (struct tenant_pools_conf){
        .control = control,
        .home = home,
        .auth = settings_tenant_auth(c),
        .max_pools = (unsigned)c->pools_max,
        .idle_ms = (unsigned)c->pool_idle_ms,
        .wait_ms = (unsigned)c->pool_wait_ms,
        .max_conns = (unsigned)c->pool_size,
        .connect_timeout_ms = (unsigned)c->connect_timeout_ms,
        .conn_idle_ms = (unsigned)c->conn_idle_ms,
        .statement_timeout_ms = (unsigned)c->statement_timeout_ms,
        .health_after_ms = (unsigned)c->health_after_ms,
        .breaker_failures = (unsigned)c->breaker_failures,
        .probe_ms = (unsigned)c->probe_ms,
        .directory_ms = (unsigned)c->directory_ms,
        .directory_window_s = (unsigned)c->directory_window_s,
    };
}

int settings_check(const struct platform_conf *c, struct fault *f)
{
    static const char zones[] = "/usr/share/zoneinfo";
    struct bulk_window w;
    struct limits limits;
    char path[sizeof(zones) + sizeof(w.zone)];

    int rc = limits_parse(span_of(c->access.limits), &limits, f); // checked by lib/auth before
    if (rc == 0 && limits.stored > 0)
        rc = fault_set(f, QE_CONF,
                       "QUEEN_LIMITS: the platform stores no messages: set the limit of stored "
                       "bytes at the broker");
    if (rc != 0)
        return rc;
    if (strlen(c->id) > PLATFORM_ID_MAX)
        return fault_set(f, QE_CONF, "PLATFORM_ID must have at most %d bytes", PLATFORM_ID_MAX);
    if (!bulk_window_parse(span_of(c->bulk_window), &w))
        return fault_set(f, QE_CONF,
                         "PLATFORM_BULK_WINDOW must look like 13:00-14:00 or 13:00-14:00 "
                         "Europe/Rome, not \"%s\"",
                         c->bulk_window);
    // PostgreSQL checks the zone too, but only after start-up.
    snprintf(path, sizeof(path), "%s/%s", zones, w.zone);
    if (access(zones, X_OK) == 0 && access(path, R_OK) != 0)
        return fault_set(f, QE_CONF, "PLATFORM_BULK_WINDOW: unknown time zone \"%s\"", w.zone);
    return 0;
}

span settings_read_model_mode(const struct platform_conf *c)
{
    return c->read_model == READ_MODEL_LIVE ? SPAN("live") : SPAN("views");
}

struct readmodel_conf settings_readmodel(const struct platform_conf *c)
{
    struct readmodel_conf r = {
        .live = c->read_model == READ_MODEL_LIVE,
        .policy = {.bulk_debounce_us = (int64_t)c->bulk_debounce_ms * 1000,
                   .check_us = (int64_t)c->live_check_ms * 1000},
        .safety_us = (int64_t)c->live_safety_ms * 1000,
        .at_once = (unsigned)c->refresh_parallel,
        .work_mem_mb = (unsigned)c->refresh_work_mem_mb,
        .refresh_timeout_ms = (unsigned)c->refresh_timeout_ms,
        .poll_ms = (unsigned)c->refresh_poll_ms,
        .lease_ms = VISIT_LEASE_MS,
        .sample = (unsigned)c->live_check_rows,
        .fill_chunk = LIVE_FILL_CHUNK,
    };

    r.policy.pace[MODEL_ATTRIBUTES].interval_us = (int64_t)c->attributes_refresh_ms * 1000;
    r.policy.pace[MODEL_ATTRIBUTES].debounce_us = (int64_t)c->attributes_debounce_ms * 1000;
    r.policy.pace[MODEL_TRANSACTIONS].interval_us = (int64_t)c->transactions_refresh_ms * 1000;
    r.policy.pace[MODEL_TRANSACTIONS].debounce_us = (int64_t)c->transactions_debounce_ms * 1000;
    if (!bulk_window_parse(span_of(c->bulk_window), &r.bulk))
        BUG("settings_check() let %s pass", c->bulk_window);
    return r;
}

struct http_server_conf settings_platform_http(const struct platform_conf *c)
{
    return (struct http_server_conf){
        .max_header_bytes = MAX_HEADER_BYTES,
        .max_body_bytes = c->max_body_bytes,
        .max_inflight_bytes = MAX_INFLIGHT_BYTES,
        .max_unsent_bytes = MAX_INFLIGHT_BYTES,
        .max_request_bytes = MAX_REQUEST_BYTES,
        .gzip_min_bytes = c->gzip_min_bytes,
        .max_pipelined = MAX_PIPELINED,
        .header_timeout_ms = (unsigned)c->header_timeout_ms,
        .body_timeout_ms = (unsigned)c->addresses.body_timeout_ms,
        .idle_timeout_ms = (unsigned)c->idle_timeout_ms,
    };
}

struct queen_options settings_queen_client(const struct platform_conf *c, uv_loop_t *loop)
{
    return (struct queen_options){
        .url = c->queen_url,
        .loop = loop,
        .token = c->queen_token[0] ? c->queen_token : NULL,
        .token_file = c->queen_token_file[0] ? c->queen_token_file : NULL,
        .ca_file = c->queen_ca_file[0] ? c->queen_ca_file : NULL,
        .fingerprint = c->queen_fingerprint[0] ? c->queen_fingerprint : NULL,
        .user_agent = "queen-platform/" QUEEN_VERSION,
    };
}

struct ingest_conf settings_ingest(const struct platform_conf *c)
{
    return (struct ingest_conf){
        .queue = c->queue,
        .group = c->group,
        .partitions = (unsigned)c->partitions,
        .expiry_s = (unsigned)c->expiry_s,
        .batch = (unsigned)c->event_batch,
        .max_events = (unsigned)c->write_events,
        .pause_ms = (unsigned)c->write_pause_ms,
        .limit_ms = (unsigned)c->write_limit_ms,
        .parallel = (unsigned)c->write_parallel,
        .held_base_ms = (unsigned)c->held_base_ms,
        .held_cap_ms = (unsigned)c->held_cap_ms,
    };
}
