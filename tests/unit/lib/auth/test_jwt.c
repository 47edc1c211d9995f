// jwt.c: what is a token, and what its claims allow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "auth/jwt.h"
#include "base/base64.h"
#include "base/buf.h"

enum { NOW = 1000000 };

static struct arena a;
static struct jwt t;
static struct jwt_claims claims;
static struct fault f;
static struct jwt_rules rules;

static int setup(void **state)
{
    (void)state;
    rules = (struct jwt_rules){.skew_s = 30,
                               .role_claim = SPAN("role"),
                               .roles_claim = SPAN("roles"),
                               .role_admin = SPAN("admin"),
                               .role_write = SPAN("read-write"),
                               .role_read = SPAN("read-only")};
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&a);
    return 0;
}

static span encoded(const char *text)
{
    size_t n = strlen(text);
    char *out = arena_alloc(&a, BASE64_SIZE(n) + 1);
    base64_encode((const uint8_t *)text, n, out);
    for (char *c = out; *c; c++)
        *c = *c == '+' ? '-' : *c == '/' ? '_' : *c;
    return (span){out, strcspn(out, "=")};
}

static int parse(const char *header)
{
    struct buf b = {0};
    buf_put(&b, encoded(header));
    buf_putc(&b, '.');
    buf_put(&b, encoded("{\"sub\":\"x\"}"));
    buf_put_lit(&b, ".c2ln");
    span token = arena_copy(&a, buf_span(&b));
    buf_free(&b);
    return jwt_parse(token, &a, &t, &f);
}

static int check(const char *text)
{
    struct jwt token = {.claims = span_of(text)};
    return jwt_check(&token, &rules, NOW, &a, &claims, &f);
}

static void a_token_is_taken_apart(void **state)
{
    (void)state;
    assert_int_equal(parse("{\"alg\":\"RS256\",\"typ\":\"JWT\",\"kid\":\"k\\u0031\"}"), 0);
    assert_int_equal(t.alg, JWT_RS256);
    assert_true(span_eq(t.kid, SPAN("k1")));
    assert_true(span_eq(t.claims, SPAN("{\"sub\":\"x\"}")));
    assert_true(span_eq(t.signature, SPAN("sig")));
    assert_int_equal(t.signed_part.ptr[t.signed_part.len], '.');
    assert_int_equal(parse("{\"alg\":\"EdDSA\"}"), 0);
    assert_int_equal(t.alg, JWT_EDDSA);
    assert_null(t.kid.ptr);
}

static void other_algorithms_are_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "{\"alg\":\"none\"}",
        "{\"alg\":\"None\"}",
        "{\"alg\":\"\"}",
        "{}",
        "{\"alg\":null}",
        "{\"alg\":\"hs256\"}",
        "{\"alg\":\"HS512\"}",
        "{\"alg\":\"RS384\"}",
        "{\"alg\":\"RS512\"}",
        "{\"alg\":\"ES256K\"}",
        "{\"alg\":\"es256\"}",
        "{\"alg\":\"PS1\"}",
        "{\"alg\":\"ES256\\u0000\"}",
        "{\"alg\":[\"HS256\"]}",
        "{\"alg\":\"HS256\",\"alg\":\"none\"}",
        "{\"alg\":\"HS256\",\"crit\":[\"b64\"],\"b64\":false}",
        "[]",
        "\"HS256\"",
        "{\"alg\":",
        "{\"alg\":\"HS256\"}x",
        "{\"alg\":\"HS256\"}{}",
    };
    for (unsigned i = 0; i < countof(wrong); i++)
        if (parse(wrong[i]) != QE_UNAUTHORIZED)
            fail_msg("accepted: %s", wrong[i]);
}

static void a_text_without_three_parts_is_not_a_token(void **state)
{
    (void)state;
    static const char *const wrong[] = {"",        ".",           "..",
                                        "a",       "a.b",         "a.b.c.d",
                                        "e30.e30", "e30.e30.",    "e30.e30.c2ln.",
                                        "=.=.=",   "e30 .e30.e30"};
    for (unsigned i = 0; i < countof(wrong); i++)
        if (jwt_parse(span_of(wrong[i]), &a, &t, &f) != QE_UNAUTHORIZED)
            fail_msg("accepted: %s", wrong[i]);
    assert_int_equal(jwt_parse(SPAN_NONE, &a, &t, &f), QE_UNAUTHORIZED);
}

static void times_count_with_their_skew(void **state)
{
    (void)state;
    assert_int_equal(check("{}"), 0);
    assert_true(claims.until_s == INT64_MAX);
    assert_int_equal(check("{\"exp\":999971}"), 0); // now - skew < exp
    assert_int_equal(claims.until_s, 1000001);
    assert_int_equal(check("{\"exp\":999970}"), QE_UNAUTHORIZED);
    assert_non_null(strstr(f.text, "expired"));
    assert_int_equal(check("{\"exp\":999970.5}"), 0);
    assert_int_equal(check("{\"exp\":1e300}"), 0);
    assert_true(claims.until_s == INT64_MAX);
    assert_int_equal(check("{\"nbf\":1000030,\"iat\":1000030}"), 0);
    assert_int_equal(check("{\"nbf\":1000031}"), QE_UNAUTHORIZED);
    assert_int_equal(check("{\"iat\":1000031}"), QE_UNAUTHORIZED);
    static const char *const odd[] = {"{\"exp\":\"1000100\"}",
                                      "{\"exp\":null}",
                                      "{\"exp\":true}",
                                      "{\"nbf\":\"1\"}",
                                      "{\"iat\":{}}",
                                      "[]",
                                      "1",
                                      "{\"exp\":1000100"};
    for (unsigned i = 0; i < countof(odd); i++)
        if (check(odd[i]) != QE_UNAUTHORIZED)
            fail_msg("accepted: %s", odd[i]);
}

static void an_expiry_is_required_when_configured(void **state)
{
    (void)state;
    rules.require_exp = true;
    assert_int_equal(check("{}"), QE_UNAUTHORIZED);
    assert_non_null(strstr(f.text, "no exp"));
    assert_int_equal(check("{\"exp\":1000100}"), 0);
}

static void issuer_and_audience_are_checked_if_configured(void **state)
{
    (void)state;
    rules.issuer = SPAN("me");
    rules.audience = SPAN("queen");
    assert_int_equal(check("{\"iss\":\"me\",\"aud\":\"queen\"}"), 0);
    assert_int_equal(check("{\"iss\":\"me\",\"aud\":[\"x\",\"queen\"]}"), 0);
    static const char *const wrong[] = {"{\"aud\":\"queen\"}",
                                        "{\"iss\":\"you\",\"aud\":\"queen\"}",
                                        "{\"iss\":\"me\"}",
                                        "{\"iss\":\"me\",\"aud\":\"queens\"}",
                                        "{\"iss\":\"me\",\"aud\":[]}",
                                        "{\"iss\":\"me\",\"aud\":[[\"queen\"]]}",
                                        "{\"iss\":[\"me\"],\"aud\":\"queen\"}"};
    for (unsigned i = 0; i < countof(wrong); i++)
        if (check(wrong[i]) != QE_UNAUTHORIZED)
            fail_msg("accepted: %s", wrong[i]);
}

static void the_strongest_role_of_both_claims_counts(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum http_access level;
    } cases[] = {
        {"{}", ACCESS_PUBLIC},
        {"{\"role\":\"read-only\"}", ACCESS_READ_ONLY},
        {"{\"role\":\"read-write\"}", ACCESS_READ_WRITE},
        {"{\"role\":\"admin\"}", ACCESS_ADMIN},
        {"{\"role\":\"Admin\"}", ACCESS_PUBLIC},
        {"{\"roles\":[\"read-only\",\"other\"]}", ACCESS_READ_ONLY},
        {"{\"role\":\"read-only\",\"roles\":[\"x\",\"read-write\"]}", ACCESS_READ_WRITE},
        {"{\"role\":\"admin\",\"roles\":[\"read-only\"]}", ACCESS_ADMIN},
        {"{\"role\":[\"admin\"]}", ACCESS_PUBLIC},
        {"{\"roles\":\"admin\"}", ACCESS_PUBLIC},
        {"{\"roles\":[1,null,{\"role\":\"admin\"}]}", ACCESS_PUBLIC},
        {"{\"role\":\"\"}", ACCESS_PUBLIC},
    };
    for (unsigned i = 0; i < countof(cases); i++) {
        assert_int_equal(check(cases[i].text), 0);
        if (claims.level != cases[i].level)
            fail_msg("%s: %d", cases[i].text, (int)claims.level);
    }
    rules.role_admin = SPAN("");
    assert_int_equal(check("{\"role\":\"\"}"), 0);
    assert_int_equal(claims.level, ACCESS_PUBLIC);
}

static void the_subject_is_a_text_or_absent(void **state)
{
    (void)state;
    assert_int_equal(check("{\"sub\":\"us\\u0065r\",\"username\":\"U\"}"), 0);
    assert_true(span_eq(claims.sub, SPAN("user")));
    assert_true(span_eq(claims.username, SPAN("U")));
    assert_int_equal(check("{\"sub\":\"\"}"), 0);
    assert_null(claims.sub.ptr);
    assert_int_equal(check("{\"sub\":7}"), 0);
    assert_null(claims.sub.ptr);
    assert_int_equal(check("{\"sub\":\"a\\u0000b\"}"), QE_UNAUTHORIZED);
    char text[1200] = "{\"sub\":\"";
    memset(text + 8, 'x', 1025);
    strcpy(text + 8 + 1025, "\"}");
    assert_int_equal(check(text), QE_UNAUTHORIZED);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_token_is_taken_apart),
        T(other_algorithms_are_refused),
        T(a_text_without_three_parts_is_not_a_token),
        T(times_count_with_their_skew),
        T(an_expiry_is_required_when_configured),
        T(issuer_and_audience_are_checked_if_configured),
        T(the_strongest_role_of_both_claims_counts),
        T(the_subject_is_a_text_or_absent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
