// keyring.c: keys as people write them.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "crypt/keyring.h"

#define A "000102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f"
#define B "FFeeddccbbaa99887766554433221100ffeeddccbbaa99887766554433221100"

static struct keyring *k;
static struct fault f;

static int parse(const char *text) { return keyring_parse(span_of(text), &k, &f); }

static void a_bare_key_has_an_id_of_its_own(void **state)
{
    (void)state;
    char id[KEYRING_ID_CHARS + 1];
    assert_int_equal(parse(A), 0);
    assert_int_equal(k->n, 1);
    assert_int_equal(k->key[0].bytes[31], 0x1f);
    assert_int_equal(strlen(k->key[0].id), 8);
    memcpy(id, k->key[0].id, sizeof id);
    keyring_free(k);
    assert_int_equal(parse(" " B " , " A " "), 0); // the same key later in a list: the same id
    assert_int_equal(k->key[0].bytes[0], 0xff);
    assert_string_equal(k->key[1].id, id);
    keyring_free(k);
}

static void several_keys_are_found_by_id(void **state)
{
    (void)state;
    assert_int_equal(parse("2026-b:" B ",old.1_x:" A), 0);
    assert_int_equal(k->n, 2);
    assert_string_equal(k->key[0].id, "2026-b");
    assert_ptr_equal(keyring_find(k, SPAN("old.1_x")), &k->key[1]);
    assert_null(keyring_find(k, SPAN("old")));
    assert_null(keyring_find(k, SPAN("")));
    keyring_free(k);
}

static void an_invalid_key_is_reported_without_showing_it(void **state)
{
    (void)state;
    static const struct {
        const char *text, *says;
    } wrong[] = {
        {"hunter2", "key 1 must have 64"},
        {A "0", "key 1 must have 64"},
        {"x" A, "key 1 must have 64"},
        {"g00102030405060708090a0b0c0d0e0f101112131415161718191a1b1c1d1e1f", "must have 64"},
        {A ",", "key 2 must have 64"},
        {"a:" A ",b:hunter2", "key 2 must have 64"},
        {":" A, "id of key 1"},
        {"a b:" A, "id of key 1"},
        {"a\":" A, "id of key 1"},
        {"123456789012345678901234567890123:" A, "id of key 1"},
        {"a:" A ",a:" B, "the id a must not be used twice"},
        {A "," A, "must not be used twice"},
    };
    for (unsigned i = 0; i < countof(wrong); i++) {
        assert_int_equal(parse(wrong[i].text), QE_CONF);
        assert_null(k);
        if (!strstr(f.text, wrong[i].says) || !strstr(f.text, "QUEEN_ENCRYPTION_KEY") ||
            strstr(f.text, "hunter2") || strstr(f.text, "0001"))
            fail_msg("\"%s\"", f.text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_bare_key_has_an_id_of_its_own),
        cmocka_unit_test(several_keys_are_found_by_id),
        cmocka_unit_test(an_invalid_key_is_reported_without_showing_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
