// platform.h: the settings of queen-platform, from environment and command line.
//
// Read like those of the broker (broker/src/conf/serve.h); platform_keys.c has the table.
#ifndef QUEEN_CONF_PLATFORM_H
#define QUEEN_CONF_PLATFORM_H

#include "base/log.h"
#include "conf/shared.h"
#include "conf/table.h"

enum platform_read_model { READ_MODEL_LIVE, READ_MODEL_VIEWS };

enum { PLATFORM_ID_MAX = 200 };

struct platform_conf {
    enum conf_action action;

    // listener and process
    int port;
    const char *host;
    const char *id;
    enum log_level log_level;
    enum log_format log_format;
    size_t max_body_bytes;
    size_t gzip_min_bytes;
    int max_connections;
    int header_timeout_ms;
    int idle_timeout_ms;
    int stop_timeout_ms;
    int audit_retention_days;

    // the broker
    const char *queen_url;
    const char *queen_token;                       // "": none
    const char *queen_token_file;                  // "": none
    const char *queen_ca_file, *queen_fingerprint; // "": none

    struct conf_jwt jwt;
    struct conf_access access;
    struct conf_site site;
    struct conf_addresses addresses;
    struct conf_tls tls;

    // the control database
    const char *pg_host; // "": an embedded server
    int pg_port;
    const char *pg_db;
    const char *pg_user;
    const char *pg_password;
    bool pg_use_ssl;
    bool pg_ssl_reject_unauthorized;
    const char *pg_ssl_mode;      // "": derived from the two above
    const char *pg_ssl_root_cert; // "": those of the operating system
    enum conf_pooler pg_pooler;
    const char *credential_dir, *credential_env_prefix; // "": not allowed
    bool tenant_any_auth;
    int pg_pool_size;
    const char *data_dir; // never "" unless $HOME is unset; computed if not set
    const char *pg_bin;
    const char *pg_os_user;

    // tenants
    int pools_max;
    int pool_idle_ms;
    int pool_wait_ms;
    int pool_size;
    int connect_timeout_ms;
    int conn_idle_ms;
    int statement_timeout_ms;
    int health_after_ms;
    int breaker_failures;
    int probe_ms;
    int directory_ms;
    int directory_window_s;
    int migrate_parallel;

    // segments and campaigns
    int segment_timeout_ms;
    int segment_cache_ms;
    const char *trigger_queue;
    int trigger_concurrency;
    int trigger_timeout_ms;
    // events
    const char *queue;
    const char *group;
    int partitions;
    int expiry_s;
    int event_batch;
    int write_events;
    int write_pause_ms;
    int write_limit_ms;
    int write_parallel;
    int held_base_ms;
    int held_cap_ms;

    // read models
    enum platform_read_model read_model;
    int attributes_refresh_ms, attributes_debounce_ms;
    int transactions_refresh_ms, transactions_debounce_ms;
    const char *bulk_window; // "": none
    int bulk_debounce_ms;
    int refresh_parallel;
    int refresh_work_mem_mb;
    int refresh_timeout_ms;
    int refresh_poll_ms;
    int live_check_ms;
    int live_check_rows;
    int live_safety_ms;

    // private from here on
    unsigned char origin[CONF_MAX_KEYS];
    struct arena arena;
};

// As serve_conf_load().
MUST_USE int platform_conf_load(struct platform_conf *c, int n, char *const args[],
                                char *const env[], struct fault *f);
void platform_conf_deinit(struct platform_conf *c);
// The arguments and the environment of the process, from platform_conf_load().
void platform_conf_hide_secrets(struct platform_conf *c, int n, char *args[], char *env[]);

void platform_conf_print(const struct platform_conf *c, struct buf *out);
void platform_conf_help(struct buf *out);
void platform_conf_markdown(struct buf *out); // platform/docs/configuration.md

#endif
