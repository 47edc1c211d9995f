// base64.c: both alphabets, and nothing that only looks like it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "base/base64.h"

static void the_examples_of_the_standard(void **state)
{
    (void)state;
    static const char *const pairs[][2] = {
        {"", ""},
        {"f", "Zg=="},
        {"fo", "Zm8="},
        {"foo", "Zm9v"},
        {"foob", "Zm9vYg=="},
        {"fooba", "Zm9vYmE="},
        {"foobar", "Zm9vYmFy"},
    };
    for (unsigned i = 0; i < countof(pairs); i++) {
        char text[16] = "";
        uint8_t back[16];
        size_t len = strlen(pairs[i][0]), n;
        base64_encode((const uint8_t *)pairs[i][0], len, text);
        assert_int_equal(BASE64_SIZE(len), strlen(pairs[i][1]));
        assert_string_equal(text, pairs[i][1]);
        assert_true(base64_decode(span_of(text), back, &n));
        assert_int_equal(n, len);
        assert_memory_equal(back, pairs[i][0], len);
    }
}

static void bytes_are_replaced_by_their_text(void **state)
{
    (void)state;
    for (size_t len = 0; len < 200; len++) {
        uint8_t bytes[200], back[300];
        char room[300] = "", plain[300] = "";
        size_t n;
        for (size_t i = 0; i < len; i++)
            bytes[i] = (uint8_t)(i * 37 + len);
        base64_encode(bytes, len, plain);
        memcpy(room + BASE64_SIZE(len) - len, bytes, len);
        base64_encode((uint8_t *)room + BASE64_SIZE(len) - len, len, room);
        assert_memory_equal(room, plain, BASE64_SIZE(len));
        assert_true(base64_decode((span){plain, BASE64_SIZE(len)}, back, &n));
        assert_int_equal(n, len);
        assert_memory_equal(back, bytes, len);
    }
}

static void the_alphabet_for_addresses_is_another(void **state)
{
    (void)state;
    uint8_t out[8];
    size_t n;
    assert_true(base64_decode_url(SPAN("-_8"), out, &n));
    assert_int_equal(n, 2);
    assert_memory_equal(out, "\xfb\xff", 2);
    assert_true(base64_decode(SPAN("+/8="), out, &n));
    assert_memory_equal(out, "\xfb\xff", 2);
    assert_false(base64_decode(SPAN("-_8="), out, &n));
    assert_false(base64_decode_url(SPAN("+/8"), out, &n));
}

static void invalid_base64_is_refused(void **state)
{
    (void)state;
    static const char *const wrong[] = {"Z",      "Zg",   "Zg=",    "Zg= ",  "Zh==",
                                        "Zm9=",   "Z===", "====",   "Zm9v=", "Zm 9",
                                        "Zm9v\n", "=Zg=", "Zm\xffv"};
    static const char *const wrong_url[] = {"Z", "Zg==", "Zh", "Zm9", "Zm9vY", "Zm v"};
    uint8_t out[16];
    size_t n;
    for (unsigned i = 0; i < countof(wrong); i++)
        if (base64_decode(span_of(wrong[i]), out, &n))
            fail_msg("\"%s\" was accepted", wrong[i]);
    for (unsigned i = 0; i < countof(wrong_url); i++)
        if (base64_decode_url(span_of(wrong_url[i]), out, &n))
            fail_msg("\"%s\" was accepted", wrong_url[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_examples_of_the_standard),
        cmocka_unit_test(bytes_are_replaced_by_their_text),
        cmocka_unit_test(the_alphabet_for_addresses_is_another),
        cmocka_unit_test(invalid_base64_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
