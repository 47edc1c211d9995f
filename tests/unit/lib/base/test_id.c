// id.c: UUIDs increase whatever the clock does, and survive text.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/id.h"

static void ids_increase_while_the_clock_stands_or_steps_back(void **state)
{
    (void)state;
    uint8_t last[16], id[16];
    clock_freeze(0, 4000000000000000u);
    id_uuid7(last);
    for (int i = 0; i < 20000; i++) {
        if (i == 10000)
            clock_freeze(0, 3999999000000000u);
        id_uuid7(id);
        assert_true(memcmp(last, id, 16) < 0);
        assert_true(id_is_uuid7(id));
        assert_int_equal(id[8] >> 6, 2);
        memcpy(last, id, 16);
    }
    clock_release();
}

static void the_time_in_an_id_is_the_wall_clock(void **state)
{
    (void)state;
    uint8_t id[16];
    clock_freeze(0, 5000000000123456u); // later than every other test's clock
    id_uuid7(id);
    clock_release();
    assert_int_equal(id_uuid7_ms(id), 5000000000123u);
}

enum { PER_THREAD = 5000 };
static uint8_t made[4][PER_THREAD][16];

static void *make_many(void *arg)
{
    uint8_t(*ids)[16] = arg;
    for (int i = 0; i < PER_THREAD; i++)
        id_uuid7(ids[i]);
    return NULL;
}

static int compare(const void *a, const void *b) { return memcmp(a, b, 16); }

static void threads_never_make_the_same_stamp(void **state)
{
    (void)state;
    pthread_t thread[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, make_many, made[i]), 0);
    for (int i = 0; i < 4; i++)
        pthread_join(thread[i], NULL);
    qsort(made, 4 * (size_t)PER_THREAD, 16, compare);
    const uint8_t *flat = &made[0][0][0];
    for (size_t i = 1; i < 4 * (size_t)PER_THREAD; i++)
        assert_true(memcmp(flat + 16 * (i - 1), flat + 16 * i, 8) < 0); // the stamp alone
}

static void text_and_bytes_are_the_same_id(void **state)
{
    (void)state;
    uint8_t id[16], back[16];
    struct buf b = {0};
    id_uuid4(id);
    assert_int_equal(id[6] >> 4, 4);
    buf_put_uuid(&b, id);
    assert_int_equal(b.len, 36);
    assert_true(id_parse_uuid_canonical(buf_span(&b), back));
    assert_memory_equal(id, back, 16);
    buf_free(&b);
}

static void only_uuids_are_parsed(void **state)
{
    (void)state;
    uint8_t id[16];
    assert_true(id_parse_uuid(SPAN("0190A1b2-0000-7000-8000-00000000000F"), id));
    assert_int_equal(id[2], 0xa1);
    assert_int_equal(id[15], 0x0f);
    assert_false(id_parse_uuid_canonical(SPAN("0190A1b2-0000-7000-8000-00000000000F"), id));
    assert_false(id_parse_uuid(SPAN("0190a1b2-0000-7000-8000-00000000000"), id));
    assert_false(id_parse_uuid(SPAN("0190a1b2-0000-7000-8000-00000000000g"), id));
    assert_false(id_parse_uuid(SPAN("0190a1b20-000-7000-8000-000000000000"), id));
    assert_false(id_parse_uuid(SPAN_NONE, id));
}

static void random_bytes_do_not_repeat(void **state)
{
    (void)state;
    uint8_t a[64], b[64], big[1000] = {0};
    id_random(a, sizeof a);
    id_random(b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    id_random(big, sizeof big);
    assert_memory_not_equal(big + 500, (uint8_t[64]){0}, 64);
    assert_true(id_random_u64() != id_random_u64());
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(threads_never_make_the_same_stamp),
        cmocka_unit_test(ids_increase_while_the_clock_stands_or_steps_back),
        cmocka_unit_test(the_time_in_an_id_is_the_wall_clock),
        cmocka_unit_test(text_and_bytes_are_the_same_id),
        cmocka_unit_test(only_uuids_are_parsed),
        cmocka_unit_test(random_bytes_do_not_repeat),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
