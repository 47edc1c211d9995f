// jwks.c: when keys are fetched, and the answers until then. This file replaces the fetch.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "auth/jwks.h"
#include "base/clock.h"
#include "base/log.h"
#include "until.h"

#define SET                                                                  \
    "{\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\",\"kid\":\"a\",\"x\":\"" \
    "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo\"}]}"

enum { GAP_MS = 1000 };

static atomic_uint n_fetches, n_told;
static _Atomic bool fails, holds;
static struct jwks *j;

static void hold(bool on)
{
    holds = on;
    state_changed();
}

static int fetch(const char *url, unsigned timeout_ms, struct buf *out, struct fault *f)
{
    (void)url, (void)timeout_ms;
    wait_until(!holds);
    n_fetches++;
    state_changed();
    if (fails)
        return fault_set(f, QE_NOT_FOUND, "away");
    buf_put_lit(out, SET);
    return 0;
}

static void told(void *ctx)
{
    (void)ctx;
    n_told++;
    state_changed();
}

static struct jwks_watcher watcher = {.changed = told};

static void open_with(unsigned refresh_s, unsigned gap_ms, unsigned failed_gap_ms)
{
    struct fault f;
    bool held = holds;

    n_fetches = n_told = 0;
    holds = true; // changes before the watcher was added are not reported
    assert_int_equal(jwks_new(&j,
                              &(struct jwks_conf){.url = "x",
                                                  .refresh_s = refresh_s,
                                                  .gap_ms = gap_ms,
                                                  .failed_gap_ms = failed_gap_ms,
                                                  .fetch = fetch},
                              &f),
                     0);
    jwks_watch(j, &watcher);
    hold(held);
}

static int teardown(void **state)
{
    (void)state;
    clock_release();
    fails = false;
    hold(false);
    jwks_unwatch(j, &watcher);
    jwks_free(j);
    return 0;
}

static void keys_are_fetched_at_start_and_early_requests_wait(void **state)
{
    (void)state;
    uint64_t version;
    holds = true;
    open_with(3600, 60000, 60000);
    assert_null(jwks_current(j, &version));
    assert_int_equal(jwks_want(j, version), JWKS_WAIT);
    assert_int_equal(jwks_want(j, version), JWKS_WAIT);
    hold(false);
    wait_until(n_told >= 1);
    assert_int_equal(jwks_want(j, version), JWKS_NEWER);
    struct keyset *keys = jwks_current(j, &version);
    assert_non_null(keys);
    assert_true(keyset_has(keys, JWT_EDDSA));
    keyset_unref(keys);
    assert_int_equal(n_fetches, 1);
}

static void invented_ids_do_not_cause_a_fetch_each_time(void **state)
{
    (void)state;
    uint64_t version;
    open_with(3600, 60000, 60000);
    wait_until(n_told >= 1);
    keyset_unref(jwks_current(j, &version));
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(jwks_want(j, version), JWKS_NO_KEY);
    assert_int_equal(n_fetches, 1);
}

static void an_unknown_id_causes_a_fetch_after_a_while(void **state)
{
    (void)state;
    uint64_t version;
    clock_freeze(GAP_MS * 1000, 0);
    open_with(3600, GAP_MS, GAP_MS);
    wait_until(n_told >= 1);
    keyset_unref(jwks_current(j, &version));
    clock_advance_us(GAP_MS * 1000 - 1);
    assert_int_equal(jwks_want(j, version), JWKS_NO_KEY);
    clock_advance_us(1);
    assert_int_equal(jwks_want(j, version), JWKS_WAIT);
    wait_until(n_told >= 2);
    assert_int_equal(jwks_want(j, version), JWKS_NEWER);
}

static void keys_that_are_old_are_fetched_again(void **state)
{
    (void)state;
    open_with(1, 60000, 60000);
    wait_until(n_fetches >= 2);
}

static void a_failure_is_reported_and_old_keys_stay(void **state)
{
    (void)state;
    uint64_t version;
    log_setup(LOG_OFF, LOG_TEXT);
    fails = true;
    open_with(3600, 1, 60000);
    wait_until(n_told >= 1);
    assert_null(jwks_current(j, &version));
    assert_int_equal(jwks_want(j, version), JWKS_AWAY);
    assert_int_equal(n_fetches, 1);
    jwks_unwatch(j, &watcher);
    jwks_free(j);

    fails = false;
    clock_freeze(GAP_MS * 1000, 0);
    open_with(3600, GAP_MS, 60000);
    wait_until(n_told >= 1);
    keyset_unref(jwks_current(j, &version));
    fails = true;
    clock_advance_us(GAP_MS * 1000);
    assert_int_equal(jwks_want(j, version), JWKS_WAIT);
    wait_until(n_told >= 2);
    assert_int_equal(jwks_want(j, version), JWKS_AWAY);
    struct keyset *keys = jwks_current(j, &version);
    assert_non_null(keys);
    keyset_unref(keys);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        T(keys_are_fetched_at_start_and_early_requests_wait),
        T(invented_ids_do_not_cause_a_fetch_each_time),
        T(an_unknown_id_causes_a_fetch_after_a_while),
        T(keys_that_are_old_are_fetched_again),
        T(a_failure_is_reported_and_old_keys_stay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
