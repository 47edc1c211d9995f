// verify.c: verifies a token, an API key or the names of a client certificate, and finds the
// permissions that come with it.
#include "auth/guard_int.h"

#include <assert.h>

#include "auth/client_cert.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"

// The rules of an identity: its own, and those of the file for its subject. *rules is NULL if
// there are none.
static int rules_of(struct guard *g, span own, span subject, struct access_rules **rules,
                    struct fault *f)
{
    span more = rule_book_find(key_list_book(g->api_keys), subject);
    struct buf text = {0};

    *rules = NULL;
    if (!own.ptr && !more.ptr)
        return 0;
    if (own.ptr)
        buf_put(&text, own);
    if (own.ptr && more.ptr)
        buf_putc(&text, ',');
    if (more.ptr)
        buf_put(&text, more);
    int rc = access_rules_parse(buf_span(&text), rules, f);
    if (rc != 0) {
        f->code = rc = QE_UNAUTHORIZED;
        fault_prefix(f, "invalid permissions: ");
    }
    buf_free(&text);
    return rc;
}

// The keys for an algorithm: static ones, else the published ones.
static struct keyset *keys_for(struct guard *g, enum jwt_alg alg)
{
    const struct auth *a = g->auth;

    if (alg == JWT_HS256 || !a->jwks)
        return keyset_ref(a->keys);
    return jwks_current(a->jwks, &g->version);
}

enum verdict verify_token(struct guard *g, struct http_req *req, span token, bool quiet,
                          struct known **out)
{
    const struct auth *a = g->auth;
    struct arena *arena = http_req_arena(req);
    struct jwt t = {0};
    struct jwt_claims claims = {0};
    struct fault f = {0};

    int rc = a->conf.jwt
                 ? jwt_parse(token, arena, &t, &f)
                 : fault_set(&f, QE_UNAUTHORIZED,
                             "invalid key: this server accepts API keys, which start with qk_");
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
    // Subjects of keys and certificates have rules, limits and audit records of their own.
    if (rc == 0 &&
        (str_starts(claims.sub, SPAN("key:")) || str_starts(claims.sub, SPAN("cert:"))))
        rc = fault_set(&f, QE_UNAUTHORIZED,
                       "invalid token: its subject must not begin with key: or cert:");
    struct access_rules *rules = NULL;
    if (rc == 0)
        rc = rules_of(g, claims.rules, claims.sub, &rules, &f);
    if (rc != 0) {
        log_debug("auth.refused", "why=\"%s\"", f.text);
        if (!quiet)
            guard_refuse(g, req, &f);
        return REFUSED;
    }
    log_debug("auth.accepted", "sub=\"" SPAN_FMT "\" username=\"" SPAN_FMT "\" level=%d",
              SPAN_ARG(claims.sub), SPAN_ARG(claims.username), (int)claims.level);
    *out = guard_remember(g, token, g->version, &claims);
    (*out)->access.rules = rules;
    return ADMITTED;
}

int guard_find_key(const struct key_list *l, span token, const struct key_record **r,
                   struct fault *f)
{
    static const uint8_t no_hash[API_KEY_HASH];
    span id = api_key_id(token);

    *r = id.ptr ? key_list_find(l, id) : NULL;
    // An unknown id costs the same hash as a known one.
    bool matches = api_key_matches(token, *r ? (*r)->hash : no_hash);
    if (id.ptr && !*r && !key_list_is_loaded(l))
        return fault_set(f, QE_KEYS_AWAY, "%s", err_text(QE_KEYS_AWAY));
    if (!*r || !matches)
        return fault_set(f, QE_UNAUTHORIZED, "invalid key: it is unknown or was revoked");
    if ((int64_t)(clock_wall_us() / 1000000) >= (*r)->until_s)
        return fault_set(f, QE_UNAUTHORIZED, "invalid key: it has expired");
    return 0;
}

// The subject has a prefix that distinguishes keys from the subjects of tokens.
enum verdict verify_key(struct guard *g, struct http_req *req, span token, bool quiet,
                        struct known **out)
{
    const struct key_record *r = NULL;
    struct access_rules *rules = NULL;
    struct fault f = {0};
    struct buf sub = {0};

    int rc = guard_find_key(g->api_keys, token, &r, &f);
    if (rc == 0) {
        assert(r);
        buf_put_lit(&sub, "key:");
        buf_put(&sub, r->name);
        rc = rules_of(g, r->rules, buf_span(&sub), &rules, &f);
    }
    if (rc != 0) {
        log_debug("auth.refused", "why=\"%s\"", f.text);
        if (!quiet)
            guard_refuse(g, req, &f);
        buf_free(&sub);
        return REFUSED;
    }
    *out = guard_remember(g, token, 0,
                          &(struct jwt_claims){.sub = buf_span(&sub),
                                               .level = r->level,
                                               .until_s = r->until_s,
                                               .limits = r->limits,
                                               .has_limits = r->has_limits});
    (*out)->is_key = true;
    (*out)->access.rules = rules;
    buf_free(&sub);
    return ADMITTED;
}

// The TLS library has verified the certificate; a rule must give it a role.
enum verdict verify_cert(struct guard *g, struct http_req *req, span token, bool quiet,
                         struct known **out)
{
    struct jwt_claims claims = {.until_s = INT64_MAX};
    struct access_rules *rules = NULL;
    struct buf sub = {0};
    struct fault f = {0};
    span name;

    if (!client_roles_find(g->auth->conf.client_roles, (span){token.ptr + 1, token.len - 1},
                           &name, &claims.level)) {
        if (quiet)
            return REFUSED;
        counter_add(&g->stats->forbidden, 1);
        http_reply_errf(req, QE_FORBIDDEN,
                        "no rule of QUEEN_TLS_CLIENT_ROLES fits the client certificate");
        return REFUSED;
    }
    buf_put_lit(&sub, "cert:");
    buf_put(&sub, name);
    claims.sub = buf_span(&sub);
    if (rules_of(g, SPAN_NONE, claims.sub, &rules, &f) != 0) {
        if (!quiet)
            guard_refuse(g, req, &f);
        buf_free(&sub);
        return REFUSED;
    }
    *out = guard_remember(g, token, g->version, &claims);
    (*out)->access.rules = rules;
    buf_free(&sub);
    return ADMITTED;
}
