// gzip.c: what is packed comes back, limits hold, Accept-Encoding is read as meant.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "http/gzip.h"

static void put_text(struct buf *b, size_t n)
{
    for (size_t i = 0; b->len < n; i++)
        buf_printf(b, "{\"n\":%zu},", i);
}

static void compressed_text_is_restored(void **state)
{
    (void)state;
    for (size_t n = 200; n < 3000000; n *= 7) {
        struct buf in = {0}, packed = {0}, out = {0};
        put_text(&in, n);
        assert_int_equal(gzip_pack(buf_span(&in), &packed), 0);
        assert_true(packed.len < in.len);
        assert_int_equal(gzip_unpack(buf_span(&packed), in.len, &out), 0);
        assert_true(span_eq(buf_span(&in), buf_span(&out)));
        buf_free(&in);
        buf_free(&packed);
        buf_free(&out);
    }
}

static void a_byte_too_much_is_too_much(void **state)
{
    (void)state;
    struct buf in = {0}, packed = {0};
    put_text(&in, 100000);
    assert_int_equal(gzip_pack(buf_span(&in), &packed), 0);
    for (size_t less = 1; less < in.len; less *= 10) {
        struct buf out = {0};
        assert_int_equal(gzip_unpack(buf_span(&packed), in.len - less, &out), QE_TOO_LARGE);
        assert_true(out.len <= in.len);
        buf_free(&out);
    }
    buf_free(&in);
    buf_free(&packed);
}

static void every_cut_is_noticed(void **state)
{
    (void)state;
    struct buf in = {0}, packed = {0};
    put_text(&in, 400);
    assert_int_equal(gzip_pack(buf_span(&in), &packed), 0);
    for (size_t n = 0; n < packed.len; n++) {
        char *copy = malloc(n > 0 ? n : 1);
        struct buf out = {0};
        memcpy(copy, packed.ptr, n);
        assert_int_equal(gzip_unpack((span){copy, n}, 1000, &out), QE_BAD_REQUEST);
        buf_free(&out);
        free(copy);
    }
    buf_free(&in);
    buf_free(&packed);
}

static void text_that_does_not_get_smaller_is_reported(void **state)
{
    (void)state;
    struct buf out = {0};
    assert_int_equal(gzip_pack(SPAN("x"), &out), QE_TOO_LARGE);
    buf_free(&out);
}

static void accept_encoding_is_read_as_meant(void **state)
{
    (void)state;
    static const char *const yes[] = {"gzip",        "x-gzip",        "br, gzip",
                                      "*",           "gzip ; q=0.01", "GZIP",
                                      "*;q=0, gzip", "a;q=0,gzip",    "gzip;v=1"};
    static const char *const no[] = {"",       "identity",         "gzip;q=0", "gzip;Q=0.0,*",
                                     "*; q=0", "gzip;q=0.000, br", "gzipped",  ";q=1",
                                     ",,,"};
    for (unsigned i = 0; i < countof(yes); i++)
        assert_true(gzip_is_wanted(span_of(yes[i])));
    for (unsigned i = 0; i < countof(no); i++)
        assert_false(gzip_is_wanted(span_of(no[i])));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(compressed_text_is_restored),
        cmocka_unit_test(a_byte_too_much_is_too_much),
        cmocka_unit_test(every_cut_is_noticed),
        cmocka_unit_test(text_that_does_not_get_smaller_is_reported),
        cmocka_unit_test(accept_encoding_is_read_as_meant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
