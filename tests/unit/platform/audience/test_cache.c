// cache.c: young enough is used, the oldest makes room.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "audience/cache.h"
#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"

static void add(struct audience_cache *c, const char *key, int64_t count)
{
    struct audience_counted v = {.count = count, .at_us = clock_mono_us()};

    audience_cache_add(c, span_of(key), &v);
}

static int64_t count_of(struct audience_cache *c, const char *key, uint64_t max_age_us)
{
    struct audience_counted v;

    return audience_cache_find(c, span_of(key), max_age_us, &v) ? v.count : -1;
}

static void an_entry_is_used_while_it_is_young(void **state)
{
    (void)state;
    struct audience_cache *c = audience_cache_new(2);

    clock_freeze(1000000, 0);
    add(c, "a", 7);
    assert_int_equal(count_of(c, "a", 10), 7);
    clock_advance_us(11);
    assert_int_equal(count_of(c, "a", 10), -1);
    assert_int_equal(count_of(c, "a", 11), 7);
    add(c, "a", 8);
    assert_int_equal(count_of(c, "a", 0), 8);
    clock_release();
    audience_cache_free(c);
}

static void the_oldest_makes_room(void **state)
{
    (void)state;
    struct audience_cache *c = audience_cache_new(2);

    add(c, "a", 1);
    add(c, "b", 2);
    add(c, "a", 3); // now b is the oldest
    add(c, "c", 4);
    assert_int_equal(count_of(c, "b", UINT64_MAX), -1);
    assert_int_equal(count_of(c, "a", UINT64_MAX), 3);
    assert_int_equal(count_of(c, "c", UINT64_MAX), 4);
    audience_cache_free(c);
}

// A filter may be 1 MB long.
static void keys_take_a_limited_amount_of_memory(void **state)
{
    (void)state;
    struct audience_cache *c = audience_cache_new(100);
    size_t len = AUDIENCE_CACHE_BYTES / 3;
    char *keys[4];

    for (unsigned i = 0; i < 4; i++) {
        keys[i] = mem_zalloc(1, len + 1);
        memset(keys[i], 'a' + (int)i, len);
        add(c, keys[i], i);
    }
    assert_int_equal(count_of(c, keys[0], UINT64_MAX), -1);
    assert_int_equal(count_of(c, keys[1], UINT64_MAX), 1);
    assert_int_equal(count_of(c, keys[3], UINT64_MAX), 3);
    for (unsigned i = 0; i < 4; i++)
        free(keys[i]);

    char *long_key = mem_zalloc(1, AUDIENCE_CACHE_BYTES + 2);
    memset(long_key, 'x', AUDIENCE_CACHE_BYTES + 1);
    add(c, "a", 7);
    add(c, long_key, 8);
    assert_int_equal(count_of(c, long_key, UINT64_MAX), -1);
    assert_int_equal(count_of(c, "a", UINT64_MAX), 7);
    free(long_key);
    audience_cache_free(c);
}

static void keys_keep_their_parts_apart(void **state)
{
    (void)state;
    struct buf a = {0}, b = {0};

    audience_cache_key(&a, 1, SPAN(""), SPAN("1{}"));
    audience_cache_key(&b, 1, SPAN("1"), SPAN("{}"));
    assert_false(span_eq(buf_span(&a), buf_span(&b)));
    buf_free(&a);
    buf_free(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_entry_is_used_while_it_is_young),
        cmocka_unit_test(the_oldest_makes_room),
        cmocka_unit_test(keys_take_a_limited_amount_of_memory),
        cmocka_unit_test(keys_keep_their_parts_apart),
    };
    map_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
