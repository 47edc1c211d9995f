// guard.c: checks the token of a request, caches valid tokens, and parks requests that wait for
// keys.
#include "auth/guard.h"

#include <stdlib.h>

#include "auth/auth_int.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    MAX_KNOWN = 4096,          // limit of cached tokens ...
    MAX_KNOWN_BYTES = 4 << 20, // ... and of their bytes
    WATCH_MS = 100,
    GRACE_MS = 1000, // beyond the fetch's own time limit
};

// A verified token.
struct known {
    UT_hash_handle hh;
    TAILQ_ENTRY(known) recent;
    uint64_t version; // of the published keys that verified it
    int64_t until_s;
    enum http_access level;
    char *sub;
    size_t n_sub, n_token;
    char token[];
};

// A request that waits for keys; in its arena.
struct waiting {
    struct http_req *req;
    span token;
    uint64_t since_ms;
    TAILQ_ENTRY(waiting) link;
};

TAILQ_HEAD(waiting_list, waiting);

struct guard {
    struct auth *auth;
    uv_loop_t *loop;
    struct known *known;
    TAILQ_HEAD(, known) recent; // least recently used first
    size_t known_bytes;
    uint64_t version; // newest version of the keys that this loop has seen
    struct waiting_list waiting;
    struct jwks_watcher watcher;
    uv_async_t changed;
    uv_timer_t watch; // runs while requests wait
    unsigned n_handles;
};

enum verdict { ADMITTED, REFUSED, MUST_WAIT };

// Steps of a check, in order. quiet: do not answer the request.
static span token_of(struct http_req *req);
static enum verdict guard_decide(struct guard *g, struct http_req *req, span token, bool quiet);
static enum verdict verify(struct guard *g, struct http_req *req, span token, bool quiet,
                           struct known **out);
static struct known *guard_remember(struct guard *g, span token, uint64_t version,
                                    const struct jwt_claims *claims);
static void park(struct guard *g, struct http_req *req, span token);
static void on_changed(uv_async_t *async);
static void on_watch(uv_timer_t *timer);
static void on_guard_closed(uv_handle_t *handle);

static void keys_changed(void *ctx) { uv_async_send(&((struct guard *)ctx)->changed); }

struct guard *guard_open(uv_loop_t *loop, struct auth *a)
{
    struct guard *g = mem_new(struct guard);

    g->auth = a;
    g->loop = loop;
    TAILQ_INIT(&g->recent);
    TAILQ_INIT(&g->waiting);
    if (uv_async_init(loop, &g->changed, on_changed) != 0)
        BUG("no handle for the guard");
    uv_timer_init(loop, &g->watch);
    g->changed.data = g->watch.data = g;
    g->n_handles = 2;
    g->watcher = (struct jwks_watcher){.changed = keys_changed, .ctx = g};
    if (a->jwks)
        jwks_watch(a->jwks, &g->watcher);
    return g;
}

bool guard_check(void *ctx, struct http_req *req)
{
    struct guard *g = ctx;

    if (auth_skips(g->auth, http_req_path(req)))
        return true;
    span token = token_of(req);
    if (token.len == 0) {
        http_reply_header(req, SPAN("WWW-Authenticate"), SPAN("Bearer"));
        http_reply_errf(req, QE_UNAUTHORIZED, "a token is required: Authorization: Bearer ...");
        return false;
    }
    enum verdict v = guard_decide(g, req, token, false);
    if (v == MUST_WAIT)
        park(g, req, token);
    return v == ADMITTED;
}

bool guard_refuses(void *ctx, struct http_req *req, bool *admitted)
{
    struct guard *g = ctx;

    *admitted = auth_skips(g->auth, http_req_path(req));
    if (*admitted)
        return false;
    span token = token_of(req);
    enum verdict v = token.len > 0 ? guard_decide(g, req, token, true) : REFUSED;
    *admitted = v == ADMITTED;
    return v == REFUSED;
}

// The word "Bearer" is optional and case-insensitive.
static span token_of(struct http_req *req)
{
    span value = str_trim(http_req_header(req, SPAN("Authorization")));
    const span word = SPAN("Bearer ");

    if (value.len >= word.len && str_eq_nocase((span){value.ptr, word.len}, word))
        value = str_trim((span){value.ptr + word.len, value.len - word.len});
    return value;
}

static void guard_refuse(struct http_req *req, const struct fault *f)
{
    if (f->code == QE_UNAUTHORIZED)
        http_reply_header(req, SPAN("WWW-Authenticate"),
                          SPAN("Bearer error=\"invalid_token\""));
    http_reply_fault(req, f);
}

static void guard_forget(struct guard *g, struct known *k)
{
    HASH_DELETE(hh, g->known, k);
    TAILQ_REMOVE(&g->recent, k, recent);
    g->known_bytes -= k->n_token + k->n_sub;
    free(k->sub);
    free(k);
}

static struct known *recall(struct guard *g, span token)
{
    struct known *k;

    HASH_FIND(hh, g->known, token.ptr, token.len, k);
    if (!k)
        return NULL;
    if (k->version != g->version || (int64_t)(clock_wall_us() / 1000000) >= k->until_s) {
        guard_forget(g, k);
        return NULL;
    }
    TAILQ_REMOVE(&g->recent, k, recent);
    TAILQ_INSERT_TAIL(&g->recent, k, recent);
    return k;
}

static enum verdict guard_decide(struct guard *g, struct http_req *req, span token, bool quiet)
{
    struct known *k = recall(g, token);

    if (!k) {
        enum verdict v = verify(g, req, token, quiet, &k);
        if (v != ADMITTED)
            return v;
    }
    if (k->level < http_req_route(req)->access) {
        if (quiet)
            return REFUSED;
        http_reply_header(req, SPAN("WWW-Authenticate"),
                          SPAN("Bearer error=\"insufficient_scope\""));
        http_reply_errf(req, QE_FORBIDDEN,
                        "the role of this token does not permit this request");
        return REFUSED;
    }
    if (k->n_sub > 0)
        http_req_set_subject(req, (span){k->sub, k->n_sub});
    return ADMITTED;
}

// The keys for an algorithm: static ones, else the published ones.
static struct keyset *keys_for(struct guard *g, enum jwt_alg alg)
{
    const struct auth *a = g->auth;

    if (alg == JWT_HS256 || !a->jwks)
        return keyset_ref(a->keys);
    return jwks_current(a->jwks, &g->version);
}

static enum verdict verify(struct guard *g, struct http_req *req, span token, bool quiet,
                           struct known **out)
{
    const struct auth *a = g->auth;
    struct arena *arena = http_req_arena(req);
    struct jwt t;
    struct jwt_claims claims;
    struct fault f = {0};

    int rc = jwt_parse(token, arena, &t, &f);
    if (rc == 0 && !auth_takes(a, t.alg))
        rc = fault_set(&f, QE_UNAUTHORIZED, "invalid token: its algorithm is not accepted");
    while (rc == 0) {
        struct keyset *keys = keys_for(g, t.alg);
        rc = keys ? keyset_verify(keys, &t) : QE_NOT_FOUND;
        keyset_unref(keys);
        if (rc != QE_NOT_FOUND)
            break;
        enum jwks_answer what =
            a->jwks && t.alg != JWT_HS256 ? jwks_want(a->jwks, g->version) : JWKS_NO_KEY;
        if (what == JWKS_WAIT)
            return MUST_WAIT;
        if (what == JWKS_AWAY)
            rc = fault_set(&f, QE_KEYS_AWAY, "%s", err_text(QE_KEYS_AWAY));
        else if (what == JWKS_NO_KEY)
            rc = fault_set(&f, QE_UNAUTHORIZED, "invalid token: its key is unknown");
        else
            rc = 0; // JWKS_NEWER: try again
    }
    if (rc == QE_UNAUTHORIZED && f.code == 0)
        fault_set(&f, rc, "invalid token: its signature is invalid");
    if (rc == 0)
        rc = jwt_check(&t, &a->conf.rules, (int64_t)(clock_wall_us() / 1000000), arena, &claims,
                       &f);
    if (rc != 0) {
        log_debug("auth.refused", "why=\"%s\"", f.text);
        if (!quiet)
            guard_refuse(req, &f);
        return REFUSED;
    }
    log_debug("auth.accepted", "sub=\"" SPAN_FMT "\" username=\"" SPAN_FMT "\" level=%d",
              SPAN_ARG(claims.sub), SPAN_ARG(claims.username), (int)claims.level);
    *out = guard_remember(g, token, g->version, &claims);
    return ADMITTED;
}

static struct known *guard_remember(struct guard *g, span token, uint64_t version,
                                    const struct jwt_claims *claims)
{
    struct known *k;

    while ((k = TAILQ_FIRST(&g->recent)) &&
           (HASH_COUNT(g->known) >= MAX_KNOWN || g->known_bytes > MAX_KNOWN_BYTES))
        guard_forget(g, k);
    k = mem_zalloc(1, sizeof *k + token.len);
    k->version = version;
    k->until_s = claims->until_s;
    k->level = claims->level;
    k->n_sub = claims->sub.len;
    k->sub = mem_strndup(claims->sub.ptr ? claims->sub.ptr : "", claims->sub.len);
    k->n_token = token.len;
    memcpy(k->token, token.ptr, token.len);
    HASH_ADD_KEYPTR(hh, g->known, k->token, k->n_token, k);
    TAILQ_INSERT_TAIL(&g->recent, k, recent);
    g->known_bytes += k->n_token + k->n_sub;
    return k;
}

// ---- waiting ----

static void park(struct guard *g, struct http_req *req, span token)
{
    struct waiting *w = arena_new(http_req_arena(req), struct waiting);

    *w = (struct waiting){.req = req, .token = token, .since_ms = uv_now(g->loop)};
    TAILQ_INSERT_TAIL(&g->waiting, w, link);
    if (!uv_is_active((uv_handle_t *)&g->watch))
        uv_timer_start(&g->watch, on_watch, WATCH_MS, WATCH_MS);
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

static void on_watch(uv_timer_t *timer)
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
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): false positive, it does not follow the
        // list
        guard_forget(g, TAILQ_FIRST(&g->recent));
    uv_close((uv_handle_t *)&g->changed, on_guard_closed);
    uv_close((uv_handle_t *)&g->watch, on_guard_closed);
}

static void on_guard_closed(uv_handle_t *handle)
{
    struct guard *g = handle->data;

    if (--g->n_handles == 0)
        free(g);
}
