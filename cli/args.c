// args.c: parses options and arguments of a command from its table.
#include "cli/args.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/moment.h"
#include "base/span.h"
#include "base/str.h"

struct found {
    const struct cli_option *option;
    int table;
    size_t index;
};

static int read_long(struct args *a, const char *word, char **next, struct fault *f);
static int read_letters(struct args *a, const char *word, char **next, struct fault *f);
static int store(struct args *a, struct found o, const char *shown, const char *value,
                 struct fault *f);
static const char *nearest(const struct args *a, span name);

int args_parse(struct args *a, int argc, char **argv, struct fault *f)
{
    bool only_arguments = false;
    size_t n = 0;

    a->rest = argv;
    for (int i = 0; i < argc && argv[i]; i++) {
        char *word = argv[i];
        // The value of an option, if it takes one; used if next is NULL afterwards.
        char *next = i + 1 < argc ? argv[i + 1] : NULL;
        char *given = next;
        int rc = 0;

        if (only_arguments || word[0] != '-' || word[1] == '\0') {
            a->rest[n++] = word;
        } else if (strcmp(word, "--") == 0) {
            only_arguments = true;
        } else {
            rc =
                word[1] == '-' ? read_long(a, word, &next, f) : read_letters(a, word, &next, f);
        }
        if (rc != 0)
            return rc;
        if (given && !next)
            i++;
    }
    a->n_rest = n;
    return 0;
}

static bool args_find(const struct args *a, span name, char letter, struct found *out)
{
    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < a->sizes[t]; i++) {
            const struct cli_option *o = &a->tables[t][i];
            if (letter ? o->letter == letter : span_eq(span_of(o->name), name)) {
                *out = (struct found){o, t, i};
                return true;
            }
        }
    return false;
}

static int read_long(struct args *a, const char *word, char **next, struct fault *f)
{
    const char *equals = strchr(word, '=');
    span name = {word + 2, equals ? (size_t)(equals - word - 2) : strlen(word + 2)};
    struct found o;

    if (!args_find(a, name, 0, &o)) {
        const char *meant = nearest(a, name);
        return fault_set(f, QE_BAD_PARAM, "unknown option --" SPAN_FMT "%s%s%s", SPAN_ARG(name),
                         meant ? " (is --" : "", meant ? meant : "", meant ? " meant?)" : "");
    }
    if (o.option->kind == CLI_FLAG) {
        if (equals)
            return fault_set(f, QE_BAD_PARAM, "--%s takes no value", o.option->name);
        return store(a, o, word, "", f);
    }
    const char *value = equals ? equals + 1 : *next;
    if (!equals)
        *next = NULL;
    return store(a, o, word, value, f);
}

static int read_letters(struct args *a, const char *word, char **next, struct fault *f)
{
    for (const char *p = word + 1; *p != '\0'; p++) {
        char shown[3] = {'-', *p, '\0'};
        struct found o;

        if (!args_find(a, SPAN_NONE, *p, &o))
            return fault_set(f, QE_BAD_PARAM, "unknown option %s", shown);
        if (o.option->kind != CLI_FLAG) {
            const char *value = p[1] ? p + 1 : *next;
            if (!p[1])
                *next = NULL;
            return store(a, o, shown, value, f);
        }
        int rc = store(a, o, shown, "", f);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static bool read_time(const char *text, int64_t *unix_us);

static int store(struct args *a, struct found o, const char *shown, const char *value,
                 struct fault *f)
{
    uint64_t u;
    int64_t t;

    if (!value)
        return fault_set(f, QE_BAD_PARAM, "%s needs a value: %s", shown, o.option->value);
    switch (o.option->kind) {
    case CLI_FLAG:
    case CLI_TEXT:
        break;
    case CLI_COUNT:
        if (!str_parse_u64(span_of(value), &u))
            return fault_set(f, QE_BAD_PARAM, "--%s must be a whole number, not \"%s\"",
                             o.option->name, value);
        break;
    case CLI_DURATION:
        if (!args_read_ms(value, &u))
            return fault_set(
                f, QE_BAD_PARAM,
                "--%s must be a duration like 500ms, 30s, 5m, 2h or 1d, not \"%s\"",
                o.option->name, value);
        break;
    case CLI_TIME:
        if (!read_time(value, &t))
            return fault_set(f, QE_BAD_PARAM,
                             "--%s must be a time like 2026-11-16T08:00:00Z, now, -2h or +30m, "
                             "not \"%s\"",
                             o.option->name, value);
        break;
    }
    a->values[o.table][o.index] = value;
    return 0;
}

static const char *nearest(const struct args *a, span name)
{
    const char *best = NULL;
    unsigned best_distance = 3; // at a larger distance it is a different word

    for (int t = 0; t < 2; t++)
        for (size_t i = 0; i < a->sizes[t]; i++) {
            unsigned d = str_distance(name, span_of(a->tables[t][i].name));
            if (d < best_distance) {
                best_distance = d;
                best = a->tables[t][i].name;
            }
        }
    return best;
}

bool args_read_ms(const char *text, uint64_t *ms)
{
    static const struct {
        const char *unit;
        double ms;
    } units[] = {{"ms", 1},      {"s", 1000},     {"m", 60000},
                 {"h", 3600000}, {"d", 86400000}, {"", 1000}};
    size_t digits = strspn(text, "0123456789.");
    double number;

    if (digits == 0 || !str_parse_double((span){text, digits}, &number))
        return false;
    for (unsigned i = 0; i < countof(units); i++)
        if (strcmp(text + digits, units[i].unit) == 0) {
            if (number * units[i].ms > 1e15) // some thirty thousand years
                return false;
            *ms = (uint64_t)(number * units[i].ms);
            return true;
        }
    return false;
}

static bool read_time(const char *text, int64_t *unix_us)
{
    uint64_t ms = 0;
    int64_t now = (int64_t)clock_wall_us();

    if (strcmp(text, "now") == 0) {
        *unix_us = now;
        return true;
    }
    if ((text[0] == '-' || text[0] == '+') && args_read_ms(text + 1, &ms)) {
        *unix_us = now + (text[0] == '-' ? -1 : 1) * (int64_t)ms * 1000;
        return true;
    }
    return moment_parse(span_of(text), unix_us);
}

// ---- how many arguments ----

int args_check_count(const struct args *a, const char *spec, struct fault *f)
{
    span rest = span_of(spec), word;
    size_t seen = 0;
    bool endless = false;

    while (spec[0] && str_split(&rest, ' ', &word)) {
        bool optional = word.ptr[0] == '[';
        if (!optional && seen >= a->n_rest)
            return fault_set(f, QE_BAD_PARAM, SPAN_FMT " is missing", SPAN_ARG(word));
        endless = memmem(word.ptr, word.len, "...", 3) != NULL;
        seen++;
    }
    if (a->n_rest > seen && !endless)
        return fault_set(f, QE_BAD_PARAM, "unexpected argument \"%s\"", a->rest[seen]);
    return 0;
}

// ---- access ----

const char *args_text(const struct args *a, const char *name)
{
    struct found o;

    if (!args_find(a, span_of(name), 0, &o))
        BUG("option --%s is in no table", name);
    return a->values[o.table][o.index];
}

bool args_has(const struct args *a, const char *name) { return args_text(a, name) != NULL; }

uint64_t args_count(const struct args *a, const char *name, uint64_t fallback)
{
    const char *text = args_text(a, name);
    uint64_t v = fallback;

    if (text && !str_parse_u64(span_of(text), &v))
        BUG("--%s was not checked", name);
    return v;
}

uint64_t args_ms(const struct args *a, const char *name, uint64_t fallback)
{
    const char *text = args_text(a, name);
    uint64_t v = fallback;

    if (text && !args_read_ms(text, &v))
        BUG("--%s was not checked", name);
    return v;
}

bool args_time(const struct args *a, const char *name, char out[ARGS_TIME_SIZE])
{
    const char *text = args_text(a, name);
    int64_t us;

    if (!text)
        return false;
    if (!read_time(text, &us))
        BUG("--%s was not checked", name);
    str_format_ts_us(us, out);
    out[STR_TS_US] = '\0';
    return true;
}
