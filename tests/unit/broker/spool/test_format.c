// format.c: records survive the way to bytes and back, and nothing else passes for one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "spool/format.h"

static struct spool_record full(void)
{
    struct spool_record r = {.queue = SPAN("orders"),
                             .partition = SPAN("eu"),
                             .txid = SPAN("tx-1"),
                             .producer = SPAN("me"),
                             .payload = SPAN("{\"a\": 1}"),
                             .meta = SPAN("{\"traceparent\":\"x\"}"),
                             .has_trace = true,
                             .due_us = 1893456000123456,
                             .buffered_us = 1700000000000000};
    memset(r.key, 7, 16);
    memset(r.trace, 9, 16);
    return r;
}

static void assert_same(const struct spool_record *a, const struct spool_record *b)
{
    assert_true(span_eq(a->queue, b->queue) && span_eq(a->partition, b->partition));
    assert_true(span_eq(a->txid, b->txid) && !a->txid.ptr == !b->txid.ptr);
    assert_true(span_eq(a->producer, b->producer) && !a->producer.ptr == !b->producer.ptr);
    assert_true(span_eq(a->meta, b->meta) && !a->meta.ptr == !b->meta.ptr);
    assert_true(span_eq(a->payload, b->payload));
    assert_memory_equal(a->key, b->key, 16);
    assert_int_equal(a->has_trace, b->has_trace);
    assert_int_equal(a->due_us, b->due_us);
    if (a->has_trace)
        assert_memory_equal(a->trace, b->trace, 16);
    assert_int_equal(a->buffered_us, b->buffered_us);
}

static void test_a_record_comes_back_as_it_was(void **state)
{
    struct spool_record with = full(), without = full(), got;
    struct buf out = {0};
    uint64_t size;

    (void)state;
    without.txid = without.producer = without.meta = SPAN_NONE;
    without.has_trace = false;
    without.due_us = 0;
    without.payload = SPAN("");
    spool_put_record(&out, &with);
    assert_int_equal(out.len, spool_record_size(&with));
    spool_put_record(&out, &without);

    assert_int_equal(spool_take_record(buf_span(&out), &got, &size), SPOOL_RECORD);
    assert_int_equal(size, spool_record_size(&with));
    assert_same(&got, &with);
    span rest = {out.ptr + size, out.len - size};
    assert_int_equal(spool_take_record(rest, &got, &size), SPOOL_RECORD);
    assert_same(&got, &without);
    assert_int_equal(spool_take_record((span){rest.ptr + size, 0}, &got, &size), SPOOL_END);
    buf_free(&out);
}

static void test_a_field_longer_than_its_length_is_refused(void **state)
{
    (void)state;
    static char text[UINT16_MAX + 1];
    struct spool_record r = {.queue = SPAN("q"), .partition = SPAN("p"), .payload = SPAN("1")};
    struct buf out = {0};

    r.meta = (span){text, sizeof text};
    spool_put_record(&out, &r);
    assert_true(out.failed);
    assert_int_equal(out.len, 0);
    buf_free(&out);
}

static void test_a_tail_cut_at_any_byte_is_short(void **state)
{
    struct spool_record r = full(), got;
    struct buf out = {0};
    uint64_t size;

    (void)state;
    spool_put_record(&out, &r);
    for (size_t n = 1; n < out.len; n++) {
        assert_int_equal(spool_take_record((span){out.ptr, n}, &got, &size), SPOOL_SHORT);
        assert_true(size > n);
    }
    buf_free(&out);
}

static void test_a_flipped_bit_anywhere_is_noticed(void **state)
{
    struct spool_record r = full(), got;
    struct buf out = {0};
    uint64_t size;

    (void)state;
    spool_put_record(&out, &r);
    for (size_t bit = 0; bit < out.len * 8; bit++) {
        out.ptr[bit / 8] ^= (char)(1 << bit % 8);
        assert_int_not_equal(spool_take_record(buf_span(&out), &got, &size), SPOOL_RECORD);
        out.ptr[bit / 8] ^= (char)(1 << bit % 8);
    }
    buf_free(&out);
}

static void a_header_contains_the_progress_of_the_replay(void **state)
{
    struct buf out = {0}, progress = {0};
    uint64_t at;

    (void)state;
    spool_put_header(&out);
    assert_int_equal(out.len, SPOOL_HEADER_BYTES);
    assert_true(spool_read_header(buf_span(&out), &at));
    assert_int_equal(at, SPOOL_HEADER_BYTES);
    spool_put_progress(&progress, 4711);
    assert_int_equal(progress.len, SPOOL_PROGRESS_BYTES);
    memcpy(out.ptr + SPOOL_PROGRESS_AT, progress.ptr, progress.len);
    assert_true(spool_read_header(buf_span(&out), &at));
    assert_int_equal(at, 4711);
    out.ptr[SPOOL_PROGRESS_AT + 7] ^= 1; // one that is damaged skips nothing
    assert_true(spool_read_header(buf_span(&out), &at));
    assert_int_equal(at, SPOOL_HEADER_BYTES);
    out.ptr[11] = 2; // a later version
    assert_false(spool_read_header(buf_span(&out), &at));
    assert_false(spool_read_header((span){out.ptr, 31}, &at));
    buf_free(&out);
    buf_free(&progress);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_record_comes_back_as_it_was),
        cmocka_unit_test(test_a_field_longer_than_its_length_is_refused),
        cmocka_unit_test(test_a_tail_cut_at_any_byte_is_short),
        cmocka_unit_test(test_a_flipped_bit_anywhere_is_noticed),
        cmocka_unit_test(a_header_contains_the_progress_of_the_replay),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
