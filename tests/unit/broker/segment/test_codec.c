// codec.c: packing and walking agree, and damaged segments are refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/err.h"
#include "base/id.h"
#include "segment/codec.h"

static const uint8_t trace[16] = "trace-0123456789", own_id[16] = "id-abcdefghijklm";

// Bit i of `with`: the fields in the order of the format's flags.
static struct segment_message message(unsigned with, span payload)
{
    return (struct segment_message){
        .txid = with & 1 ? SPAN("order-7") : SPAN_NONE,
        .trace = with & 2 ? trace : NULL,
        .producer = with & 4 ? SPAN("shop") : SPAN_NONE,
        .encrypted = (with & 8) != 0,
        .id = with & 16 ? own_id : NULL,
        .meta = with & 32 ? SPAN("{\"traceparent\":\"x\"}") : SPAN_NONE,
        .payload = payload,
    };
}

static bool same_bytes(const uint8_t *a, const uint8_t *b)
{
    return a && b ? memcmp(a, b, 16) == 0 : a == b;
}

static void assert_same(const struct segment_message *a, const struct segment_message *b)
{
    assert_true(span_eq(a->txid, b->txid));
    assert_int_equal(a->txid.ptr != NULL, b->txid.ptr != NULL);
    assert_true(span_eq(a->producer, b->producer));
    assert_int_equal(a->producer.ptr != NULL, b->producer.ptr != NULL);
    assert_true(span_eq(a->payload, b->payload));
    assert_true(span_eq(a->meta, b->meta));
    assert_int_equal(a->meta.ptr != NULL, b->meta.ptr != NULL);
    assert_true(same_bytes(a->trace, b->trace));
    assert_true(same_bytes(a->id, b->id));
    assert_int_equal(a->encrypted, b->encrypted);
}

// One message with every combination of fields.
static struct buf all_combinations(void)
{
    struct buf body = {0};

    segment_begin(&body);
    for (unsigned with = 0; with < 64; with++) {
        struct segment_message m = message(with, SPAN("{\"n\":1}"));
        segment_put(&body, &m);
    }
    assert_false(body.failed);
    return body;
}

static span copy(const void *bytes, size_t n) // of exact length, so that ASan sees an overrun
{
    char *p = malloc(n > 0 ? n : 1);

    assert_non_null(p);
    if (n > 0)
        memcpy(p, bytes, n);
    return (span){p, n};
}

static void drop(span s) { free((void *)(uintptr_t)s.ptr); }

// ---- tests ----

static void every_combination_of_fields_comes_back(void **state)
{
    (void)state;
    struct buf body = all_combinations();
    struct segment_walk w = segment_walk(buf_span(&body));
    struct segment_message m;

    for (unsigned with = 0; with < 64; with++) {
        struct segment_message sent = message(with, SPAN("{\"n\":1}"));
        assert_true(segment_next(&w, &m));
        assert_same(&m, &sent);
    }
    assert_false(segment_next(&w, &m));
    assert_int_equal(w.rc, 0);
    buf_free(&body);
}

static void the_size_is_known_before_it_is_written(void **state)
{
    (void)state;
    for (unsigned with = 0; with < 64; with++) {
        struct buf body = {0};
        struct segment_message m = message(with, SPAN("[1,2]"));
        segment_put(&body, &m);
        assert_int_equal(body.len, segment_size(&m));
        buf_free(&body);
    }
}

static void the_bytes_are_those_of_the_format(void **state)
{
    (void)state;
    struct buf body = {0};
    struct segment_message m = message(1 | 4 | 8, SPAN("{}"));
    static const char expected[] = "\x01"
                                   "\x0d"
                                   "\x00\x07order-7"
                                   "\x00\x04shop"
                                   "\x00\x00\x00\x02{}";

    segment_begin(&body);
    segment_put(&body, &m);
    assert_int_equal(body.len, sizeof expected - 1);
    assert_memory_equal(body.ptr, expected, body.len);
    buf_free(&body);
}

static void an_empty_field_is_not_a_missing_one(void **state)
{
    (void)state;
    struct buf body = {0};
    struct segment_message sent = {.txid = SPAN(""), .producer = SPAN(""), .payload = SPAN("")},
                           m;

    segment_begin(&body);
    segment_put(&body, &sent);
    struct segment_walk w = segment_walk(buf_span(&body));
    assert_true(segment_next(&w, &m));
    assert_same(&m, &sent);
    assert_int_equal(m.payload.len, 0);
    assert_false(segment_next(&w, &m));
    assert_int_equal(w.rc, 0);
    buf_free(&body);
}

static void huge_payloads_and_the_longest_ids_survive(void **state)
{
    (void)state;
    enum { PAYLOAD = 20 << 20, TEXT = 65535 };
    char *payload = malloc(PAYLOAD), *text = malloc(TEXT);
    assert_non_null(payload);
    assert_non_null(text);
    memset(payload, 'p', PAYLOAD);
    memset(text, 't', TEXT);
    struct segment_message sent = {
        .txid = {text, TEXT}, .producer = {text, TEXT}, .payload = {payload, PAYLOAD}};
    struct segment_message small = message(0, SPAN("0")), m;
    struct buf body = {0};

    segment_begin(&body);
    segment_put(&body, &sent);
    segment_put(&body, &small);
    struct segment_walk w = segment_walk(buf_span(&body));
    assert_true(segment_next(&w, &m));
    assert_same(&m, &sent);
    assert_true(segment_next(&w, &m));
    assert_same(&m, &small);
    assert_false(segment_next(&w, &m));
    assert_int_equal(w.rc, 0);
    buf_free(&body);
    free(payload);
    free(text);
}

static void a_payload_is_any_bytes(void **state)
{
    (void)state;
    char bytes[256];
    for (unsigned i = 0; i < sizeof bytes; i++)
        bytes[i] = (char)i;
    struct segment_message sent = {.payload = {bytes, sizeof bytes}}, m;
    struct buf body = {0};

    segment_begin(&body);
    segment_put(&body, &sent);
    struct segment_walk w = segment_walk(buf_span(&body));
    assert_true(segment_next(&w, &m));
    assert_same(&m, &sent);
    buf_free(&body);
}

static void a_buffer_at_its_maximum_fails_instead_of_holding_half_a_message(void **state)
{
    (void)state;
    struct buf body = {.max = 64};
    struct segment_message m = message(31, SPAN("a payload that fits nowhere in here"));

    segment_begin(&body);
    segment_put(&body, &m);
    assert_true(body.failed);
    assert_int_equal(body.len, 1);
    buf_free(&body);
}

static void a_field_longer_than_its_length_is_refused(void **state)
{
    (void)state;
    static char text[UINT16_MAX + 1];
    memset(text, 'x', sizeof text);
    span fits = {text, UINT16_MAX}, longer = {text, sizeof text};
    const struct segment_message good = {
        .txid = fits, .producer = fits, .meta = fits, .payload = SPAN("1")};
    const struct segment_message bad[] = {{.txid = longer, .payload = SPAN("1")},
                                          {.producer = longer, .payload = SPAN("1")},
                                          {.meta = longer, .payload = SPAN("1")}};

    assert_true(segment_fits(&good));
    for (unsigned i = 0; i < 3; i++) {
        struct buf body = {0};
        segment_begin(&body);
        assert_false(segment_fits(&bad[i]));
        segment_put(&body, &bad[i]);
        assert_true(body.failed);
        assert_int_equal(body.len, 1);
        buf_free(&body);
    }
}

static void a_segment_without_messages_ends_at_once(void **state)
{
    (void)state;
    struct segment_message m;
    struct segment_walk w = segment_walk(SPAN("\x01"));

    assert_false(segment_next(&w, &m));
    assert_int_equal(w.rc, 0);
}

static void every_prefix_ends_between_messages_or_is_refused(void **state)
{
    (void)state;
    struct buf body = all_combinations();

    size_t ends[65] = {1}; // where a cut leaves whole messages
    for (unsigned with = 0; with < 64; with++) {
        struct segment_message m = message(with, SPAN("{\"n\":1}"));
        ends[with + 1] = ends[with] + segment_size(&m);
    }
    assert_int_equal(ends[64], body.len);
    for (size_t n = 0; n <= body.len; n++) {
        span cut = copy(body.ptr, n);
        struct segment_walk w = segment_walk(cut);
        struct segment_message m;
        unsigned whole = 0, walked = 0;
        while (whole < 64 && ends[whole + 1] <= n)
            whole++;
        while (segment_next(&w, &m))
            walked++;
        assert_int_equal(walked, n == 0 ? 0 : whole);
        assert_int_equal(w.rc, n > 0 && ends[whole] == n ? 0 : QE_BAD_SEGMENT);
        drop(cut);
    }
    buf_free(&body);
}

static void a_version_that_is_not_known_is_refused(void **state)
{
    (void)state;
    struct segment_message m;

    for (unsigned version = 0; version < 256; version++) {
        char bytes[] = {(char)version, 0, 0, 0, 0, 0};
        struct segment_walk w = segment_walk((span){bytes, sizeof bytes});
        assert_int_equal(segment_next(&w, &m), version == 1);
        assert_int_equal(w.rc, version == 1 ? 0 : QE_BAD_SEGMENT);
    }
    struct segment_walk none = segment_walk(SPAN_NONE);
    assert_false(segment_next(&none, &m));
    assert_int_equal(none.rc, QE_BAD_SEGMENT);
}

static void flags_that_are_not_known_are_refused(void **state)
{
    (void)state;
    struct segment_message m;

    for (unsigned flags = 64; flags < 256; flags++) {
        char bytes[128] = {1, (char)flags};
        struct segment_walk w = segment_walk((span){bytes, sizeof bytes});
        assert_false(segment_next(&w, &m));
        assert_int_equal(w.rc, QE_BAD_SEGMENT);
    }
}

static void a_length_beyond_the_end_is_refused(void **state)
{
    (void)state;
    const span damaged[] = {
        SPAN("\x01\x00\xff\xff\xff\xff{}"), // payload of 4 GB
        SPAN("\x01\x00\x00\x00\x00\x03{}"), // one byte short
        SPAN("\x01\x01\xff\xff order"),     // id of 64 KB
        SPAN("\x01\x04\x00\x05shop"),       SPAN("\x01\x02 trace too short"),
    };
    for (size_t i = 0; i < countof(damaged); i++) {
        span body = copy(damaged[i].ptr, damaged[i].len);
        struct segment_walk w = segment_walk(body);
        struct segment_message m;
        assert_false(segment_next(&w, &m));
        assert_int_equal(w.rc, QE_BAD_SEGMENT);
        assert_false(segment_next(&w, &m)); // and stays refused
        drop(body);
    }
}

static void skipping_lands_on_the_next_message(void **state)
{
    (void)state;
    struct buf body = all_combinations();
    struct segment_message m, expected = message(20, SPAN("{\"n\":1}"));
    struct segment_walk w = segment_walk(buf_span(&body));

    assert_true(segment_skip(&w, 0));
    assert_true(segment_skip(&w, 20));
    assert_true(segment_next(&w, &m));
    assert_same(&m, &expected);
    assert_true(segment_skip(&w, 43)); // exactly to the end
    assert_false(segment_next(&w, &m));
    assert_int_equal(w.rc, 0);
    assert_false(segment_skip(&w, 1));
    assert_int_equal(w.rc, 0); // too few is not damage

    w = segment_walk((span){body.ptr, body.len - 1});
    assert_false(segment_skip(&w, 64));
    assert_int_equal(w.rc, QE_BAD_SEGMENT);
    buf_free(&body);
}

static void assert_id(int64_t created_us, unsigned pos, int64_t lane, const char *expected)
{
    uint8_t id[16];
    char text[37] = "";

    segment_message_id(created_us, pos, lane, id);
    id_format_uuid(id, text);
    assert_string_equal(text, expected);
}

static void ids_equal_those_of_the_database(void **state)
{
    (void)state;
    // As queen.message_id() of PostgreSQL 15 gave them.
    assert_id(0, 0, 1, "00000000-0000-7000-8000-000000000001");
    assert_id(1700000000123456, 5, 42, "018bcfe5-687b-7720-8000-14000000002a");
    assert_id(1770091506999999, 255, 4398046511103, "019c21ac-ed37-7f9c-8003-ffffffffffff");
    assert_id(1770091506999999, 1, 4398046511103 + 1 + 7,
              "019c21ac-ed37-7f9c-8000-040000000007");
}

static void ids_rise_with_position_and_with_time(void **state)
{
    (void)state;
    uint8_t last[16] = {0}, id[16];

    for (int64_t us = 1770091506998990; us < 1770091507001010; us += 7)
        for (unsigned pos = 0; pos < SEGMENT_MAX_MESSAGES; pos += 15) {
            segment_message_id(us, pos, 42, id);
            assert_true(memcmp(id, last, 16) > 0);
            assert_true(id_is_uuid7(id));
            assert_int_equal(id_uuid7_ms(id), us / 1000);
            memcpy(last, id, 16);
        }
}

static void ids_of_two_lanes_differ_at_the_same_time(void **state)
{
    (void)state;
    uint8_t a[16], b[16];

    segment_message_id(1770091506998990, 3, 1, a);
    segment_message_id(1770091506998990, 3, 2, b);
    assert_memory_not_equal(a, b, 16);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_combination_of_fields_comes_back),
        cmocka_unit_test(the_size_is_known_before_it_is_written),
        cmocka_unit_test(the_bytes_are_those_of_the_format),
        cmocka_unit_test(an_empty_field_is_not_a_missing_one),
        cmocka_unit_test(huge_payloads_and_the_longest_ids_survive),
        cmocka_unit_test(a_payload_is_any_bytes),
        cmocka_unit_test(a_buffer_at_its_maximum_fails_instead_of_holding_half_a_message),
        cmocka_unit_test(a_field_longer_than_its_length_is_refused),
        cmocka_unit_test(a_segment_without_messages_ends_at_once),
        cmocka_unit_test(every_prefix_ends_between_messages_or_is_refused),
        cmocka_unit_test(a_version_that_is_not_known_is_refused),
        cmocka_unit_test(flags_that_are_not_known_are_refused),
        cmocka_unit_test(a_length_beyond_the_end_is_refused),
        cmocka_unit_test(skipping_lands_on_the_next_message),
        cmocka_unit_test(ids_equal_those_of_the_database),
        cmocka_unit_test(ids_rise_with_position_and_with_time),
        cmocka_unit_test(ids_of_two_lanes_differ_at_the_same_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
