// filter.c: reads a definition into a tree and reports where it is invalid.
#include "audience/filter.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/known.h"
#include "json/scan.h"

const struct filter_limits filter_default_limits = {
    .depth = 8,
    .leaves = FILTER_MAX_LEAVES,
    .list = 1000,
    .text_bytes = 512,
    .cost = 100,
};

// Costs are relative to the comparison of a column, which is 1.
enum { COST_SEARCH = 5, COST_FREE_TEXT = 20, COST_LIST_PART = 100, MAX_PATH = 200 };
// Every level of a tree scans its text again, so the size of the text limits the work too.
enum { MAX_NODES = 256, MAX_TEXT = 1 << 20 };

struct reading {
    struct arena *arena;
    const struct filter_limits *limits;
    struct filter_facts *facts;
    struct fault *fault;
    struct buf path; // of the current node: "/and/1"
    unsigned depth, n_nodes;
};

static struct filter *filter_wrong(struct reading *r, const char *fmt, ...) PRINTF_LIKE(2, 3);
static struct filter *read_node(struct reading *r, span text);
static struct filter *read_group(struct reading *r, enum filter_kind kind, const char *name,
                                 span raw);
static struct filter *read_not(struct reading *r, span raw);
static struct filter *read_leaf(struct reading *r, span text, const span raw[4]);
static bool read_within(struct reading *r, struct filter *leaf, span raw);
static bool note_leaf(struct reading *r, struct filter *leaf);

int filter_read(span text, struct arena *a, const struct filter_limits *limits,
                struct filter **out, struct filter_facts *facts, struct fault *f)
{
    struct reading r = {.arena = a, .limits = limits, .facts = facts, .fault = f};
    struct js j = js_read(text);

    *facts = (struct filter_facts){0};
    r.path.max = MAX_PATH;
    f->code = 0;
    if (text.len > MAX_TEXT)
        return fault_set(f, QE_BAD_PARAM, "filter: must be at most %d bytes long", MAX_TEXT);
    // Scan all of it first: from here on every part is valid JSON.
    span whole = js_skip(&j);
    int rc = js_finish(&j);
    if (rc != 0)
        return fault_set(f, QE_BAD_JSON, "filter: Invalid JSON at byte %zu: %s", js_offset(&j),
                         j.why ? j.why : "something follows the value");
    *out = read_node(&r, whole);
    buf_free(&r.path);
    if (*out == NULL)
        return f->code;
    if (facts->cost > limits->cost)
        return fault_set(f, QE_BAD_PARAM,
                         "filter: costs %u, more than %u: use fewer searches "
                         "in text and shorter lists",
                         facts->cost, limits->cost);
    return 0;
}

// Reports an error in the current node.
static struct filter *filter_wrong(struct reading *r, const char *fmt, ...)
{
    char text[160];
    va_list args;

    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    fault_set(r->fault, QE_BAD_PARAM, "filter" SPAN_FMT ": %s", SPAN_ARG(buf_span(&r->path)),
              text);
    return NULL;
}

// Returns the index of the name that equals the key, escapes included; n: none.
static unsigned filter_which(span key, const char *const *names, unsigned n)
{
    unsigned i = 0;

    while (i < n && !js_key_is(key, span_of(names[i])))
        i++;
    return i;
}

// Everybody must be asked for explicitly: a filter that is missing or misspelt matches nobody.
static struct filter *read_all(struct reading *r, span raw)
{
    bool all;

    if (!js_bool(raw, &all) || !all)
        return filter_wrong(r, "all must be true");
    return arena_new(r->arena, struct filter); // an empty "and"
}

static struct filter *unknown_member(struct reading *r, span key, const char *const *names)
{
    const struct known_names known = {.texts = names};
    struct fault f = {0};

    (void)!known_check(key, &known, KNOWN_ONLY, "member", &f);
    return filter_wrong(r, "%s", f.text);
}

static struct filter *read_node(struct reading *r, span text)
{
    static const char *const names[] = {"and",       "or",       "not",   "all", // LEAF:
                                        "attribute", "operator", "value", "withinDays", NULL};
    enum { AND, OR, NOT, ALL, LEAF, N_NAMES = 8 };
    span raw[N_NAMES] = {{0}}, key;
    unsigned groups = 0, of_leaf = 0;
    struct js j = js_read(text);

    if (++r->n_nodes > MAX_NODES)
        return filter_wrong(r, "the segment has more than %d parts", MAX_NODES);
    if (js_type_of(text) != JS_OBJECT)
        return filter_wrong(
            r, "must be an object: {\"and\": [...]}, {\"or\": [...]}, {\"not\": {...}}, "
               "{\"attribute\": ..., \"operator\": ..., \"value\": ...} or {\"all\": true}");
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        unsigned i = filter_which(key, names, N_NAMES);
        if (i == N_NAMES)
            return unknown_member(r, key, names);
        if (raw[i].ptr != NULL)
            return filter_wrong(r, "has \"%s\" twice", names[i]);
        raw[i] = js_skip(&j);
        groups += i < LEAF;
        of_leaf += i >= LEAF;
    }
    if (groups + (of_leaf > 0) > 1)
        return filter_wrong(r, "must be one of and, or, not, all, or a filter of an attribute");
    if (raw[AND].ptr)
        return read_group(r, FILTER_AND, names[AND], raw[AND]);
    if (raw[OR].ptr)
        return read_group(r, FILTER_OR, names[OR], raw[OR]);
    if (raw[NOT].ptr)
        return read_not(r, raw[NOT]);
    if (raw[ALL].ptr)
        return read_all(r, raw[ALL]);
    if (of_leaf > 0)
        return read_leaf(r, text, raw + LEAF);
    return filter_wrong(r, "must not be empty; {\"all\": true} matches every customer");
}

static bool go_deeper(struct reading *r)
{
    if (++r->depth > r->limits->depth) {
        filter_wrong(r, "is nested deeper than %u", r->limits->depth);
        return false;
    }
    if (r->depth > r->facts->depth)
        r->facts->depth = r->depth;
    return true;
}

static struct filter *read_group(struct reading *r, enum filter_kind kind, const char *name,
                                 span raw)
{
    struct filter *group = arena_new(r->arena, struct filter), **end = &group->first;
    struct js j = js_read(raw);
    size_t here = r->path.len;
    unsigned n = 0;

    buf_printf(&r->path, "/%s", name);
    if (js_type_of(raw) != JS_ARRAY)
        return filter_wrong(r, "must be an array of filters");
    if (!go_deeper(r))
        return NULL;
    group->kind = kind;
    js_enter_array(&j);
    for (; js_next_item(&j); n++, end = &(*end)->next) {
        size_t of_group = r->path.len;
        if (n >= r->limits->leaves)
            return filter_wrong(r, "has more than %u filters", r->limits->leaves);
        buf_printf(&r->path, "/%u", n);
        *end = read_node(r, js_skip(&j));
        if (*end == NULL)
            return NULL;
        r->path.len = of_group;
    }
    if (n == 0)
        return filter_wrong(r, "must contain at least one filter");
    r->path.len = here;
    r->depth--;
    return group;
}

static struct filter *read_not(struct reading *r, span raw)
{
    struct filter *turned = arena_new(r->arena, struct filter);
    size_t here = r->path.len;

    buf_put_lit(&r->path, "/not");
    turned->kind = FILTER_NOT;
    if (!go_deeper(r))
        return NULL;
    turned->first = read_node(r, raw);
    r->path.len = here;
    r->depth--;
    return turned->first ? turned : NULL;
}

static struct filter *read_leaf(struct reading *r, span text, const span raw[4])
{
    struct filter *leaf = arena_new(r->arena, struct filter);

    if (js_type_of(raw[0]) != JS_STRING)
        return filter_wrong(
            r, "attribute must be an attribute name; see GET /api/v1/segments/attributes");
    if (js_type_of(raw[1]) != JS_STRING)
        return filter_wrong(r, "operator must be an operator name");

    span name = js_text(raw[0], r->arena), op = js_text(raw[1], r->arena);
    leaf->kind = FILTER_LEAF;
    leaf->attribute = attribute_find(name);
    leaf->op = operator_find(op);
    if (leaf->attribute == NULL) {
        const struct attribute *near = attribute_nearest(name);
        return filter_wrong(
            r, "unknown attribute \"%.*s\"%s%s%s", (int)(name.len < 60 ? name.len : 60),
            name.ptr, near ? "; did you mean " : "", near ? near->name : "", near ? "?" : "");
    }
    if (leaf->op == NULL)
        return filter_wrong(r, "unknown operator \"%.*s\"", (int)(op.len < 40 ? op.len : 40),
                            op.ptr);
    if (!operator_takes(leaf->op, leaf->attribute->type))
        return filter_wrong(r, "operator %s does not apply to %s of type %s", leaf->op->name,
                            leaf->attribute->name, attribute_type_name(leaf->attribute->type));
    if (filter_read_value(leaf, raw[2], r->arena, r->limits, r->fault) != 0) {
        fault_prefix(r->fault, "filter" SPAN_FMT "/value: ", SPAN_ARG(buf_span(&r->path)));
        return NULL;
    }
    if (raw[3].ptr && !read_within(r, leaf, raw[3]))
        return NULL;
    leaf->path = arena_copy(r->arena, buf_span(&r->path));
    leaf->source = text;
    return note_leaf(r, leaf) ? leaf : NULL;
}

static bool read_within(struct reading *r, struct filter *leaf, span raw)
{
    int64_t days;

    if (leaf->attribute->days == NULL) {
        filter_wrong(
            r, "withinDays is for transaction_count, visit_count and purchase_count only");
        return false;
    }
    if (filter_read_days(raw, &days, r->fault) != 0) {
        fault_prefix(r->fault, "filter" SPAN_FMT "/withinDays: ", SPAN_ARG(buf_span(&r->path)));
        return false;
    }
    leaf->within = (unsigned)days;
    return true;
}

// Read models contain only the days of the last few rows.  Returns true if the filter needs
// more.
static bool is_beyond_days(const struct filter *leaf)
{
    for (unsigned i = 0; leaf->within > 0 && i < leaf->n_values; i++)
        if (leaf->values[i].number >= ATTRIBUTE_LAST_DAYS)
            return true;
    return false;
}

static bool note_leaf(struct reading *r, struct filter *leaf)
{
    struct filter_facts *facts = r->facts;
    enum test test = leaf->op->test;
    const char *mysql = leaf->attribute->write_mysql;
    bool is_free = leaf->attribute->model == MODEL_NONE;

    leaf->number = facts->leaves;
    if (++facts->leaves > r->limits->leaves) {
        filter_wrong(r, "the segment has more than %u filters", r->limits->leaves);
        return false;
    }
    facts->models[leaf->attribute->model] = true;
    facts->fallback_only |= is_free || is_beyond_days(leaf);
    facts->not_mysql |= mysql && mysql[0] == '\0';
    facts->of_this_moment |=
        test == TEST_LAST_DAYS || test == TEST_NEXT_DAYS || leaf->within > 0;
    facts->cost += is_free                                             ? COST_FREE_TEXT
                   : test == TEST_CONTAINS || test == TEST_STARTS_WITH ? COST_SEARCH
                                                                       : 1;
    facts->cost += leaf->n_values / COST_LIST_PART;
    return true;
}

void filter_each_leaf(const struct filter *f, filter_leaf_cb each, void *ctx)
{
    if (f->kind == FILTER_LEAF)
        each(f, ctx);
    // filter_read() limits the depth.
    for (const struct filter *child = f->first; child; child = child->next)
        filter_each_leaf(child, each, ctx);
}
