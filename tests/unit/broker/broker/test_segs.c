// segs.c: where a batch is cut, and the parameters of the pieces.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/id.h"
#include "broker/segments/segs.h"
#include "fake_pg.h"
#include "segment/codec.h"

enum { MAX = 2000 };
// Which array of the parameters; from the front or from the back, as is more lasting.
#define LANES     PG_INT8, 0
#define BEFORE    PG_INT8, -3
#define MIN_KEY   PG_INT8, -2
#define MAX_KEY   PG_INT8, -1
#define NTH       PG_INT4, 0
#define COUNT     PG_INT4, 1
#define PLAIN_SEG PG_INT4, 2
#define PLAIN_POS PG_INT4, 3
#define KEYS      PG_BYTEA, 0
#define BODY      PG_BYTEA, 1
#define PLAIN_KEY PG_UUID, 0

static struct push_item items[MAX];
static unsigned n_items;
static struct lane lane_10, lane_11, lane_12;
static struct lane *const lanes[] = {&lane_10, &lane_11, &lane_12};
static struct broker broker; // without keys
static struct queue queue = {.broker = &broker};
static struct segs segs;
static struct pg_params params;

static int setup(void **state)
{
    (void)state;
    for (unsigned i = 0; i < countof(lanes); i++) {
        *lanes[i] = (struct lane){.num = 10 + i, .queue = &queue};
        memset(lanes[i]->id, (int)i + 1, 16);
    }
    n_items = 0;
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    segs_free(&segs);
    pg_params_free(&params);
    params = (struct pg_params){0};
    return 0;
}

// A message whose key is a UUIDv7 of that time, the n-th of it.
static struct push_item *add(unsigned lane, uint64_t ms, unsigned n)
{
    struct push_item *it = &items[n_items++];

    assert_true(n_items <= MAX);
    *it = (struct push_item){.lane = lanes[lane], .payload = SPAN("{}"), .txid_is_key = true};
    for (unsigned i = 0; i < 6; i++)
        it->key[i] = (uint8_t)(ms >> (40 - 8 * i));
    it->key[6] = 0x70;
    it->key[8] = 0x80;
    it->key[14] = (uint8_t)(n >> 8);
    it->key[15] = (uint8_t)n;
    segs_add(&segs, it);
    return it;
}

static void cut(void)
{
    segs_cut(&segs, n_items);
    segs_fill(&segs, &params);
    for (unsigned i = 0; i < countof(lanes); i++) { // free for the next batch
        assert_null(lanes[i]->first);
        assert_null(lanes[i]->last);
        assert_null(lanes[i]->next_in_batch);
    }
}

static int64_t told(enum pg_type type, int nth, unsigned i)
{
    return fake_int(&params, type, nth, i);
}

// The pieces of one lane, in order: their counts.
static unsigned counts_of(int64_t lane, unsigned counts[], unsigned max)
{
    unsigned n = 0;
    int64_t before = 0;

    for (unsigned i = 0; i < segs.n; i++) {
        if (told(LANES, i) != lane)
            continue;
        assert_true(n < max);
        assert_int_equal(told(NTH, i), n);
        assert_int_equal(told(BEFORE, i), before);
        counts[n++] = (unsigned)told(COUNT, i);
        before += told(COUNT, i);
    }
    return n;
}

// ---- tests ----

static void one_message_is_one_segment(void **state)
{
    (void)state;
    struct push_item *it = add(0, 5000, 1);
    cut();
    assert_int_equal(segs.n, 1);
    assert_int_equal(fake_scalar(&params, 0), 1); // lanes
    assert_int_equal(told(LANES, 0), 10);
    assert_int_equal(told(NTH, 0), 0);
    assert_int_equal(told(BEFORE, 0), 0);
    assert_int_equal(told(COUNT, 0), 1);
    assert_int_equal(told(MIN_KEY, 0), 5000);
    assert_int_equal(told(MAX_KEY, 0), 5000);
    assert_true(span_eq(fake_bytes(&params, KEYS, 0), (span){(const char *)it->key, 16}));
    assert_true(span_eq(fake_bytes(&params, BODY, 0), SPAN("\x01\0\0\0\0\x02{}")));
    assert_int_equal(fake_len(&params, PLAIN_SEG), 0);
}

static void a_segment_holds_256_messages(void **state)
{
    (void)state;
    unsigned counts[4];
    for (unsigned i = 0; i < 600; i++)
        add(0, 5000, i);
    cut();
    assert_int_equal(counts_of(10, counts, 4), 3);
    assert_int_equal(counts[0], 256);
    assert_int_equal(counts[1], 256);
    assert_int_equal(counts[2], 88);
}

static void exactly_256_messages_are_one_segment(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 256; i++)
        add(0, 5000, i);
    cut();
    assert_int_equal(segs.n, 1);
}

static char big[100 * 1024];

static void a_segment_is_cut_before_64_kilobytes_are_exceeded(void **state)
{
    (void)state;
    unsigned counts[4];
    // Five bytes of each message are the codec's: 16 * 4096 is exactly the most.
    for (unsigned i = 0; i < 33; i++)
        add(0, 5000, i)->payload = (span){big, 4096 - 5};
    cut();
    assert_int_equal(counts_of(10, counts, 4), 3);
    assert_int_equal(counts[0], 16);
    assert_int_equal(counts[1], 16);
    assert_int_equal(counts[2], 1);
}

static void a_message_larger_than_a_segment_has_one_of_its_own(void **state)
{
    (void)state;
    unsigned counts[4];
    add(0, 5000, 1);
    add(0, 5000, 2)->payload = (span){big, sizeof big};
    add(0, 5000, 3);
    cut();
    assert_int_equal(counts_of(10, counts, 4), 3);
    for (unsigned i = 0; i < 3; i++)
        assert_int_equal(counts[i], 1);
    assert_int_equal(fake_bytes(&params, BODY, 1).len, 1 + 5 + sizeof big);
}

static void keys_more_than_a_second_apart_are_not_in_one_segment(void **state)
{
    (void)state;
    unsigned counts[4];
    add(0, 5000, 1), add(0, 6000, 2), add(0, 6001, 3), add(0, 5500, 4), add(0, 4999, 5);
    cut();
    assert_int_equal(counts_of(10, counts, 4), 3);
    assert_int_equal(counts[0], 2);
    assert_int_equal(counts[1], 2);
    assert_int_equal(counts[2], 1);
    assert_int_equal(told(MIN_KEY, 0), 5000);
    assert_int_equal(told(MAX_KEY, 0), 6000);
    assert_int_equal(told(MIN_KEY, 1), 5500);
    assert_int_equal(told(MAX_KEY, 1), 6001);
    assert_int_equal(told(MIN_KEY, 2), 4999);
}

static void lanes_are_cut_each_for_itself(void **state)
{
    (void)state;
    unsigned counts[4];
    for (unsigned i = 0; i < 300; i++) // in turn, so that their chains interleave
        add(i % 3 == 0 ? 0 : 1, 5000, i);
    add(2, 99000, 1);
    cut();
    assert_int_equal(fake_scalar(&params, 0), 3);
    assert_int_equal(segs.n, 3);
    assert_int_equal(counts_of(10, counts, 4), 1);
    assert_int_equal(counts[0], 100);
    assert_int_equal(counts_of(11, counts, 4), 1);
    assert_int_equal(counts[0], 200);
    assert_int_equal(counts_of(12, counts, 4), 1);
    assert_int_equal(counts[0], 1);
}

static void messages_keep_their_order_in_the_lane(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++)
        add(0, 5000, i);
    cut();
    for (unsigned i = 0; i < 300; i++) {
        span keys = fake_bytes(&params, KEYS, i / 256);
        assert_memory_equal(keys.ptr + i % 256 * 16, items[i].key, 16);
        assert_ptr_equal(seg_item(&segs.at[i / 256], i % 256), &items[i]);
    }
}

static void a_key_that_comes_again_in_the_lane_is_left_out(void **state)
{
    (void)state;
    struct push_item *a = add(0, 5000, 1), *b = add(0, 5000, 2), *again = add(0, 5000, 1),
                     *c = add(0, 5000, 3), *third = add(0, 5000, 1);
    cut();
    assert_int_equal(segs.n, 1);
    assert_int_equal(told(COUNT, 0), 3);
    assert_ptr_equal(seg_item(&segs.at[0], 0), a);
    assert_ptr_equal(seg_item(&segs.at[0], 1), b);
    assert_ptr_equal(seg_item(&segs.at[0], 2), c);
    assert_ptr_equal(again->same, a);
    assert_ptr_equal(third->same, a);
    assert_null(a->same);
    assert_null(c->same);
}

static void a_key_may_come_again_in_another_lane(void **state)
{
    (void)state;
    add(0, 5000, 1), add(1, 5000, 1);
    cut();
    assert_int_equal(segs.n, 2);
    assert_null(items[1].same);
}

static void many_repeated_keys_leave_one_of_each(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        add(0, 5000, i % 50);
    cut();
    assert_int_equal(segs.n, 1);
    assert_int_equal(told(COUNT, 0), 50);
    for (unsigned i = 0; i < 1000; i++)
        assert_ptr_equal(items[i].same, i < 50 ? NULL : &items[i % 50]);
}

static void keys_without_a_time_are_listed_one_by_one(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 300; i++) {
        struct push_item *it = add(0, 5000, i);
        if (i == 3 || i == 299) { // hashed
            it->key[6] = 0x80;
            it->txid = SPAN("order");
            it->txid_is_key = false;
        }
    }
    cut();
    assert_int_equal(fake_len(&params, PLAIN_SEG), 2);
    assert_int_equal(told(PLAIN_SEG, 0), 1); // 1-based
    assert_int_equal(told(PLAIN_POS, 0), 3); // 0-based
    assert_memory_equal(fake_bytes(&params, PLAIN_KEY, 0).ptr, items[3].key, 16);
    assert_int_equal(told(PLAIN_SEG, 1), 2);
    assert_int_equal(told(PLAIN_POS, 1), 299 - 256);
}

static void a_segment_without_any_time_has_no_range(void **state)
{
    (void)state;
    add(0, 5000, 1)->key[6] = 0x40;
    cut();
    assert_null(fake_bytes(&params, MIN_KEY, 0).ptr);
    assert_null(fake_bytes(&params, MAX_KEY, 0).ptr);
    assert_int_equal(fake_len(&params, PLAIN_SEG), 1);
}

static void all_fields_of_a_message_are_in_the_body(void **state)
{
    (void)state;
    struct push_item *it = add(0, 5000, 1);
    it->txid = SPAN("Order 7");
    it->txid_is_key = false;
    it->producer = SPAN("shop");
    it->has_trace = true;
    memset(it->trace, 9, 16);
    add(0, 5000, 2)->txid = SPAN("is the text of its key: not stored");
    cut();
    struct segment_walk w = segment_walk(fake_bytes(&params, BODY, 0));
    struct segment_message m;
    assert_true(segment_next(&w, &m));
    assert_true(span_eq(m.txid, SPAN("Order 7")));
    assert_true(span_eq(m.producer, SPAN("shop")));
    assert_memory_equal(m.trace, it->trace, 16);
    assert_null(m.id);
    assert_true(segment_next(&w, &m));
    assert_null(m.txid.ptr);
    assert_null(m.trace);
    assert_false(segment_next(&w, &m));
    assert_int_equal(w.rc, 0);
}

static void stored_messages_get_ids_by_their_place(void **state)
{
    (void)state;
    uint8_t id[16];
    for (unsigned i = 0; i < 300; i++)
        add(0, 5000, i);
    cut();
    seg_stored(&segs.at[1], 1700000000123456);
    assert_true(segs.at[1].stored);
    assert_false(segs.at[0].stored);
    for (unsigned i = 256; i < 300; i++) {
        segment_message_id(1700000000123456, i - 256, 10, id);
        assert_int_equal(items[i].status, PUSH_QUEUED);
        assert_memory_equal(items[i].message_id, id, 16);
        assert_memory_equal(items[i].partition_id, lane_10.id, 16);
    }
    assert_int_equal(items[255].status, PUSH_PENDING);
}

static void a_call_without_messages_has_no_segments(void **state)
{
    (void)state;
    segs_cut(&segs, 1);
    segs_fill(&segs, &params);
    assert_int_equal(segs.n, 0);
    assert_int_equal(fake_scalar(&params, 0), 0);
    assert_int_equal(fake_len(&params, LANES), 0);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(one_message_is_one_segment),
        T(a_segment_holds_256_messages),
        T(exactly_256_messages_are_one_segment),
        T(a_segment_is_cut_before_64_kilobytes_are_exceeded),
        T(a_message_larger_than_a_segment_has_one_of_its_own),
        T(keys_more_than_a_second_apart_are_not_in_one_segment),
        T(lanes_are_cut_each_for_itself),
        T(messages_keep_their_order_in_the_lane),
        T(a_key_that_comes_again_in_the_lane_is_left_out),
        T(a_key_may_come_again_in_another_lane),
        T(many_repeated_keys_leave_one_of_each),
        T(keys_without_a_time_are_listed_one_by_one),
        T(a_segment_without_any_time_has_no_range),
        T(all_fields_of_a_message_are_in_the_body),
        T(stored_messages_get_ids_by_their_place),
        T(a_call_without_messages_has_no_segments),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
