// sealer.c: what goes in comes out, and nothing else does.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "crypt/sealer.h"

#define A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define B "ffeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

static struct keyring *keys;
static struct sealer *sealer;
static struct buf sealed, opened;

static void use(const char *text)
{
    struct fault f;
    sealer_free(sealer);
    keyring_free(keys);
    assert_int_equal(keyring_parse(span_of(text), &keys, &f), 0);
    sealer = sealer_new(keys);
}

static int teardown(void **state)
{
    (void)state;
    sealer_free(sealer);
    keyring_free(keys);
    sealer = NULL;
    keys = NULL;
    buf_free(&sealed);
    buf_free(&opened);
    return 0;
}

static void every_length_comes_back(void **state)
{
    (void)state;
    char plain[600];
    use("k1:" A);
    for (size_t i = 0; i < sizeof plain; i++)
        plain[i] = (char)i;
    for (size_t len = 0; len <= sizeof plain; len++) {
        buf_reset(&sealed);
        buf_reset(&opened);
        buf_put_lit(&sealed, "before");
        buf_put_lit(&opened, "x");
        sealer_seal(sealer, &sealed, (span){plain, len}, NULL);
        assert_int_equal(sealed.len, 6 + sealer_size(sealer, len, false));
        assert_true(sealer_open(sealer, &opened, (span){sealed.ptr + 6, sealed.len - 6}, NULL));
        assert_int_equal(opened.len, 1 + len);
        assert_memory_equal(opened.ptr + 1, plain, len);
    }
}

static void the_form_is_that_of_the_contract(void **state)
{
    (void)state;
    use("k1:" A);
    sealer_seal(sealer, &sealed, SPAN("{\"a\":1}"), NULL);
    buf_putc(&sealed, '\0');
    assert_memory_equal(sealed.ptr, "{\"encrypted\":\"", 14);
    assert_non_null(strstr(sealed.ptr, "\",\"iv\":\""));
    assert_non_null(strstr(sealed.ptr, "\",\"authTag\":\""));
    assert_non_null(strstr(sealed.ptr, "\",\"keyId\":\"k1\"}"));
}

static void the_same_payload_never_looks_the_same(void **state)
{
    (void)state;
    struct buf again = {0};
    use(A);
    sealer_seal(sealer, &sealed, SPAN("\"secret\""), NULL);
    sealer_seal(sealer, &again, SPAN("\"secret\""), NULL);
    assert_int_equal(sealed.len, again.len);
    assert_memory_not_equal(sealed.ptr, again.ptr, again.len);
    buf_free(&again);
}

static void old_keys_open_and_the_newest_seals(void **state)
{
    (void)state;
    use("old:" A);
    sealer_seal(sealer, &sealed, SPAN("1"), NULL);
    use("new:" B ",old:" A);
    assert_true(sealer_open(sealer, &opened, buf_span(&sealed), NULL));
    assert_memory_equal(opened.ptr, "1", 1);
    buf_reset(&sealed);
    sealer_seal(sealer, &sealed, SPAN("2"), NULL);
    use("old:" A);
    assert_false(sealer_open(sealer, &opened, buf_span(&sealed), NULL));
    assert_int_equal(opened.len, 1);
    use("new:" A); // the id is right, the key is not
    assert_false(sealer_open(sealer, &opened, buf_span(&sealed), NULL));
    use("new:" B);
    assert_true(sealer_open(sealer, &opened, buf_span(&sealed), NULL));
}

// Made with another program: the key of A, an IV of 16 times 7, no keyId, another order,
// spaces.
static void messages_sealed_by_others_are_opened_with_the_fitting_key(void **state)
{
    (void)state;
    use("x:" B ",y:" A);
    assert_true(sealer_open(
        sealer, &opened,
        SPAN("{ \"iv\" : \"BwcHBwcHBwcHBwcHBwcHBw==\" , \"authTag\": "
             "\"pQgWtMLUmCIU74yd71FoPQ==\", \"encrypted\": \"s0q0hJzbz8EUltnhMQ==\" }"),
        NULL));
    assert_int_equal(opened.len, 13);
    assert_memory_equal(opened.ptr, "{\"order\": 12}", 13);
}

static void a_bound_payload_opens_only_for_its_message(void **state)
{
    static const uint8_t name[16] = "the first one.", other[16] = "another.";

    (void)state;
    use("k:" A);
    sealer_seal(sealer, &sealed, SPAN("1"), name);
    assert_int_equal(sealed.len, sealer_size(sealer, 1, true));
    assert_true(sealer_open(sealer, &opened, buf_span(&sealed), name));
    assert_true(sealer_open(sealer, &opened, buf_span(&sealed), NULL));
    assert_int_equal(opened.len, 2);
    assert_false(sealer_open(sealer, &opened, buf_span(&sealed), other));
    // Neither without its name, nor with another one.
    char *at = memmem(sealed.ptr, sealed.len, "\",\"for\":\"", 9);
    assert_non_null(at);
    buf_reset(&opened);
    char was = at[9];
    at[9] = at[9] == 'A' ? 'B' : 'A';
    assert_false(sealer_open(sealer, &opened, buf_span(&sealed), NULL));
    at[9] = was;
    memcpy(at, "\"}", 2);
    assert_false(
        sealer_open(sealer, &opened, (span){sealed.ptr, (size_t)(at - sealed.ptr) + 2}, NULL));
    assert_int_equal(opened.len, 0);
}

static void an_unbound_payload_opens_for_any_message(void **state)
{
    static const uint8_t name[16] = "a message";

    (void)state;
    use("k:" A);
    sealer_seal(sealer, &sealed, SPAN("1"), NULL);
    assert_true(sealer_open(sealer, &opened, buf_span(&sealed), name));
}

static void check_changed_bytes(const uint8_t *name)
{
    use("k:" A);
    sealer_seal(sealer, &sealed, SPAN("{\"amount\":100}"), name);
    for (size_t i = 0; i < sealed.len; i++) {
        for (unsigned bit = 0; bit < 8; bit++) {
            sealed.ptr[i] = (char)(sealed.ptr[i] ^ (1 << bit));
            if (sealer_open(sealer, &opened, buf_span(&sealed), NULL))
                fail_msg("byte %zu, bit %u", i, bit);
            assert_int_equal(opened.len, 0);
            sealed.ptr[i] = (char)(sealed.ptr[i] ^ (1 << bit));
        }
    }
    for (size_t n = 0; n < sealed.len; n++)
        assert_false(sealer_open(sealer, &opened, (span){sealed.ptr, n}, NULL));
    assert_true(sealer_open(sealer, &opened, buf_span(&sealed), NULL));
}

static void every_changed_byte_is_noticed(void **state)
{
    (void)state;
    check_changed_bytes(NULL);
}

static void every_changed_byte_of_a_bound_payload_is_noticed(void **state)
{
    (void)state;
    check_changed_bytes((const uint8_t *)"sixteen bytes...");
}

static void unsealed_text_is_not_opened(void **state)
{
    (void)state;
    static const char *const plain[] = {
        "",
        "null",
        "1",
        "\"x\"",
        "{}",
        "[]",
        "{\"encrypted\":\"\"}",
        "{\"encrypted\":\"AA==\",\"iv\":\"AA==\",\"authTag\":\"AA==\"}",
        "{\"encrypted\":1,\"iv\":2,\"authTag\":3}",
        "{\"encrypted\":\"",
        "{\"encrypted\" ",
        "{",
        "{\"encrypted\":\"\",\"iv\":\"\",\"authTag\":\"\",\"more\":\"\"}"};
    use(A);
    for (unsigned i = 0; i < countof(plain); i++)
        assert_false(sealer_open(sealer, &opened, span_of(plain[i]), NULL));
}

static void missing_room_is_reported(void **state)
{
    (void)state;
    struct buf small = {.max = 64};
    use(A);
    sealer_seal(sealer, &small, SPAN("\"a payload that does not fit\""), NULL);
    assert_true(small.failed);
    assert_int_equal(small.len, 0);
    buf_free(&small);
}

int main(void)
{
#define T(name) cmocka_unit_test_teardown(name, teardown)
    const struct CMUnitTest tests[] = {
        T(every_length_comes_back),
        T(the_form_is_that_of_the_contract),
        T(the_same_payload_never_looks_the_same),
        T(old_keys_open_and_the_newest_seals),
        T(messages_sealed_by_others_are_opened_with_the_fitting_key),
        T(a_bound_payload_opens_only_for_its_message),
        T(an_unbound_payload_opens_for_any_message),
        T(every_changed_byte_is_noticed),
        T(every_changed_byte_of_a_bound_payload_is_noticed),
        T(unsealed_text_is_not_opened),
        T(missing_room_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
