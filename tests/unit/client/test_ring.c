// Tests of the hash ring.
#include "ring.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>

#include <cmocka.h>

static const span names[] = {
    {"http://a:6632", 13}, {"http://b:6632", 13}, {"http://c:6632", 13}, {"http://d:6632", 13}};

static bool everyone(unsigned server, void *ctx)
{
    (void)server, (void)ctx;
    return true;
}

static bool but_one(unsigned server, void *ctx) { return server != *(unsigned *)ctx; }
static bool no_one(unsigned server, void *ctx)
{
    (void)server, (void)ctx;
    return false;
}

static span key(char *room, unsigned i)
{
    return (span){room, (size_t)sprintf(room, "queue-%u:*:group", i)};
}

static void every_server_gets_its_share(void **state)
{
    (void)state;
    struct ring r;
    unsigned counts[4] = {0};
    char room[64];

    ring_init(&r, names, 4);
    assert_int_equal(r.n, 4 * RING_POINTS);
    for (unsigned i = 0; i < 10000; i++)
        counts[ring_find(&r, key(room, i), everyone, NULL)]++;
    for (unsigned i = 0; i < 4; i++)
        assert_in_range(counts[i], 1000, 5000);
    ring_deinit(&r);
}

static void only_the_keys_of_a_lost_server_move(void **state)
{
    (void)state;
    struct ring r;
    unsigned lost = 2, moved = 0;
    char room[64];

    ring_init(&r, names, 4);
    for (unsigned i = 0; i < 2000; i++) {
        unsigned before = ring_find(&r, key(room, i), everyone, NULL);
        unsigned after = ring_find(&r, key(room, i), but_one, &lost);
        assert_int_not_equal(after, lost);
        if (before != lost)
            assert_int_equal(before, after);
        else
            moved++;
    }
    assert_true(moved > 0);
    ring_deinit(&r);
}

static void without_usable_servers_the_key_stays_at_its_first_server(void **state)
{
    (void)state;
    struct ring r;

    ring_init(&r, names, 4);
    unsigned home = ring_find(&r, SPAN("k"), everyone, NULL);
    assert_int_equal(ring_find(&r, SPAN("k"), no_one, NULL), home);
    ring_deinit(&r);
}

static void the_order_of_the_list_does_not_matter(void **state)
{
    (void)state;
    const span turned[] = {names[3], names[2], names[1], names[0]};
    struct ring a, b;
    char room[64];

    ring_init(&a, names, 4);
    ring_init(&b, turned, 4);
    for (unsigned i = 0; i < 500; i++)
        assert_int_equal(ring_find(&a, key(room, i), everyone, NULL),
                         3 - ring_find(&b, key(room, i), everyone, NULL));
    ring_deinit(&a);
    ring_deinit(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_server_gets_its_share),
        cmocka_unit_test(only_the_keys_of_a_lost_server_move),
        cmocka_unit_test(without_usable_servers_the_key_stays_at_its_first_server),
        cmocka_unit_test(the_order_of_the_list_does_not_matter),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
