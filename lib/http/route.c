// route.c: the compiled table of endpoints.
//
// Paths without parameters are in a hash table. Patterns are grouped by their number of
// segments and, within a group, sorted so that the first match is the most literal one.
#include "http/route.h"

#include <assert.h>
#include <stdlib.h>

#include "base/err.h"
#include "base/map.h"
#include "base/mem.h"

enum { MAX_SEGMENTS = 16, N_VERBS = HTTP_OTHER };

// The endpoints of one path, by verb.
struct verbs {
    const struct http_route *by[N_VERBS];
};

struct literal {
    span path;
    struct verbs verbs;
    UT_hash_handle hh;
};

struct pattern {
    unsigned n_segments;
    span segment[MAX_SEGMENTS]; // SPAN_NONE: a parameter
    struct verbs verbs;
};

struct http_routes {
    const struct http_route *const *table;
    size_t n_routes;
    struct literal *literals; // hash
    struct literal *literal_store;
    size_t n_literals;
    struct pattern *patterns;
    size_t n_patterns;
    size_t first[MAX_SEGMENTS + 2]; // patterns of n segments: first[n] .. first[n + 1]
};

// Steps of building, in order.
static void add_literal(struct http_routes *r, const struct http_route *route);
static void add_pattern(struct http_routes *r, const struct http_route *route);
static int compare_patterns(const void *a, const void *b);
static void index_patterns(struct http_routes *r);

// "/a//b/" has the segments "a", "", "b", "".  Returns their number, or 0 when there are
// too many or path does not start with a slash.
static unsigned route_split(span path, span segment[MAX_SEGMENTS])
{
    const char *pos = path.ptr, *end = path.ptr + path.len;
    unsigned n = 0;

    if (path.len == 0 || *pos != '/')
        return 0;
    while (pos < end) {
        const char *from = pos + 1;
        const char *slash = memchr(from, '/', (size_t)(end - from));
        if (n == MAX_SEGMENTS)
            return 0;
        pos = slash ? slash : end;
        segment[n++] = (span){from, (size_t)(pos - from)};
    }
    return n;
}

struct http_routes *http_routes_new(const struct http_route *const *table)
{
    struct http_routes *r = mem_new(struct http_routes);
    r->table = table;
    while (table[r->n_routes])
        r->n_routes++;
    r->patterns = mem_new_array(struct pattern, r->n_routes + 1);
    r->literal_store = mem_new_array(struct literal, r->n_routes + 1);

    for (size_t i = 0; i < r->n_routes; i++) {
        if ((unsigned)table[i]->verb >= N_VERBS || !table[i]->handle)
            BUG("route %s has no verb or no handler", table[i]->path);
        if (strstr(table[i]->path, "/:"))
            add_pattern(r, table[i]);
        else
            add_literal(r, table[i]);
    }
    qsort(r->patterns, r->n_patterns, sizeof *r->patterns, compare_patterns);
    index_patterns(r);
    return r;
}

static void put_verb(struct verbs *v, const struct http_route *route)
{
    if (v->by[route->verb])
        BUG("two routes for %s", route->path);
    v->by[route->verb] = route;
}

static void add_literal(struct http_routes *r, const struct http_route *route)
{
    span path = span_of(route->path);
    struct literal *l;

    HASH_FIND(hh, r->literals, path.ptr, path.len, l);
    if (!l) {
        l = &r->literal_store[r->n_literals++];
        l->path = path;
        HASH_ADD_KEYPTR(hh, r->literals, l->path.ptr, l->path.len, l);
    }
    put_verb(&l->verbs, route);
}

// Routes that differ only in verb or in the names of their parameters share a pattern.
static void add_pattern(struct http_routes *r, const struct http_route *route)
{
    struct pattern fresh = {0};
    unsigned n_params = 0;

    fresh.n_segments = route_split(span_of(route->path), fresh.segment);
    for (unsigned i = 0; i < fresh.n_segments; i++) {
        if (fresh.segment[i].len > 0 && fresh.segment[i].ptr[0] == ':') {
            fresh.segment[i] = SPAN_NONE;
            n_params++;
        }
    }
    if (fresh.n_segments == 0 || n_params > HTTP_MAX_PARAMS)
        BUG("route %s is too complex", route->path);

    struct pattern *p = r->patterns;
    while (p < r->patterns + r->n_patterns && compare_patterns(p, &fresh) != 0)
        p++;
    if (p == r->patterns + r->n_patterns) {
        *p = fresh;
        r->n_patterns++;
    }
    put_verb(&p->verbs, route);
}

// By number of segments; then, from the left, literals before parameters.
static int compare_patterns(const void *a, const void *b)
{
    const struct pattern *p = a, *q = b;

    if (p->n_segments != q->n_segments)
        return p->n_segments < q->n_segments ? -1 : 1;
    for (unsigned i = 0; i < p->n_segments; i++) {
        span s = p->segment[i], t = q->segment[i];
        if (!s.ptr != !t.ptr)
            return s.ptr ? -1 : 1;
        if (!s.ptr)
            continue;
        size_t len = s.len < t.len ? s.len : t.len;
        int order = len > 0 ? memcmp(s.ptr, t.ptr, len) : 0;
        if (order == 0 && s.len != t.len)
            order = s.len < t.len ? -1 : 1;
        if (order != 0)
            return order;
    }
    return 0;
}

static void index_patterns(struct http_routes *r)
{
    size_t i = 0;

    for (unsigned n = 0; n <= MAX_SEGMENTS; n++) {
        r->first[n] = i;
        while (i < r->n_patterns && r->patterns[i].n_segments == n)
            i++;
    }
    r->first[MAX_SEGMENTS + 1] = i;
}

void http_routes_free(struct http_routes *r)
{
    if (!r)
        return;
    HASH_CLEAR(hh, r->literals);
    free(r->literal_store);
    free(r->patterns);
    free(r);
}

size_t http_routes_count(const struct http_routes *r) { return r->n_routes; }

// An empty segment does not match a parameter: "/queues/" differs from "/queues/:name".
static bool route_fits(const struct pattern *p, const span *segment,
                       span params[HTTP_MAX_PARAMS])
{
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_segments; i++) {
        if (p->segment[i].ptr) {
            if (!span_eq(p->segment[i], segment[i]))
                return false;
        } else {
            if (segment[i].len == 0)
                return false;
            params[n++] = segment[i];
        }
    }
    return true;
}

const struct http_route *http_routes_find(const struct http_routes *r, enum http_verb verb,
                                          span path, span params[HTTP_MAX_PARAMS],
                                          bool *other_verb)
{
    span segment[MAX_SEGMENTS] = {SPAN_NONE};
    struct literal *l;
    unsigned want = verb == HTTP_HEAD ? HTTP_GET : verb;

    *other_verb = false;
    HASH_FIND(hh, r->literals, path.ptr, path.len, l);
    if (l && want < N_VERBS && l->verbs.by[want])
        return l->verbs.by[want];
    *other_verb = l != NULL;

    unsigned n = route_split(path, segment);
    if (n == 0)
        return NULL;
    for (size_t i = r->first[n]; i < r->first[n + 1]; i++) {
        const struct pattern *p = &r->patterns[i];
        if (!route_fits(p, segment, params))
            continue;
        if (want < N_VERBS && p->verbs.by[want]) {
            *other_verb = false;
            return p->verbs.by[want];
        }
        *other_verb = true;
    }
    return NULL;
}

unsigned http_routes_verbs(const struct http_routes *r, span path)
{
    unsigned verbs = 0;
    span params[HTTP_MAX_PARAMS];
    bool other;

    for (unsigned v = 0; v < N_VERBS; v++)
        if (http_routes_find(r, (enum http_verb)v, path, params, &other))
            verbs |= 1U << v;
    return verbs;
}

size_t http_route_index(const struct http_routes *r, const struct http_route *route)
{
    size_t i = 0;

    while (r->table[i] != route) {
        i++;
        assert(i < r->n_routes);
    }
    return i;
}
