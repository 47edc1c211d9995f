// serve.c: reads environment and command line into struct serve_conf, as the table describes.
#include "conf/serve.h"

#include <string.h>

#include "base/str.h"
#include "conf/secret.h"
#include "conf/serve_int.h"

// Steps, in order.
static int work_out(struct serve_conf *c, char *const env[], struct fault *f);
static void note_names(struct serve_conf *c, char *const env[]);

int serve_conf_load(struct serve_conf *c, int n, char *const args[], char *const env[],
                    struct fault *f)
{
    *c = (struct serve_conf){.action = CONF_RUN, .unused = ""};
    arena_init(&c->arena);

    struct conf_values into = {&serve_table, c, c->origin, &c->action, &c->arena};
    int rc = conf_read(&into, n, args, env, f);
    if (rc == 0)
        rc = work_out(c, env, f);
    if (rc != 0) {
        serve_conf_deinit(c);
        return rc;
    }
    note_names(c, env);
    return 0;
}

void serve_conf_hide_secrets(struct serve_conf *c, int n, char *args[], char *env[])
{
    struct conf_values from = {&serve_table, c, c->origin, &c->action, &c->arena};

    conf_hide_secrets(&from, n, args, env);
}

void serve_conf_deinit(struct serve_conf *c)
{
    arena_deinit(&c->arena);
    *c = (struct serve_conf){0};
}

// Defaults that depend on other settings, and pairs that must be consistent.
static int work_out(struct serve_conf *c, char *const env[], struct fault *f)
{
    enum { DEADLINE_MARGIN_MS = 5000, LEAST_DEADLINE_MS = 2000 };

    if (c->inflight_deadline_ms == 0)
        c->inflight_deadline_ms = c->db_statement_timeout_ms + DEADLINE_MARGIN_MS;
    if (c->inflight_deadline_ms < LEAST_DEADLINE_MS)
        c->inflight_deadline_ms = LEAST_DEADLINE_MS;

    if (c->data_dir[0] == '\0')
        c->data_dir = conf_data_home(&c->arena, env, "queen");
    if (c->file_buffer_dir[0] == '\0') {
        struct buf path = {0};
        buf_printf(&path, "%s/buffers", c->pg_host[0] == '\0' ? c->data_dir : "/var/lib/queen");
        c->file_buffer_dir = arena_cstr(&c->arena, buf_span(&path));
        buf_free(&path);
    }
    if (c->vegas_min_limit > c->vegas_max_limit)
        return fault_set(
            f, QE_CONF,
            "QUEEN_VEGAS_MIN_LIMIT has the invalid value \"%d\"; it must be at most "
            "QUEEN_VEGAS_MAX_LIMIT, which is %d",
            c->vegas_min_limit, c->vegas_max_limit);
    if (c->vegas_alpha > c->vegas_beta)
        return fault_set(f, QE_CONF,
                         "QUEEN_VEGAS_ALPHA has the invalid value \"%d\"; it must be at most "
                         "QUEEN_VEGAS_BETA, which is %d",
                         c->vegas_alpha, c->vegas_beta);
    return 0;
}

static bool is_known(const char *name)
{
    for (unsigned i = 0; i < serve_n_keys; i++) {
        size_t len = strlen(serve_keys[i].name);
        if (strncmp(serve_keys[i].name, name, len) != 0)
            continue;
        if (name[len] == '\0' ||
            (strcmp(name + len, "_FILE") == 0 && conf_has_file(&serve_table, &serve_keys[i])))
            return true;
    }
    for (unsigned i = 0; i < serve_n_unused; i++)
        if (strcmp(serve_unused[i].name, name) == 0)
            return true;
    for (unsigned i = 0; i < serve_n_foreign; i++)
        if (strcmp(serve_foreign[i], name) == 0)
            return true;
    return false;
}

static void note_names(struct serve_conf *c, char *const env[])
{
    struct buf unused = {0};
    for (unsigned i = 0; i < serve_n_unused; i++)
        if (conf_env(env, serve_unused[i].name))
            buf_printf(&unused, "%s%s", unused.len > 0 ? " " : "", serve_unused[i].name);
    c->unused = arena_cstr(&c->arena, buf_span(&unused));
    buf_free(&unused);

    size_t n = 0;
    while (env[n])
        n++;
    c->unknown = arena_new_array(&c->arena, char *, n + 1);
    for (; *env; env++) {
        const char *equals = strchr(*env, '=');
        span name = {*env, equals ? (size_t)(equals - *env) : 0};
        if (!str_starts(name, SPAN("QUEEN_")) && !str_starts(name, SPAN("SIDECAR_")))
            continue;
        char *copy = arena_alloc(&c->arena, name.len + 1);
        memcpy(copy, name.ptr, name.len);
        if (!is_known(copy))
            c->unknown[c->n_unknown++] = copy;
    }
}

int serve_conf_pool_per_worker(const struct serve_conf *c)
{
    if (c->db_pool_size == 0)
        return c->sidecar_pool_size;
    int each = c->db_pool_size / c->num_workers;
    return each > 0 ? each : 1;
}
