// keys.c: the two kinds of keys never meet, and a segment's keys lie close together.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "base/id.h"
#include "segment/codec.h"
#include "segment/keys.h"

static void assert_key(span txid, bool is_text, const char *expected)
{
    uint8_t key[16];
    char text[37] = "";

    assert_int_equal(key_of_text(txid, key), is_text);
    id_format_uuid(key, text);
    assert_string_equal(text, expected);
}

// Expected keys here and below: as queen.transaction_key() of PostgreSQL 15 gave them.
static void a_canonical_uuid_is_its_own_key(void **state)
{
    (void)state;
    assert_key(SPAN("0190a1b2-c3d4-7e5f-8a6b-0123456789ab"), true,
               "0190a1b2-c3d4-7e5f-8a6b-0123456789ab");
    assert_key(SPAN("f47ac10b-58cc-4372-a567-0e02b2c3d479"), true,
               "f47ac10b-58cc-4372-a567-0e02b2c3d479");
    assert_key(SPAN("00000000-0000-0000-0000-000000000000"), true,
               "00000000-0000-0000-0000-000000000000");
}

static void a_uuid_of_version_8_is_hashed(void **state)
{
    (void)state;
    assert_key(SPAN("0190a1b2-c3d4-8e5f-8a6b-0123456789ab"), false,
               "b315b61c-124e-88cc-93c7-b1c6e7eb9338");
}

static void other_spellings_of_a_uuid_are_hashed(void **state)
{
    (void)state;
    assert_key(SPAN("0190A1B2-C3D4-7E5F-8A6B-0123456789AB"), false,
               "752445b2-6ddf-8c9a-b112-eb691b684070");
    assert_key(SPAN("{0190a1b2-c3d4-7e5f-8a6b-0123456789ab}"), false,
               "5f1cd188-d337-850e-6fd1-94cd230cdc0d");
    assert_key(SPAN("0190a1b2c3d47e5f8a6b0123456789ab"), false,
               "271bc49e-2d41-8989-77d0-de5e7d692da8");
}

static void any_other_text_is_hashed(void **state)
{
    (void)state;
    assert_key(SPAN("order-1"), false, "0bafe221-56d2-898c-143b-86040446d366");
    assert_key(SPAN(""), false, "e3b0c442-98fc-8c14-9afb-f4c8996fb924");
    assert_key(SPAN_NONE, false, "e3b0c442-98fc-8c14-9afb-f4c8996fb924");
    assert_key(SPAN("\xd0\xba\xd0\xbb\xd1\x8e\xd1\x87"), false,
               "1de36a32-af79-8da0-c1ac-9297603a320e");
}

static void every_hashed_key_is_marked_and_no_other(void **state)
{
    (void)state;
    char uuid[] = "f47ac10b-58cc-0372-a567-0e02b2c3d479";
    uint8_t key[16];

    for (unsigned v = 0; v < 16; v++) {
        uuid[14] = "0123456789abcdef"[v];
        bool is_text = key_of_text((span){uuid, 36}, key);
        assert_int_equal(is_text, v != 8);
        assert_int_equal(key[6] >> 4, v);
    }
    for (unsigned i = 0; i < 1000; i++) {
        char text[4] = {(char)('a' + i % 26), (char)('a' + i / 26 % 26), (char)('0' + i / 676)};
        assert_false(key_of_text((span){text, 3}, key));
        assert_int_equal(key[6] >> 4, 8);
        assert_false(id_is_uuid7(key));
    }
}

// ---- the range ----

static const uint8_t *key_at(uint64_t ms, unsigned version)
{
    static uint8_t key[16];

    memset(key, 0xff, sizeof key);
    for (unsigned i = 0; i < 6; i++)
        key[i] = (uint8_t)(ms >> (40 - 8 * i));
    key[6] = (uint8_t)(version << 4 | 0xf);
    return key;
}

static void a_first_key_makes_a_range_of_itself(void **state)
{
    (void)state;
    struct key_range r = {0};

    assert_true(key_range_add(&r, key_at(1700000000000, 7)));
    assert_true(r.any);
    assert_int_equal(r.min_ms, 1700000000000);
    assert_int_equal(r.max_ms, 1700000000000);
}

static void a_range_is_at_most_a_second_wide_upwards(void **state)
{
    (void)state;
    struct key_range r = {0};

    assert_true(key_range_add(&r, key_at(5000, 7)));
    assert_true(key_range_add(&r, key_at(5000 + SEGMENT_KEY_SPAN_MS, 7)));
    assert_false(key_range_add(&r, key_at(5000 + SEGMENT_KEY_SPAN_MS + 1, 7)));
    assert_int_equal(r.min_ms, 5000); // as it was
    assert_int_equal(r.max_ms, 6000);
    assert_false(key_range_add(&r, key_at(4999, 7)));
    assert_true(key_range_add(&r, key_at(5500, 7)));
}

static void a_range_is_at_most_a_second_wide_downwards(void **state)
{
    (void)state;
    struct key_range r = {0};

    assert_true(key_range_add(&r, key_at(5000, 7)));
    assert_false(key_range_add(&r, key_at(3999, 7)));
    assert_true(key_range_add(&r, key_at(4000, 7)));
    assert_int_equal(r.min_ms, 4000);
    assert_int_equal(r.max_ms, 5000);
}

static void the_ends_of_time_do_not_overflow(void **state)
{
    (void)state;
    struct key_range r = {0};

    assert_true(key_range_add(&r, key_at(0, 7)));
    assert_false(key_range_add(&r, key_at((1ull << 48) - 1, 7)));
    r = (struct key_range){0};
    assert_true(key_range_add(&r, key_at((1ull << 48) - 1, 7)));
    assert_int_equal(r.min_ms, (1ull << 48) - 1);
    assert_false(key_range_add(&r, key_at(0, 7)));
}

static void keys_of_other_kinds_have_no_time(void **state)
{
    (void)state;
    struct key_range r = {0};

    for (unsigned version = 0; version < 16; version++)
        if (version != 7)
            assert_true(key_range_add(&r, key_at(99999, version)));
    assert_false(r.any);
    assert_true(key_range_add(&r, key_at(5000, 7)));
    assert_true(key_range_add(&r, key_at(99999, 4)));
    assert_int_equal(r.max_ms, 5000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_canonical_uuid_is_its_own_key),
        cmocka_unit_test(a_uuid_of_version_8_is_hashed),
        cmocka_unit_test(other_spellings_of_a_uuid_are_hashed),
        cmocka_unit_test(any_other_text_is_hashed),
        cmocka_unit_test(every_hashed_key_is_marked_and_no_other),
        cmocka_unit_test(a_first_key_makes_a_range_of_itself),
        cmocka_unit_test(a_range_is_at_most_a_second_wide_upwards),
        cmocka_unit_test(a_range_is_at_most_a_second_wide_downwards),
        cmocka_unit_test(the_ends_of_time_do_not_overflow),
        cmocka_unit_test(keys_of_other_kinds_have_no_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
