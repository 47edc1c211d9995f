// table.c: reads environment and command line into a struct, as its table describes.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "conf/secret.h"
#include "conf/table.h"

// Steps, in order.
static int read_defaults(const struct conf_values *v, struct fault *f);
static int read_environment(const struct conf_values *v, char *const env[], struct fault *f);
static int read_flags(const struct conf_values *v, int n, char *const args[], struct fault *f);
static int set_value(const struct conf_values *v, unsigned row, const char *value,
                     enum conf_origin origin, struct fault *f);

int conf_read(const struct conf_values *v, int n, char *const args[], char *const env[],
              struct fault *f)
{
    int rc = read_defaults(v, f);
    if (rc == 0)
        rc = read_environment(v, env, f);
    if (rc == 0)
        rc = read_flags(v, n, args, f);
    return rc;
}

static int read_defaults(const struct conf_values *v, struct fault *f)
{
    for (unsigned row = 0; row < v->table->n_keys; row++) {
        int rc = set_value(v, row, v->table->keys[row].fallback, CONF_FROM_DEFAULT, f);
        if (rc != 0)
            BUG("default of %s: %s", v->table->keys[row].name, v->table->keys[row].fallback);
    }
    return 0;
}

// Not getenv(): tests pass their own list.
const char *conf_env(char *const env[], const char *name)
{
    size_t len = strlen(name);
    for (; *env; env++)
        if (strncmp(*env, name, len) == 0 && (*env)[len] == '=')
            return (*env)[len + 1] != '\0' ? *env + len + 1 : NULL;
    return NULL;
}

static int set_from_file(const struct conf_values *v, unsigned row, const char *path,
                         struct fault *f)
{
    const char *value;
    int rc = conf_read_file(&v->table->keys[row], path, v->arena, &value, f);

    return rc == 0 ? set_value(v, row, value, CONF_FROM_FILE, f) : rc;
}

static int read_environment(const struct conf_values *v, char *const env[], struct fault *f)
{
    for (unsigned row = 0; row < v->table->n_keys; row++) {
        const struct conf_key *key = &v->table->keys[row];
        const char *value = conf_env(env, key->name);
        if (!value && key->alias)
            value = conf_env(env, key->alias);
        char file[CONF_FLAG_MAX];
        snprintf(file, sizeof file, "%s_FILE", key->name);
        const char *path = conf_has_file(v->table, key) ? conf_env(env, file) : NULL;
        int rc = 0;
        if (value && path)
            return fault_set(f, QE_CONF, "%s and %s must not both be set", key->name, file);
        if (path)
            rc = set_from_file(v, row, path, f);
        else if (value)
            rc = set_value(v, row, value, CONF_FROM_ENVIRONMENT, f);
        if (rc != 0)
            return rc;
    }
    return 0;
}

// Converts a flag's name to upper case with underscores, to look it up in the table.
static void flag_to_name(span flag, char out[CONF_FLAG_MAX])
{
    size_t n = flag.len < CONF_FLAG_MAX - 1 ? flag.len : CONF_FLAG_MAX - 1;
    for (size_t i = 0; i < n; i++)
        out[i] = flag.ptr[i] == '-' ? '_' : (char)toupper((unsigned char)flag.ptr[i]);
    out[n] = '\0';
}

// A full name wins over one that lacks the prefix.
static int find_row(const struct conf_table *t, const char *name)
{
    size_t prefix = strlen(t->prefix);

    for (unsigned row = 0; row < t->n_keys; row++)
        if (strcmp(t->keys[row].name, name) == 0)
            return (int)row;
    for (unsigned row = 0; row < t->n_keys; row++)
        if (strncmp(t->keys[row].name, t->prefix, prefix) == 0 &&
            strcmp(t->keys[row].name + prefix, name) == 0)
            return (int)row;
    return -1;
}

// --jwt-secret-file: the row of JWT_SECRET; -1: none that takes a file.
static int find_file_row(const struct conf_table *t, char *name)
{
    size_t len = strlen(name);

    if (len <= 5 || strcmp(name + len - 5, "_FILE") != 0)
        return -1;
    name[len - 5] = '\0';
    int row = find_row(t, name);
    return row >= 0 && conf_has_file(t, &t->keys[row]) ? row : -1;
}

static int unknown_flag(const struct conf_values *v, const char *arg, span flag,
                        struct fault *f)
{
    char best[CONF_FLAG_MAX] = "--help", name[CONF_FLAG_MAX];
    unsigned least = UINT32_MAX;
    for (unsigned row = 0; row < v->table->n_keys; row++) {
        conf_flag(v->table, &v->table->keys[row], name);
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

static bool read_action(const struct conf_values *v, const char *arg)
{
    for (size_t i = 0; i < countof(action_flags); i++) {
        if (strcmp(arg, action_flags[i].flag) == 0) {
            *v->action = action_flags[i].action;
            return true;
        }
    }
    return false;
}

static int read_flags(const struct conf_values *v, int n, char *const args[], struct fault *f)
{
    bool dev = false, level_given = false;

    for (int i = 0; i < n; i++) {
        const char *arg = args[i];
        if (read_action(v, arg))
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
        int row = find_row(v->table, name);
        bool is_file = row < 0 && (row = find_file_row(v->table, name)) >= 0;
        if (row < 0)
            return unknown_flag(v, arg, flag, f);

        const struct conf_key *key = &v->table->keys[row];
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
        int rc = is_file ? set_from_file(v, (unsigned)row, value, f)
                         : set_value(v, (unsigned)row, value, CONF_FROM_FLAG, f);
        if (rc != 0)
            return rc;
        level_given |= strcmp(key->name, "LOG_LEVEL") == 0;
    }
    if (dev && !level_given)
        return set_value(v, (unsigned)find_row(v->table, "LOG_LEVEL"), "debug", CONF_FROM_FLAG,
                         f);
    return 0;
}

static bool parse_bool(span s, bool *v)
{
    *v = str_eq_nocase(s, SPAN("true")) || span_eq(s, SPAN("1"));
    return *v || str_eq_nocase(s, SPAN("false")) || span_eq(s, SPAN("0"));
}

// Position of s among the choices; -1 if it is not one. Text is kept as written, so its case
// matters.
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
        _Static_assert(sizeof(enum conf_action) == sizeof choice,
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

// The value for messages: short, printable, never a secret.
static void shown(const struct conf_key *key, const char *value, char out[64])
{
    snprintf(out, 64, "%.60s", key->secret ? "(secret)" : value);
    for (; *out; out++)
        if (!isprint((unsigned char)*out))
            *out = '?';
}

static int set_value(const struct conf_values *v, unsigned row, const char *value,
                     enum conf_origin origin, struct fault *f)
{
    const struct conf_key *key = &v->table->keys[row];

    if (parse_value(key, value, (char *)v->fields + key->offset)) {
        v->origin[row] = (unsigned char)origin;
        return 0;
    }
    char bad[64], flag[CONF_FLAG_MAX];
    struct buf expected = {0};
    shown(key, value, bad);
    conf_flag(v->table, key, flag);
    conf_put_expected(key, &expected);
    int rc = fault_set(
        f, QE_CONF, "%s%s%s%s has the invalid value \"%s\"; it must be " SPAN_FMT, key->name,
        origin == CONF_FROM_FLAG ? " (" : "", origin == CONF_FROM_FLAG ? flag : "",
        origin == CONF_FROM_FLAG ? ")" : "", bad, SPAN_ARG(buf_span(&expected)));
    buf_free(&expected);
    return rc;
}

const char *conf_data_home(struct arena *a, char *const env[], const char *name)
{
    const char *base = conf_env(env, "XDG_DATA_HOME"), *below = "/";
    if (!base || base[0] != '/') {
        base = conf_env(env, "HOME");
        below = "/.local/share/";
    }
    // The user that PostgreSQL runs as cannot enter root's home, and a service has none.
    if (!base || strcmp(base, "/root") == 0) {
        base = "/var/lib";
        below = "/";
    }
    struct buf path = {0};
    buf_printf(&path, "%s%s%s", base, below, name);
    const char *home = arena_cstr(a, buf_span(&path));
    buf_free(&path);
    return home;
}
