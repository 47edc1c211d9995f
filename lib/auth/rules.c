// rules.c: parses rules and matches names.
#include "auth/rules.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/write.h"

enum { MAX_RULES = 256, MAX_TEXT = 16 * 1024, N_PARTS = 5 };
enum part { PART_QUEUE, PART_NAMESPACE, PART_TASK, PART_GROUP, PART_TENANT };

static const span part_names[N_PARTS] = {
    {"queue", 5}, {"namespace", 9}, {"task", 4}, {"group", 5}, {"tenant", 6}};

struct access_rule {
    unsigned ops;
    span part[N_PARTS]; // patterns; SPAN_NONE: any
};

struct access_rules {
    _Atomic unsigned n_refs;
    unsigned n_rules;
    struct access_rule *rule;
    struct buf names; // decoded patterns
    span text;
    char store[];
};

// ---- parsing ----

static unsigned op_of(span name)
{
    static const struct {
        span name;
        unsigned op;
    } ops[] = {
        {{"push", 4}, MAY_PUSH},           {{"pop", 3}, MAY_POP},
        {{"read", 4}, MAY_READ},           {{"read-encrypted", 14}, MAY_READ_ENCRYPTED},
        {{"configure", 9}, MAY_CONFIGURE}, {{"configure-storage", 17}, MAY_CONFIGURE_STORAGE},
        {{"delete", 6}, MAY_DELETE},       {{"*", 1}, MAY_ADMIN - 1},
    };

    for (unsigned i = 0; i < countof(ops); i++)
        if (span_eq(ops[i].name, name))
            return ops[i].op;
    return 0;
}

static int hex_of(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = (char)(c | 0x20);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

// '*' becomes NUL, which no name contains. The buffer does not move: it was reserved for all.
static bool decode_pattern(struct access_rules *r, span text, span *pattern)
{
    size_t from = r->names.len;

    for (size_t i = 0; i < text.len; i++) {
        char c = text.ptr[i];
        if (c == '*') {
            c = '\0';
        } else if (c == '%') {
            int high = i + 2 < text.len ? hex_of(text.ptr[i + 1]) : -1;
            int low = high >= 0 ? hex_of(text.ptr[i + 2]) : -1;
            if (low < 0 || high * 16 + low == 0)
                return false;
            c = (char)(high * 16 + low);
            i += 2;
        } else if (c == '=' || c == ':' || c == '+' || c == '\0') {
            return false;
        }
        buf_putc(&r->names, c);
    }
    *pattern = (span){r->names.ptr + from, r->names.len - from};
    return pattern->len > 0 && str_is_utf8(*pattern);
}

static bool parse_conditions(struct access_rules *r, span text, struct access_rule *rule)
{
    span condition;

    while (str_split(&text, ';', &condition)) {
        const char *sign = condition.len > 0 ? memchr(condition.ptr, '=', condition.len) : NULL;
        unsigned part = PART_QUEUE;
        if (sign) {
            span name = {condition.ptr, (size_t)(sign - condition.ptr)};
            for (part = 0; part < N_PARTS && !span_eq(part_names[part], name);)
                part++;
            condition = (span){sign + 1, condition.len - name.len - 1};
        }
        if (part == N_PARTS || rule->part[part].ptr ||
            !decode_pattern(r, condition, &rule->part[part]))
            return false;
    }
    // A tenant is a thing of the platform and has no queues.
    for (unsigned part = 0; part < PART_TENANT; part++)
        if (rule->part[PART_TENANT].ptr && rule->part[part].ptr)
            return false;
    return true;
}

static bool parse_rule(struct access_rules *r, span text, struct access_rule *rule)
{
    if (span_eq(text, SPAN("admin"))) {
        rule->ops = 2 * MAY_ADMIN - 1;
        return true;
    }
    const char *colon = text.len > 0 ? memchr(text.ptr, ':', text.len) : NULL;
    if (!colon)
        return false;
    span ops = {text.ptr, (size_t)(colon - text.ptr)}, op;
    while (str_split(&ops, '+', &op)) {
        unsigned bits = op_of(op);
        if (bits == 0)
            return false;
        rule->ops |= bits;
    }
    return parse_conditions(r, (span){colon + 1, text.len - (size_t)(colon + 1 - text.ptr)},
                            rule);
}

int access_rules_parse(span text, struct access_rules **out, struct fault *f)
{
    span rest, part;

    *out = NULL;
    text = str_trim(text);
    if (text.len == 0 || text.len > MAX_TEXT)
        return fault_set(f, QE_BAD_REQUEST, "rules must have 1 to %d bytes", MAX_TEXT);
    struct access_rules *r = mem_zalloc(1, sizeof *r + text.len);
    atomic_init(&r->n_refs, 1);
    memcpy(r->store, text.ptr, text.len);
    r->text = (span){r->store, text.len};
    buf_reserve(&r->names, text.len);
    size_t most = 1;
    for (size_t i = 0; i < text.len; i++)
        most += text.ptr[i] == ',';
    r->rule = mem_new_array(struct access_rule, most < MAX_RULES ? most : MAX_RULES);
    rest = r->text;
    while (str_split(&rest, ',', &part)) {
        part = str_trim(part);
        if (r->n_rules == MAX_RULES || !parse_rule(r, part, &r->rule[r->n_rules])) {
            int rc = r->n_rules == MAX_RULES
                         ? fault_set(f, QE_BAD_REQUEST, "more than %d rules", MAX_RULES)
                         : fault_set(f, QE_BAD_REQUEST,
                                     "invalid rule \"%.*s\": it must look like push:orders.*, "
                                     "pop:queue=orders;group=billing or admin",
                                     (int)(part.len < 100 ? part.len : 100), part.ptr);
            access_rules_unref(r);
            return rc;
        }
        r->n_rules++;
    }
    *out = r;
    return 0;
}

struct access_rules *access_rules_ref(struct access_rules *r)
{
    if (r)
        atomic_fetch_add(&r->n_refs, 1);
    return r;
}

void access_rules_unref(struct access_rules *r)
{
    if (!r || atomic_fetch_sub(&r->n_refs, 1) > 1)
        return;
    buf_free(&r->names);
    free(r->rule);
    free(r);
}

span access_rules_text(const struct access_rules *r) { return r->text; }

// ---- matching ----

// The first and the last piece are anchored; each piece between is taken where it occurs first,
// which leaves the most for the others.
bool access_pattern_matches(span pattern, span name)
{
    const char *star = pattern.len > 0 ? memchr(pattern.ptr, '\0', pattern.len) : NULL;
    const char *last = star ? memrchr(pattern.ptr, '\0', pattern.len) : NULL;

    if (!star)
        return span_eq(pattern, name);
    size_t head = (size_t)(star - pattern.ptr);
    size_t tail = pattern.len - (size_t)(last - pattern.ptr) - 1;
    if (name.len < head + tail || (head > 0 && memcmp(name.ptr, pattern.ptr, head) != 0) ||
        (tail > 0 && memcmp(name.ptr + name.len - tail, last + 1, tail) != 0))
        return false;
    const char *at = name.ptr + head, *end = name.ptr + name.len - tail;
    while (star < last) {
        const char *from = star + 1;
        star = memchr(from, '\0', (size_t)(last - from) + 1);
        size_t len = (size_t)(star - from);
        if (len == 0)
            continue;
        const char *found = memmem(at, (size_t)(end - at), from, len);
        if (!found)
            return false;
        at = found + len;
    }
    return true;
}

static bool part_matches(span pattern, span name)
{
    return !pattern.ptr || access_pattern_matches(pattern, name);
}

static bool rule_permits(const struct access_rule *rule, unsigned op, span queue, span group)
{
    if ((rule->ops & op) == 0 || rule->part[PART_TENANT].ptr ||
        !part_matches(rule->part[PART_QUEUE], queue) ||
        (group.ptr && !part_matches(rule->part[PART_GROUP], group)))
        return false;
    if (!rule->part[PART_NAMESPACE].ptr && !rule->part[PART_TASK].ptr)
        return true;
    span rest = queue, namespace_, task;
    str_split(&rest, '.', &namespace_);
    if (!str_split(&rest, '.', &task))
        task = SPAN("");
    return part_matches(rule->part[PART_NAMESPACE], namespace_) &&
           part_matches(rule->part[PART_TASK], task);
}

bool access_rules_permit(const struct access_rules *r, unsigned op, span queue, span group)
{
    if (!queue.ptr)
        queue = SPAN("");
    for (unsigned i = 0; i < r->n_rules; i++)
        if (rule_permits(&r->rule[i], op, queue, group))
            return true;
    return false;
}

static bool is_any(span pattern)
{
    return !pattern.ptr || (pattern.len == 1 && pattern.ptr[0] == '\0');
}

bool access_rules_permit_all(const struct access_rules *r, unsigned op)
{
    for (unsigned i = 0; i < r->n_rules; i++) {
        const struct access_rule *rule = &r->rule[i];
        bool all = !rule->part[PART_TENANT].ptr;
        for (unsigned part = 0; part < PART_TENANT; part++)
            all = all && is_any(rule->part[part]);
        if ((rule->ops & op) != 0 && all)
            return true;
    }
    return false;
}

bool access_rules_permit_some(const struct access_rules *r, unsigned op)
{
    for (unsigned i = 0; i < r->n_rules; i++)
        if ((r->rule[i].ops & op) != 0 && !r->rule[i].part[PART_TENANT].ptr)
            return true;
    return false;
}

bool access_rules_permit_some_tenant(const struct access_rules *r, unsigned op)
{
    for (unsigned i = 0; i < r->n_rules; i++)
        if ((r->rule[i].ops & op) != 0 && r->rule[i].part[PART_TENANT].ptr)
            return true;
    return false;
}

bool access_rules_permit_tenant(const struct access_rules *r, unsigned op, span tenant)
{
    for (unsigned i = 0; i < r->n_rules; i++) {
        span pattern = r->rule[i].part[PART_TENANT];
        if ((r->rule[i].ops & op) != 0 && pattern.ptr &&
            access_pattern_matches(pattern, tenant))
            return true;
    }
    return false;
}

// ---- for SQL ----

static void put_like(struct buf *out, span pattern)
{
    for (size_t i = 0; i < pattern.len; i++) {
        char c = pattern.ptr[i];
        if (c == '%' || c == '_' || c == '\\')
            buf_putc(out, '\\');
        buf_putc(out, (char)(c == '\0' ? '%' : c));
    }
}

static void put_like_or_any(struct buf *out, span pattern)
{
    struct buf like = {0};

    if (pattern.ptr)
        put_like(&like, pattern);
    else
        buf_putc(&like, '%');
    js_put_text(out, buf_span(&like));
    buf_free(&like);
}

void access_rules_put_patterns(const struct access_rules *r, unsigned op, struct buf *out)
{
    bool first = true;

    buf_putc(out, '[');
    for (unsigned i = 0; i < r->n_rules; i++) {
        const struct access_rule *rule = &r->rule[i];
        if ((rule->ops & op) == 0 || rule->part[PART_TENANT].ptr)
            continue;
        if (!first)
            buf_putc(out, ',');
        first = false;
        buf_putc(out, '[');
        for (unsigned part = 0; part < PART_TENANT; part++) {
            if (part > 0)
                buf_putc(out, ',');
            put_like_or_any(out, rule->part[part]);
        }
        buf_putc(out, ']');
    }
    buf_putc(out, ']');
}
