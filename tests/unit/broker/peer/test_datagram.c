// datagram.c: there and back, and what is refused.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "peer/datagram.h"

static const struct peer_note news = {
    .kind = PEER_AVAILABLE,
    .sender = "one.example:6633",
    .session = "0123456789abcde",
    .sequence = 0x0102030405060708,
    .at_ms = 1700000000000,
    .queue = {"orders", 6},
    .partition = {"p-7", 3},
};
static const span secret = {"hush", 4};
static uint8_t wire[PEER_MAX];
static struct peer_note got;

static enum peer_verdict decode(size_t n, span key)
{
    return peer_decode((span){(const char *)wire, n}, key, &got);
}

static void a_note_comes_back_as_it_went(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        span key = i == 0 ? secret : SPAN_NONE;
        size_t n = peer_encode(&news, key, wire);
        assert_int_equal(decode(n, key), PEER_OK);
        assert_int_equal(got.kind, PEER_AVAILABLE);
        assert_string_equal(got.sender, news.sender);
        assert_string_equal(got.session, news.session);
        assert_true(got.sequence == news.sequence && got.at_ms == news.at_ms);
        assert_true(span_eq(got.queue, news.queue) && span_eq(got.partition, news.partition));
    }
}

static void the_header_is_where_the_contract_puts_it(void **state)
{
    (void)state;
    size_t n = peer_encode(&news, SPAN_NONE, wire);
    assert_int_equal(wire[0], 1);
    assert_int_equal(wire[1], PEER_AVAILABLE);
    assert_int_equal(wire[2] << 8 | wire[3], n - 92);
    for (unsigned i = 4; i < 36; i++)
        assert_int_equal(wire[i], 0); // not signed
    assert_memory_equal(wire + 36, "one.example:6633\0", 17);
    assert_memory_equal(wire + 68, "0123456789abcde\0", 16);
    assert_memory_equal(wire + 84, "\1\2\3\4\5\6\7\10", 8);
    assert_int_equal(wire[92] >> 4, 8); // a map
}

static void any_changed_byte_breaks_the_signature(void **state)
{
    (void)state;
    size_t n = peer_encode(&news, secret, wire);
    for (size_t i = 0; i < n; i++) {
        wire[i] ^= 1;
        assert_int_not_equal(decode(n, secret), PEER_OK);
        wire[i] ^= 1;
    }
    assert_int_equal(decode(n, SPAN("other")), PEER_BAD_SIGNATURE);
    assert_int_equal(decode(peer_encode(&news, SPAN_NONE, wire), secret), PEER_BAD_SIGNATURE);
}

static void a_truncated_datagram_is_refused(void **state)
{
    (void)state;
    size_t n = peer_encode(&news, SPAN_NONE, wire);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(decode(i, SPAN_NONE), PEER_MALFORMED);
    assert_int_equal(decode(n + 1, SPAN_NONE), PEER_MALFORMED);
}

static void names_of_any_legal_length_fit(void **state)
{
    (void)state;
    char name[256];
    memset(name, 'x', sizeof name);
    struct peer_note note = news;
    for (size_t len = 0; len < sizeof name; len++) {
        note.queue = note.partition = (span){name, len};
        size_t n = peer_encode(&note, secret, wire);
        assert_true(n > PEER_HEADER && n <= PEER_MAX);
        assert_int_equal(decode(n, secret), PEER_OK);
        assert_int_equal(got.partition.len, len);
    }
}

static void items_that_do_not_fit_are_not_sent(void **state)
{
    (void)state;
    static char name[PEER_MAX];
    struct peer_note note = news;
    note.queue = (span){name, sizeof name};
    assert_int_equal(peer_encode(&note, secret, wire), 0);
}

// A map of another server's version: unknown members of every type.
static void unknown_members_are_passed_over(void **state)
{
    (void)state;
    static const uint8_t body[] = {0x84, 0xa1, 'a',  0x82, 0xa1, 'x', 0x93, 1,    0xff, 0xc0,
                                   0xa1, 'y',  0xcb, 0,    0,    0,   0,    0,    0,    0,
                                   0,    0xa1, 'b',  0xc4, 2,    9,   9,    0xa5, 'q',  'u',
                                   'e',  'u',  'e',  0xd9, 3,    'a', 'b',  'c',  0xa7, 'e',
                                   'n',  'a',  'b',  'l',  'e',  'd', 0xc3};
    memset(wire, 0, sizeof wire);
    wire[0] = 1;
    wire[1] = PEER_PUSH_MODE;
    wire[3] = sizeof body;
    memcpy(wire + PEER_HEADER, body, sizeof body);
    assert_int_equal(decode(PEER_HEADER + sizeof body, SPAN_NONE), PEER_OK);
    assert_true(span_eq(got.queue, SPAN("abc")));
    assert_true(got.enabled);
}

static void a_deep_map_is_refused(void **state)
{
    (void)state;
    memset(wire, 0, sizeof wire);
    wire[0] = 1;
    wire[3] = 200;
    memset(wire + PEER_HEADER, 0x81, 200);
    assert_int_equal(decode(PEER_HEADER + 200, SPAN_NONE), PEER_MALFORMED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_note_comes_back_as_it_went),
        cmocka_unit_test(the_header_is_where_the_contract_puts_it),
        cmocka_unit_test(any_changed_byte_breaks_the_signature),
        cmocka_unit_test(a_truncated_datagram_is_refused),
        cmocka_unit_test(names_of_any_legal_length_fit),
        cmocka_unit_test(items_that_do_not_fit_are_not_sent),
        cmocka_unit_test(unknown_members_are_passed_over),
        cmocka_unit_test(a_deep_map_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
