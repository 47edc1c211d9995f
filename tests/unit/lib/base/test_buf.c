// buf.c: what was put is there, and the maximum holds.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/buf.h"

static void assert_holds(const struct buf *b, const char *text)
{
    assert_int_equal(b->len, strlen(text));
    assert_memory_equal(b->ptr, text, b->len);
}

static void numbers_and_text_follow_one_another(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_put_lit(&b, "a");
    buf_put_u64(&b, UINT64_MAX);
    buf_putc(&b, ' ');
    buf_put_i64(&b, INT64_MIN);
    buf_put_i64(&b, 0);
    buf_printf(&b, " %s/%d", "x", 7);
    buf_put(&b, SPAN_NONE);
    assert_holds(&b, "a18446744073709551615 -92233720368547758080 x/7");
    buf_free(&b);
    assert_null(b.ptr);
}

static void binary_numbers_are_big_endian(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_put_be16(&b, 0x0102);
    buf_put_be32(&b, 0x03040506);
    buf_put_be64(&b, 0x0708090a0b0c0d0eu);
    assert_holds(&b, "\1\2\3\4\5\6\7\10\11\12\13\14\15\16");
    buf_free(&b);
}

static void it_grows_to_the_maximum_and_not_beyond(void **state)
{
    (void)state;
    struct buf b = {.max = 1000};
    for (int i = 0; i < 1000; i++)
        buf_putc(&b, 'x');
    assert_false(b.failed);
    assert_true(b.cap <= 1000);
    buf_putc(&b, 'y');
    assert_true(b.failed);
    assert_int_equal(b.len, 1000);
    buf_free(&b);
}

static void after_a_failed_put_smaller_ones_do_nothing_either(void **state)
{
    (void)state;
    struct buf b = {.max = 300};
    char big[400] = {0};
    buf_put_lit(&b, "head");
    buf_put_bytes(&b, big, sizeof big);
    buf_put_lit(&b, "tail");
    assert_true(b.failed);
    assert_holds(&b, "head");
    buf_printf(&b, "%d", 1);
    assert_holds(&b, "head");

    buf_reset(&b);
    buf_put_lit(&b, "fresh start");
    assert_false(b.failed);
    assert_holds(&b, "fresh start");
    buf_free(&b);
}

static void a_length_that_would_wrap_round_is_refused(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_putc(&b, 'x');
    assert_false(buf_reserve(&b, SIZE_MAX));
    assert_true(b.failed);
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(numbers_and_text_follow_one_another),
        cmocka_unit_test(binary_numbers_are_big_endian),
        cmocka_unit_test(it_grows_to_the_maximum_and_not_beyond),
        cmocka_unit_test(after_a_failed_put_smaller_ones_do_nothing_either),
        cmocka_unit_test(a_length_that_would_wrap_round_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
