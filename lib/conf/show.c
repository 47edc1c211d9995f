// show.c: prints a table of settings: --print-config, --help, markdown.
#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "conf/secret.h"
#include "conf/table.h"

static bool is_a_name(const struct conf_table *t, const char *name)
{
    for (unsigned i = 0; i < t->n_keys; i++)
        if (strcmp(t->keys[i].name, name) == 0)
            return true;
    return false;
}

void conf_flag(const struct conf_table *t, const struct conf_key *key, char out[CONF_FLAG_MAX])
{
    const char *name = key->name;
    size_t prefix = strlen(t->prefix);
    if (strncmp(name, t->prefix, prefix) == 0 && !is_a_name(t, name + prefix))
        name += prefix;
    snprintf(out, CONF_FLAG_MAX, "--%s", name);
    for (; *out; out++)
        *out = *out == '_' ? '-' : (char)tolower((unsigned char)*out);
}

static void put_choice(struct buf *out, const char *choices, unsigned index)
{
    span rest = span_of(choices), one = SPAN_NONE;
    for (unsigned i = 0; i <= index && str_split(&rest, '|', &one); i++)
        ;
    buf_put(out, one);
}

// An address may have a user and a password although its setting is no secret.
static void put_public(struct buf *out, span text)
{
    span user = str_url_user(text);

    if (!user.ptr) {
        buf_put(out, text);
        return;
    }
    size_t before = (size_t)(user.ptr - text.ptr);
    buf_put(out, (span){text.ptr, before});
    buf_put_lit(out, "(secret)");
    buf_put(out, (span){user.ptr + user.len, text.len - before - user.len});
}

void conf_put_value(const void *fields, const struct conf_key *key, struct buf *out)
{
    const void *field = (const char *)fields + key->offset;
    const char *text;
    unsigned choice;

    switch (key->type) {
    case CONF_INT:
        buf_put_i64(out, *(const int *)field);
        break;
    case CONF_SIZE:
        buf_put_u64(out, *(const size_t *)field);
        break;
    case CONF_FLOAT:
        buf_printf(out, "%g", *(const double *)field);
        break;
    case CONF_BOOL:
        buf_put(out, *(const bool *)field ? SPAN("true") : SPAN("false"));
        break;
    case CONF_ENUM:
        memcpy(&choice, field, sizeof choice);
        put_choice(out, key->choices, choice);
        break;
    case CONF_STRING:
        text = *(const char *const *)field;
        if (key->secret && *text)
            buf_put_lit(out, "(secret)");
        else
            put_public(out, span_of(text));
        break;
    }
}

void conf_put_expected(const struct conf_key *key, struct buf *out)
{
    span rest, one;

    switch (key->type) {
    case CONF_INT:
    case CONF_SIZE:
        buf_printf(out, "a whole number from %.0f to %.0f", key->min, key->max);
        break;
    case CONF_FLOAT:
        buf_printf(out, "a number from %g to %g", key->min, key->max);
        break;
    case CONF_BOOL:
        buf_put_lit(out, "true, 1, false or 0");
        break;
    case CONF_ENUM:
    case CONF_STRING:
        if (!key->choices) {
            buf_put_lit(out, "text");
            break;
        }
        rest = span_of(key->choices);
        for (const char *before = "one of "; str_split(&rest, '|', &one); before = ", ")
            buf_printf(out, "%s" SPAN_FMT, before, SPAN_ARG(one));
        break;
    }
    if (key->unit)
        buf_printf(out, " (%s)", key->unit);
}

static const char *const origins[] = {"default", "environment", "flag", "file"};

void conf_each_value(const struct conf_table *t, const void *fields,
                     const unsigned char *origin,
                     void (*each)(void *ctx, const struct conf_value *v), void *ctx)
{
    for (unsigned row = 0; row < t->n_keys; row++) {
        struct buf value = {0};
        conf_put_value(fields, &t->keys[row], &value);
        each(ctx, &(struct conf_value){.name = t->keys[row].name,
                                       .value = buf_span(&value),
                                       .origin = origins[origin[row]],
                                       .unit = t->keys[row].unit,
                                       .text = t->keys[row].text});
        buf_free(&value);
    }
}

static void put_line(void *ctx, const struct conf_value *v)
{
    buf_printf(ctx, "%-42s %-24.*s # %s\n", v->name, SPAN_ARG(v->value), v->origin);
}

void conf_put_values(const struct conf_table *t, const void *fields,
                     const unsigned char *origin, struct buf *out)
{
    conf_each_value(t, fields, origin, put_line, out);
}

void conf_put_help(const struct conf_table *t, struct buf *out)
{
    buf_put_lit(out, "  --help            this text\n"
                     "  --version         the version\n"
                     "  --dev             development: sets LOG_LEVEL to debug\n"
                     "  --print-config    print all settings with value and origin\n"
                     "  --print-markdown  print all settings as a page of docs/\n");
    for (unsigned row = 0; row < t->n_keys; row++) {
        const struct conf_key *key = &t->keys[row];
        char flag[CONF_FLAG_MAX];
        conf_flag(t, key, flag);
        if (key->section)
            buf_printf(out, "\n%s\n", key->section);
        buf_printf(out, "  %s  (%s", flag, key->name);
        if (key->fallback[0] != '\0')
            buf_printf(out, ", default %s", key->secret ? "(secret)" : key->fallback);
        buf_printf(out, ")\n      %s\n", key->text);
    }
}

void conf_put_tables(const struct conf_table *t, struct buf *out)
{
    for (unsigned row = 0; row < t->n_keys; row++) {
        const struct conf_key *key = &t->keys[row];
        char flag[CONF_FLAG_MAX];
        struct buf expected = {0};
        conf_flag(t, key, flag);
        conf_put_expected(key, &expected);
        if (key->section)
            buf_printf(out,
                       "\n## %s\n\n| variable | option | value | default | meaning |\n"
                       "| --- | --- | --- | --- | --- |\n",
                       key->section);
        buf_printf(out, "| `%s` | `%s` | " SPAN_FMT " | ", key->name, flag,
                   SPAN_ARG(buf_span(&expected)));
        if (key->fallback[0] != '\0')
            buf_printf(out, "`%s`", key->fallback);
        buf_printf(out, " | %s", key->text);
        if (key->alias)
            buf_printf(out, " Also read as `%s`.", key->alias);
        if (conf_has_file(t, key))
            buf_printf(out, " `%s_FILE` names a file with the value.", key->name);
        buf_put_lit(out, " |\n");
        buf_free(&expected);
    }
}
