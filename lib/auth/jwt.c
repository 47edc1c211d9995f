// jwt.c: parses tokens (compact form), their headers and claims.
#include "auth/jwt.h"

#include <math.h>

#include "auth/revoked.h"
#include "base/base64.h"
#include "base/buf.h"
#include "base/str.h"
#include "json/scan.h"

enum { MAX_SUB_BYTES = 1024 };

static int jwt_bad(struct fault *f, const char *what)
{
    return fault_set(f, QE_UNAUTHORIZED, "invalid token: %s", what);
}

// ---- the form ----

static bool jwt_decode(struct arena *a, span text, span *bytes)
{
    uint8_t *out = arena_alloc(a, text.len / 4 * 3 + 3);
    size_t n;

    if (!base64_decode_url(text, out, &n))
        return false;
    *bytes = (span){(const char *)out, n};
    return true;
}

static const char *const alg_names[JWT_ALGS] = {
    [JWT_HS256] = "HS256", [JWT_RS256] = "RS256", [JWT_EDDSA] = "EdDSA",
    [JWT_ES256] = "ES256", [JWT_ES384] = "ES384", [JWT_ES512] = "ES512",
    [JWT_PS256] = "PS256", [JWT_PS384] = "PS384", [JWT_PS512] = "PS512",
};

const char *jwt_alg_name(enum jwt_alg alg) { return alg_names[alg]; }

bool jwt_alg_find(span name, enum jwt_alg *alg)
{
    for (unsigned i = 0; i < JWT_ALGS; i++) {
        if (span_eq(name, span_of(alg_names[i]))) {
            *alg = (enum jwt_alg)i;
            return true;
        }
    }
    return false;
}

static int read_header(span header, struct arena *a, struct jwt *t, struct fault *f)
{
    struct js j = js_read(header);
    bool has_alg = false, has_crit = false;
    span key;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        bool is_text = js_type_of(raw) == JS_STRING;
        if (js_key_is(key, SPAN("alg")))
            has_alg = is_text && jwt_alg_find(js_text(raw, a), &t->alg);
        else if (js_key_is(key, SPAN("kid")))
            t->kid = is_text ? js_text(raw, a) : SPAN_NONE;
        else if (js_key_is(key, SPAN("crit")))
            has_crit = true;
    }
    if (js_finish(&j) != 0)
        return jwt_bad(f, "its header is not a JSON object");
    if (has_crit) // lists extensions that a verifier must support; we support none
        return jwt_bad(f, "its header requires extensions");
    if (!has_alg)
        return jwt_bad(f, "its algorithm is not accepted");
    return 0;
}

int jwt_parse(span token, struct arena *a, struct jwt *t, struct fault *f)
{
    span rest = token, part[3], header;

    *t = (struct jwt){.kid = SPAN_NONE};
    for (unsigned i = 0; i < 3; i++)
        if (!str_split(&rest, '.', &part[i]))
            return jwt_bad(f, "it does not have three parts");
    if (rest.ptr)
        return jwt_bad(f, "it does not have three parts");
    t->signed_part = (span){token.ptr, part[0].len + 1 + part[1].len};
    if (!jwt_decode(a, part[0], &header) || !jwt_decode(a, part[1], &t->claims) ||
        !jwt_decode(a, part[2], &t->signature))
        return jwt_bad(f, "it is not base64url");
    return read_header(header, a, t, f);
}

// ---- the claims ----

// Claims as found in the token; SPAN_NONE: absent.
struct found {
    span exp, nbf, iat, iss, aud, sub, jti, username, role, roles;
    span rules, limits;
};

static int jwt_find(span text, const struct jwt_rules *rules, struct found *c, struct fault *f)
{
    struct js j = js_read(text);
    span key;

    *c = (struct found){0};
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        struct {
            span name;
            span *to;
        } const wanted[] = {
            {SPAN("exp"), &c->exp},           {SPAN("nbf"), &c->nbf},
            {SPAN("iat"), &c->iat},           {SPAN("iss"), &c->iss},
            {SPAN("aud"), &c->aud},           {SPAN("sub"), &c->sub},
            {SPAN("username"), &c->username}, {rules->role_claim, &c->role},
            {rules->roles_claim, &c->roles},  {SPAN("jti"), &c->jti},
            {rules->rules_claim, &c->rules},  {rules->limits_claim, &c->limits},
        };
        for (unsigned i = 0; i < countof(wanted); i++) // two settings may name the same claim
            if (js_key_is(key, wanted[i].name))
                *wanted[i].to = raw;
    }
    return js_finish(&j) == 0 ? 0 : jwt_bad(f, "its claims are not a JSON object");
}

// A NumericDate may have a fraction. false: present, but not a number.
static bool date_of(span raw, double *at)
{
    if (js_type_of(raw) != JS_NUMBER)
        return false;
    return str_parse_double(raw, at) && isfinite(*at);
}

static int check_times(const struct found *c, const struct jwt_rules *rules, int64_t now_s,
                       int64_t *until_s, struct fault *f)
{
    double now = (double)now_s, skew = (double)rules->skew_s, at;

    *until_s = INT64_MAX;
    if (!c->exp.ptr && rules->require_exp)
        return fault_set(f, QE_UNAUTHORIZED, "the token has no exp");
    if (c->exp.ptr) {
        if (!date_of(c->exp, &at))
            return jwt_bad(f, "exp is not a number");
        if (at <= now - skew)
            return fault_set(f, QE_UNAUTHORIZED, "the token has expired");
        if (at + skew < 9e18)
            *until_s = (int64_t)ceil(at + skew);
    }
    if (c->nbf.ptr) {
        if (!date_of(c->nbf, &at))
            return jwt_bad(f, "nbf is not a number");
        if (at > now + skew)
            return fault_set(f, QE_UNAUTHORIZED, "the token is not valid yet");
    }
    if (c->iat.ptr) {
        if (!date_of(c->iat, &at))
            return jwt_bad(f, "iat is not a number");
        if (at > now + skew)
            return fault_set(f, QE_UNAUTHORIZED, "the token was issued in the future");
    }
    return 0;
}

static bool is_text(span raw, span wanted, struct arena *a)
{
    return js_type_of(raw) == JS_STRING && span_eq(js_text(raw, a), wanted);
}

// raw is a string equal to the wanted text, or an array that contains it.
static bool holds_text(span raw, span wanted, struct arena *a)
{
    if (js_type_of(raw) != JS_ARRAY)
        return is_text(raw, wanted, a);

    struct js j = js_read(raw);
    bool found = false;
    js_enter_array(&j);
    while (js_next_item(&j))
        found |= is_text(js_skip(&j), wanted, a);
    return found;
}

static enum http_access level_of(const struct found *c, const struct jwt_rules *rules,
                                 struct arena *a)
{
    const span roles[] = {rules->role_admin, rules->role_write, rules->role_read};

    for (unsigned i = 0; i < countof(roles); i++) {
        if (roles[i].len == 0)
            continue;
        if (is_text(c->role, roles[i], a) ||
            (js_type_of(c->roles) == JS_ARRAY && holds_text(c->roles, roles[i], a)))
            return (enum http_access)(ACCESS_ADMIN - i);
    }
    return ACCESS_PUBLIC;
}

static span text_of(span raw, struct arena *a)
{
    span text = js_type_of(raw) == JS_STRING ? js_text(raw, a) : SPAN_NONE;

    return text.len > 0 ? text : SPAN_NONE;
}

// A token without an id could not be revoked, so it is refused where tokens can be.
static int check_revoked(const struct found *c, const struct jwt_rules *rules, int64_t now_s,
                         struct arena *a, int64_t *until_s, struct fault *f)
{
    if (!rules->revoked)
        return 0;
    span jti = text_of(c->jti, a);
    if (!jti.ptr)
        return jwt_bad(f, "it has no jti");
    if (revoked_has(rules->revoked, jti))
        return fault_set(f, QE_UNAUTHORIZED, "the token was revoked");
    if (*until_s > now_s + REVOKED_KEEP_S)
        *until_s = now_s + REVOKED_KEEP_S;
    return 0;
}

// A list becomes one text, separated by commas. A list without rules permits nothing.
static bool rules_of(span raw, struct arena *a, span *text)
{
    struct buf all = {0};
    bool good = true;

    if (js_type_of(raw) == JS_STRING) {
        *text = js_text(raw, a);
        return true;
    }
    if (js_type_of(raw) != JS_ARRAY)
        return false;
    struct js j = js_read(raw);
    js_enter_array(&j);
    while (js_next_item(&j)) {
        span item = js_skip(&j);
        good = good && js_type_of(item) == JS_STRING;
        if (all.len > 0)
            buf_putc(&all, ',');
        if (good)
            buf_put(&all, js_text(item, a));
    }
    *text = all.len > 0 ? arena_copy(a, buf_span(&all)) : SPAN("");
    buf_free(&all);
    return good;
}

int jwt_check(const struct jwt *t, const struct jwt_rules *rules, int64_t now_s,
              struct arena *a, struct jwt_claims *claims, struct fault *f)
{
    struct found c;

    int rc = jwt_find(t->claims, rules, &c, f);
    if (rc == 0)
        rc = check_times(&c, rules, now_s, &claims->until_s, f);
    if (rc != 0)
        return rc;
    if (rules->issuer.len > 0 && !is_text(c.iss, rules->issuer, a))
        return fault_set(f, QE_UNAUTHORIZED, "the token has a different issuer");
    if (rules->audience.len > 0 && !holds_text(c.aud, rules->audience, a))
        return fault_set(f, QE_UNAUTHORIZED, "the token is for a different audience");
    rc = check_revoked(&c, rules, now_s, a, &claims->until_s, f);
    if (rc != 0)
        return rc;
    claims->sub = text_of(c.sub, a);
    // written into messages: if cut, it would name a different subject
    if (claims->sub.len > MAX_SUB_BYTES)
        return jwt_bad(f, "sub is too long");
    claims->username = text_of(c.username, a);
    claims->level = level_of(&c, rules, a);
    if (rules->rules_claim.len == 0 || !c.rules.ptr)
        claims->rules = SPAN_NONE;
    else if (!rules_of(c.rules, a, &claims->rules))
        return jwt_bad(f, "its rules are neither a text nor a list of texts");
    claims->has_limits = rules->limits_claim.len > 0 && c.limits.ptr;
    if (claims->has_limits && (js_type_of(c.limits) != JS_STRING ||
                               limits_parse(js_text(c.limits, a), &claims->limits, f) != 0))
        return jwt_bad(f, "its limits are invalid");
    return 0;
}
