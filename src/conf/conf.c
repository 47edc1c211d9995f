// conf.c: environment and command line into struct conf, by the table.
#include "conf/conf.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "conf/conf_int.h"

// In the order they run.
static int read_defaults(struct conf *c, struct fault *f);
static int read_environment(struct conf *c, char *const env[], struct fault *f);
static int read_flags(struct conf *c, int n, char *const args[], struct fault *f);
static int set_value(struct conf *c, unsigned row, const char *value, enum conf_origin origin,
                     struct fault *f);
static int work_out(struct conf *c, char *const env[], struct fault *f);
static void note_names(struct conf *c, char *const env[]);

int conf_load(struct conf *c, int n, char *const args[], char *const env[], struct fault *f)
{
    *c = (struct conf){.action = CONF_RUN, .unused = ""};
    arena_init(&c->arena);

    int rc = read_defaults(c, f);
    if (rc == 0)
        rc = read_environment(c, env, f);
    if (rc == 0)
        rc = read_flags(c, n, args, f);
    if (rc == 0)
        rc = work_out(c, env, f);
    if (rc != 0) {
        conf_deinit(c);
        return rc;
    }
    note_names(c, env);
    return 0;
}

void conf_deinit(struct conf *c)
{
    arena_deinit(&c->arena);
    *c = (struct conf){0};
}

static int read_defaults(struct conf *c, struct fault *f)
{
    for (unsigned row = 0; row < conf_n_keys; row++) {
        int rc = set_value(c, row, conf_keys[row].fallback, CONF_FROM_DEFAULT, f);
        if (rc != 0)
            BUG("default of %s: %s", conf_keys[row].name, conf_keys[row].fallback);
    }
    return 0;
}

// Not getenv(): tests bring their own list.  NULL when unset or empty.
static const char *find_env(char *const env[], const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return (*env)[len + 1] != '\0' ? *env + len + 1 : NULL;
    return NULL;
}

static int read_environment(struct conf *c, char *const env[], struct fault *f)
{
    for (unsigned row = 0; row < conf_n_keys; row++) {
        const struct conf_key *key = &conf_keys[row];
        const char *value = find_env(env, key->name);
        if (!value && key->alias)
            value = find_env(env, key->alias);
        int rc = value ? set_value(c, row, value, CONF_FROM_ENVIRONMENT, f) : 0;
        if (rc != 0)
            return rc;
    }
    return 0;
}

// Upper case and underscores of a flag's name, for looking it up in the table.
static void flag_to_name(span flag, char out[CONF_FLAG_MAX])
{
    size_t n = flag.len < CONF_FLAG_MAX - 1 ? flag.len : CONF_FLAG_MAX - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = flag.ptr[i] == '-' ? '_' : (char)toupper((unsigned char)flag.ptr[i]);
    out[n] = '\0';
}

// A name in full wins over one that lacks its QUEEN_.
static int find_row(const char *name)
{
    for (unsigned row = 0; row < conf_n_keys; row++)
        if (strcmp(conf_keys[row].name, name) == 0)
            return (int)row;
    for (unsigned row = 0; row < conf_n_keys; row++)
        if (strncmp(conf_keys[row].name, "QUEEN_", 6) == 0 &&
            strcmp(conf_keys[row].name + 6, name) == 0)
            return (int)row;
    return -1;
}

static int unknown_flag(const char *arg, span flag, struct fault *f)
{
    char best[CONF_FLAG_MAX] = "--help", name[CONF_FLAG_MAX];
    unsigned least = UINT32_MAX;
    for (unsigned row = 0; row < conf_n_keys; row++) {
        conf_flag(&conf_keys[row], name);
        unsigned d = str_distance(flag, span_of(name + 2));
        if (d < least) {
            least = d;
            memcpy(best, name, sizeof best);
        }
    }
    return fault_set(f, QE_CONF, "unknown option %.80s; the nearest one is %s (see --help)",
                     arg, best);
}

static const struct action_flag {
    const char *flag;
    enum conf_action action;
} action_flags[] = {
    {"--help", CONF_SHOW_HELP},           {"-h", CONF_SHOW_HELP},
    {"--print-config", CONF_SHOW_CONFIG}, {"--print-markdown", CONF_SHOW_MARKDOWN},
    {"--version", CONF_SHOW_VERSION},
};

static bool read_action(struct conf *c, const char *arg)
{
    for (size_t i = 0; i < countof(action_flags); i++) {
        if (strcmp(arg, action_flags[i].flag) == 0) {
            c->action = action_flags[i].action;
            return true;
        }
    }
    return false;
}

static int read_flags(struct conf *c, int n, char *const args[], struct fault *f)
{
    bool dev = false, level_given = false;

    for (int i = 0; i < n; i++) {
        const char *arg = args[i];
        if (read_action(c, arg))
            continue;
        if (strcmp(arg, "--dev") == 0) {
            dev = true;
            continue;
        }
        if (strncmp(arg, "--", 2) != 0)
            return fault_set(f, QE_CONF, "unexpected argument %.80s (see --help)", arg);

        const char *equals = strchr(arg, '=');
        span flag = equals ? (span){arg + 2, (size_t)(equals - arg - 2)} : span_of(arg + 2);
        char name[CONF_FLAG_MAX];
        flag_to_name(flag, name);
        int row = find_row(name);
        if (row < 0)
            return unknown_flag(arg, flag, f);

        const struct conf_key *key = &conf_keys[row];
        const char *value;
        if (equals)
            value = equals + 1;
        else if (key->type == CONF_BOOL)
            value = "true";
        else if (i + 1 < n)
            value = args[++i];
        else
            return fault_set(f, QE_CONF, "%.80s needs a value", arg);
        if (*value == '\0')
            value = key->fallback;
        int rc = set_value(c, (unsigned)row, value, CONF_FROM_FLAG, f);
        if (rc != 0)
            return rc;
        level_given |= key->offset == offsetof(struct conf, log_level);
    }
    if (dev && !level_given)
        return set_value(c, (unsigned)find_row("LOG_LEVEL"), "debug", CONF_FROM_FLAG, f);
    return 0;
}

static bool parse_bool(span s, bool *v)
{
    *v = str_eq_nocase(s, SPAN("true")) || span_eq(s, SPAN("1"));
    return *v || str_eq_nocase(s, SPAN("false")) || span_eq(s, SPAN("0"));
}

// Position of s among the choices; -1 if it is none.  Text is kept as written, so there the
// case counts.
static int find_choice(const struct conf_key *key, span s)
{
    span rest = span_of(key->choices), one;
    for (int i = 0; str_split(&rest, '|', &one); i++)
        if (key->type == CONF_ENUM ? str_eq_nocase(one, s) : span_eq(one, s))
            return i;
    return -1;
}

static bool parse_value(const struct conf_key *key, const char *value, void *field)
{
    span s = str_trim(span_of(value));
    int64_t i;
    double d;
    int choice;

    switch (key->type) {
    case CONF_INT:
        if (!str_parse_i64(s, &i) || (double)i < key->min || (double)i > key->max)
            return false;
        *(int *)field = (int)i;
        return true;
    case CONF_SIZE:
        if (!str_parse_i64(s, &i) || (double)i < key->min || (double)i > key->max)
            return false;
        *(size_t *)field = (size_t)i;
        return true;
    case CONF_FLOAT:
        if (!str_parse_double(s, &d) || !(d >= key->min && d <= key->max))
            return false;
        *(double *)field = d;
        return true;
    case CONF_BOOL:
        return parse_bool(s, field);
    case CONF_ENUM:
        choice = find_choice(key, s);
        if (choice < 0)
            return false;
        _Static_assert(sizeof(enum log_level) == sizeof choice,
                       "an enum is as large as an int");
        memcpy(field, &choice, sizeof choice);
        return true;
    case CONF_STRING:
        if (key->choices && *value != '\0' && find_choice(key, span_of(value)) < 0)
            return false;
        *(const char **)field = value;
        return true;
    }
    return false;
}

// The value as it may be shown: short, printable, never a secret.
static void shown(const struct conf_key *key, const char *value, char out[64])
{
    snprintf(out, 64, "%.60s", key->secret ? "(secret)" : value);
    for (; *out; out++)
        if (!isprint((unsigned char)*out))
            *out = '?';
}

static int set_value(struct conf *c, unsigned row, const char *value, enum conf_origin origin,
                     struct fault *f)
{
    const struct conf_key *key = &conf_keys[row];

    if (parse_value(key, value, (char *)c + key->offset)) {
        c->origin[row] = (unsigned char)origin;
        return 0;
    }
    char bad[64], flag[CONF_FLAG_MAX];
    struct buf expected = {0};
    shown(key, value, bad);
    conf_flag(key, flag);
    conf_put_expected(key, &expected);
    int rc = fault_set(f, QE_CONF, "%s%s%s%s has the bad value \"%s\"; it must be " SPAN_FMT,
                       key->name, origin == CONF_FROM_FLAG ? " (" : "",
                       origin == CONF_FROM_FLAG ? flag : "",
                       origin == CONF_FROM_FLAG ? ")" : "", bad, SPAN_ARG(buf_span(&expected)));
    buf_free(&expected);
    return rc;
}

// Defaults that depend on something else, and pairs that must fit together.
static int work_out(struct conf *c, char *const env[], struct fault *f)
{
    enum { DEADLINE_MARGIN_MS = 5000, LEAST_DEADLINE_MS = 2000 };

    if (c->inflight_deadline_ms == 0)
        c->inflight_deadline_ms = c->db_statement_timeout_ms + DEADLINE_MARGIN_MS;
    if (c->inflight_deadline_ms < LEAST_DEADLINE_MS)
        c->inflight_deadline_ms = LEAST_DEADLINE_MS;

    if (c->data_dir[0] == '\0') {
        const char *base = find_env(env, "XDG_DATA_HOME"), *below = "/queen";
        if (!base || base[0] != '/') {
            base = find_env(env, "HOME");
            below = "/.local/share/queen";
        }
        // Root's home is closed to the user that PostgreSQL runs as; a service has none.
        if (!base || strcmp(base, "/root") == 0) {
            base = "/var/lib";
            below = "/queen";
        }
        struct buf path = {0};
        buf_printf(&path, "%s%s", base, below);
        c->data_dir = arena_cstr(&c->arena, buf_span(&path));
        buf_free(&path);
    }
    if (c->file_buffer_dir[0] == '\0') {
        struct buf path = {0};
        buf_printf(&path, "%s/buffers", c->pg_host[0] == '\0' ? c->data_dir : "/var/lib/queen");
        c->file_buffer_dir = arena_cstr(&c->arena, buf_span(&path));
        buf_free(&path);
    }
    if (c->vegas_min_limit > c->vegas_max_limit)
        return fault_set(f, QE_CONF,
                         "QUEEN_VEGAS_MIN_LIMIT has the bad value \"%d\"; it must not be above "
                         "QUEEN_VEGAS_MAX_LIMIT, which is %d",
                         c->vegas_min_limit, c->vegas_max_limit);
    if (c->vegas_alpha > c->vegas_beta)
        return fault_set(f, QE_CONF,
                         "QUEEN_VEGAS_ALPHA has the bad value \"%d\"; it must not be above "
                         "QUEEN_VEGAS_BETA, which is %d",
                         c->vegas_alpha, c->vegas_beta);
    return 0;
}

static bool is_known(const char *name)
{
    for (unsigned i = 0; i < conf_n_keys; i++)
        if (strcmp(conf_keys[i].name, name) == 0)
            return true;
    for (unsigned i = 0; i < conf_n_unused; i++)
        if (strcmp(conf_unused[i].name, name) == 0)
            return true;
    for (unsigned i = 0; i < conf_n_foreign; i++)
        if (strcmp(conf_foreign[i], name) == 0)
            return true;
    return false;
}

static void note_names(struct conf *c, char *const env[])
{
    struct buf unused = {0};
    for (unsigned i = 0; i < conf_n_unused; i++)
        if (find_env(env, conf_unused[i].name))
            buf_printf(&unused, "%s%s", unused.len > 0 ? " " : "", conf_unused[i].name);
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

int conf_pool_per_worker(const struct conf *c)
{
    if (c->db_pool_size == 0)
        return c->sidecar_pool_size;
    int each = c->db_pool_size / c->num_workers;
    return each > 0 ? each : 1;
}
