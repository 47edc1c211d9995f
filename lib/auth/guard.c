// guard.c: decides about a request by its token, key or certificate, caches valid ones, and
// parks requests that wait for keys.
#include "auth/guard.h"

#include <stdlib.h>

#include "auth/guard_int.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    MAX_KNOWN = 4096,          // limit of cached tokens ...
    MAX_KNOWN_BYTES = 4 << 20, // ... and of their bytes
    WATCH_MS = 100,
    GRACE_MS = 1000, // beyond the fetch's own time limit
};

// A request that waits for keys; in its arena.
struct waiting {
    struct http_req *req;
    span token;
    uint64_t since_ms;
    TAILQ_ENTRY(waiting) link;
};

// Steps of a check, in order. quiet: do not answer the request.
static span token_of(const struct guard *g, struct http_req *req);
static enum verdict guard_decide(struct guard *g, struct http_req *req, span token, bool quiet);
static void park_request(struct guard *g, struct http_req *req, span token);
static void on_api_keys_changed(uv_async_t *async);
static void on_changed(uv_async_t *async);
static void on_guard_watch(uv_timer_t *timer);
static void on_guard_closed(uv_handle_t *handle);

static void keys_changed(void *ctx) { uv_async_send(&((struct guard *)ctx)->changed); }
static void table_changed(void *ctx)
{
    uv_async_send(&((struct guard *)ctx)->api_keys_changed);
}

struct guard *guard_open(uv_loop_t *loop, struct auth *a, struct guard_stats *stats)
{
    struct guard *g = mem_new(struct guard);

    g->auth = a;
    g->loop = loop;
    g->stats = stats;
    TAILQ_INIT(&g->recent);
    TAILQ_INIT(&g->waiting);
    if (uv_async_init(loop, &g->changed, on_changed) != 0 ||
        uv_async_init(loop, &g->api_keys_changed, on_api_keys_changed) != 0)
        BUG("no handle for the guard");
    uv_timer_init(loop, &g->watch);
    g->changed.data = g->watch.data = g->api_keys_changed.data = g;
    g->n_handles = 3;
    g->key_watcher = (struct key_watcher){.changed = table_changed, .ctx = g};
    key_table_watch(a->api_keys, &g->key_watcher);
    g->api_keys = key_table_current(a->api_keys);
    g->watcher = (struct jwks_watcher){.changed = keys_changed, .ctx = g};
    if (a->jwks)
        jwks_watch(a->jwks, &g->watcher);
    return g;
}

// Nothing is protected: see auth_is_protected().
static bool guard_is_open(const struct guard *g)
{
    return !auth_is_protected(g->auth) && key_list_count(g->api_keys) == 0;
}

bool guard_check(void *ctx, struct http_req *req)
{
    struct guard *g = ctx;

    if (guard_is_open(g) || auth_skips(g->auth, http_req_path(req)))
        return true;
    span token = token_of(g, req);
    if (token.len == 0) {
        counter_add(&g->stats->unauthenticated, 1);
        http_reply_header(req, SPAN("WWW-Authenticate"), SPAN("Bearer"));
        http_reply_errf(req, QE_UNAUTHORIZED,
                        http_req_is_foreign(req) && http_req_client_names(req).len > 0
                            ? "a client certificate does not count for web pages of other "
                              "origins; list the origin in QUEEN_CORS_ORIGINS"
                            : "a token is required: Authorization: Bearer ...");
        return false;
    }
    enum verdict v = guard_decide(g, req, token, false);
    if (v == MUST_WAIT)
        park_request(g, req, token);
    return v == ADMITTED;
}

bool guard_refuses(void *ctx, struct http_req *req, bool *admitted)
{
    struct guard *g = ctx;

    *admitted = guard_is_open(g) || auth_skips(g->auth, http_req_path(req));
    if (*admitted)
        return false;
    span token = token_of(g, req);
    enum verdict v = token.len > 0 ? guard_decide(g, req, token, true) : REFUSED;
    *admitted = v == ADMITTED;
    return v == REFUSED;
}

// A client certificate stands for a token: a NUL, which no header contains, then its names. A
// browser adds its certificate to the requests of any page, so it does not count for those.
static span cert_of(const struct guard *g, struct http_req *req)
{
    span names = g->auth->conf.client_roles[0] != '\0' ? http_req_client_names(req) : SPAN_NONE;
    struct buf token = {0};

    if (names.len == 0 || http_req_is_foreign(req))
        return SPAN_NONE;
    buf_putc(&token, '\0');
    buf_put(&token, names);
    span copy = arena_copy(http_req_arena(req), buf_span(&token));
    buf_free(&token);
    return copy;
}

// The word "Bearer" is optional and case-insensitive.
static span token_of(const struct guard *g, struct http_req *req)
{
    span value = str_trim(http_req_header(req, SPAN("Authorization")));
    const span word = SPAN("Bearer ");

    if (value.len >= word.len && str_eq_nocase((span){value.ptr, word.len}, word))
        value = str_trim((span){value.ptr + word.len, value.len - word.len});
    return value.len > 0 ? value : cert_of(g, req);
}

void guard_refuse(struct guard *g, struct http_req *req, const struct fault *f)
{
    if (f->code == QE_UNAUTHORIZED) {
        counter_add(&g->stats->unauthenticated, 1);
        http_reply_header(req, SPAN("WWW-Authenticate"),
                          SPAN("Bearer error=\"invalid_token\""));
    }
    http_reply_fault(req, f);
}

static void guard_forget(struct guard *g, struct known *k)
{
    // NOLINTNEXTLINE(clang-analyzer-core.NullDereference): it does not follow the list's links
    HASH_DELETE(hh, g->known, k);
    TAILQ_REMOVE(&g->recent, k, recent);
    g->known_bytes -= k->n_token + k->n_sub;
    http_identity_unref(&k->access.identity);
}

static void known_free(struct http_identity *id)
{
    struct known *k = container_of(id, struct known, access.identity);

    access_rules_unref(k->access.rules);
    limits_drop(k->access.limit);
    free(k->sub);
    free(k);
}

static struct known *recall(struct guard *g, span token)
{
    struct known *k;

    HASH_FIND(hh, g->known, token.ptr, token.len, k);
    if (!k)
        return NULL;
    if ((!k->is_key && k->version != g->version) ||
        (int64_t)(clock_wall_us() / 1000000) >= k->until_s) {
        guard_forget(g, k);
        return NULL;
    }
    TAILQ_REMOVE(&g->recent, k, recent);
    TAILQ_INSERT_TAIL(&g->recent, k, recent);
    return k;
}

// Every request counts, also one that is not permitted. False: answered with 429, unless quiet,
// when nothing is taken.
static bool is_within_limits(struct guard *g, struct known *k, struct http_req *req, bool quiet)
{
    static const char *const what[LIMIT_KINDS] = {
        [LIMIT_REQUESTS] = "requests per second",
        [LIMIT_BYTES] = "bytes per second",
        [LIMIT_CONNECTIONS] = "connections",
    };
    const struct limits *l = &k->access.limits;
    unsigned wait_s = 1;
    enum limit_kind kind = l->connections > 0 && !http_req_count_connection(
                                                     req, limits_connections(k->access.limit),
                                                     (unsigned)l->connections)
                               ? LIMIT_CONNECTIONS
                           : quiet ? limits_look(k->access.limit, l, clock_mono_us(), &wait_s)
                                   : limits_admit(k->access.limit, l, clock_mono_us(), &wait_s);

    if (kind == LIMIT_NONE || quiet)
        return kind == LIMIT_NONE;
    counter_add(&g->stats->limited[kind], 1);
    http_reply_retry_after(req, wait_s);
    http_reply_errf(req, QE_BUSY, "too many %s of this %s", what[kind],
                    k->is_key ? "key" : "subject");
    return false;
}

static enum verdict guard_decide(struct guard *g, struct http_req *req, span token, bool quiet)
{
    struct known *k = recall(g, token);
    unsigned wait_s;

    if (!k) {
        enum verdict v = token.ptr[0] == '\0'      ? verify_cert(g, req, token, quiet, &k)
                         : api_key_is_meant(token) ? verify_key(g, req, token, quiet, &k)
                                                   : verify_token(g, req, token, quiet, &k);
        if (v != ADMITTED)
            return v;
    }
    if (k->access.limit && !is_within_limits(g, k, req, quiet))
        return REFUSED;
    if (k->access.rules ? !access_permits_head(k->access.rules, req)
                        : k->access.level < http_req_route(req)->access) {
        if (quiet)
            return REFUSED;
        counter_add(&g->stats->forbidden, 1);
        http_req_set_identity(req, &k->access.identity); // for the audit
        http_reply_header(req, SPAN("WWW-Authenticate"),
                          SPAN("Bearer error=\"insufficient_scope\""));
        if (k->access.rules)
            http_reply_errf(req, QE_FORBIDDEN,
                            "the rules of this %s do not permit this request",
                            k->is_key ? "key" : "token");
        else
            http_reply_errf(req, QE_FORBIDDEN,
                            "the role of this %s does not permit this request",
                            k->is_key ? "key" : "token");
        return REFUSED;
    }
    http_req_set_identity(req, &k->access.identity);
    if (k->access.limit && quiet) // guard_check() is not called any more
        limits_admit(k->access.limit, &k->access.limits, clock_mono_us(), &wait_s);
    return ADMITTED;
}

// Checks the cached keys against the new list; those that are gone lose their connections. A
// key never changes: it is only created and revoked.
static void on_api_keys_changed(uv_async_t *async)
{
    struct guard *g = async->data;
    struct known *k, *next;
    const struct key_record *r;
    struct fault f;

    if (!g->api_keys)
        return; // closing
    struct key_list *before = g->api_keys;
    g->api_keys = key_table_current(g->auth->api_keys);
    // The file of rules has changed: all permissions are found again.
    bool same_book = rule_book_equal(key_list_book(before), key_list_book(g->api_keys));
    key_list_unref(before);
    for (k = TAILQ_FIRST(&g->recent); k; k = next) {
        next = TAILQ_NEXT(k, recent);
        bool stays = !k->is_key ||
                     guard_find_key(g->api_keys, (span){k->token, k->n_token}, &r, &f) == 0;
        if (stays && same_book)
            continue;
        if (!stays)
            log_info("auth.key_revoked", "subject=\"%s\"", k->sub);
        http_identity_expel(&k->access.identity);
        guard_forget(g, k);
    }
}

static void known_spent(struct http_identity *id, size_t bytes)
{
    const struct access *a = container_of(id, struct access, identity);

    limits_spend(a->limit, &a->limits, bytes, clock_mono_us());
}

static void set_limits(struct guard *g, struct known *k, const struct jwt_claims *claims)
{
    k->access.limits = claims->has_limits ? claims->limits : g->auth->limits;
    if (limits_are_none(&k->access.limits))
        return;
    k->access.limit = limits_find(g->auth->limit_table, claims->sub, clock_mono_us());
    k->access.identity.spent = k->access.limits.bytes > 0 ? known_spent : NULL;
    if (k->access.limits.stored > 0)
        limits_stored_count(k->access.limit);
}

struct known *guard_remember(struct guard *g, span token, uint64_t version,
                             const struct jwt_claims *claims)
{
    struct known *k;

    while ((k = TAILQ_FIRST(&g->recent)) &&
           (HASH_COUNT(g->known) >= MAX_KNOWN || g->known_bytes > MAX_KNOWN_BYTES))
        guard_forget(g, k);
    k = mem_zalloc(1, sizeof *k + token.len);
    k->version = version;
    k->until_s = claims->until_s;
    k->access.level = claims->level;
    k->n_sub = claims->sub.len;
    k->sub = mem_strndup(claims->sub.ptr ? claims->sub.ptr : "", claims->sub.len);
    k->access.identity.subject = k->n_sub > 0 ? (span){k->sub, k->n_sub} : SPAN_NONE;
    k->access.identity.n_refs = 1;
    k->access.identity.unused = known_free;
    LIST_INIT(&k->access.identity.requests);
    set_limits(g, k, claims);
    k->n_token = token.len;
    memcpy(k->token, token.ptr, token.len);
    HASH_ADD_KEYPTR(hh, g->known, k->token, k->n_token, k);
    TAILQ_INSERT_TAIL(&g->recent, k, recent);
    g->known_bytes += k->n_token + k->n_sub;
    return k;
}

// ---- waiting ----

static void park_request(struct guard *g, struct http_req *req, span token)
{
    struct waiting *w = arena_new(http_req_arena(req), struct waiting);

    *w = (struct waiting){.req = req, .token = token, .since_ms = uv_now(g->loop)};
    TAILQ_INSERT_TAIL(&g->waiting, w, link);
    if (!uv_is_active((uv_handle_t *)&g->watch))
        uv_timer_start(&g->watch, on_guard_watch, WATCH_MS, WATCH_MS);
}

// Only the requests present now: one that must wait again joins the end of the list.
static void on_changed(uv_async_t *async)
{
    struct guard *g = async->data;
    struct waiting *w, *last = TAILQ_LAST(&g->waiting, waiting_list);

    if (g->auth->jwks)
        keyset_unref(jwks_current(g->auth->jwks, &g->version));
    while (last && (w = TAILQ_FIRST(&g->waiting))) {
        bool ends = w == last;
        TAILQ_REMOVE(&g->waiting, w, link);
        enum verdict v = guard_decide(g, w->req, w->token, false);
        if (v == ADMITTED)
            http_req_admit(w->req);
        else if (v == MUST_WAIT)
            TAILQ_INSERT_TAIL(&g->waiting, w, link);
        if (ends)
            break;
    }
}

static void on_guard_watch(uv_timer_t *timer)
{
    struct guard *g = timer->data;
    uint64_t limit_ms = g->auth->conf.jwks_timeout_ms + GRACE_MS, now = uv_now(g->loop);
    struct waiting *w;

    while ((w = TAILQ_FIRST(&g->waiting)) && now - w->since_ms >= limit_ms) {
        TAILQ_REMOVE(&g->waiting, w, link);
        http_reply_err(w->req, QE_KEYS_AWAY);
    }
    if (TAILQ_EMPTY(&g->waiting))
        uv_timer_stop(timer);
}

void guard_close(struct guard *g)
{
    struct waiting *w;

    if (g->auth->jwks)
        jwks_unwatch(g->auth->jwks, &g->watcher);
    while ((w = TAILQ_FIRST(&g->waiting))) {
        TAILQ_REMOVE(&g->waiting, w, link);
        http_reply_err(w->req, QE_STOPPING);
    }
    while (!TAILQ_EMPTY(&g->recent))
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        guard_forget(g, TAILQ_FIRST(&g->recent));
    key_table_unwatch(g->auth->api_keys, &g->key_watcher);
    key_list_unref(g->api_keys);
    g->api_keys = NULL;
    uv_close((uv_handle_t *)&g->api_keys_changed, on_guard_closed);
    uv_close((uv_handle_t *)&g->changed, on_guard_closed);
    uv_close((uv_handle_t *)&g->watch, on_guard_closed);
}

static void on_guard_closed(uv_handle_t *handle)
{
    struct guard *g = handle->data;

    if (--g->n_handles == 0)
        free(g);
}
