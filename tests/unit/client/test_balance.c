// Which processor claims and requests which partitions: alone, in turns, and until nothing
// changes.
#include "balance.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { N = 32, MAX_OWNERS = 8 };

static struct balance_record records[N];
static unsigned claims[N];
static struct balance_plan plan;
static const char *const names[MAX_OWNERS] = {"a", "b", "c", "d", "e", "f", "g", "h"};

static int reset(void **state)
{
    (void)state;
    memset(records, 0, sizeof records);
    plan = (struct balance_plan){.claim = claims};
    return 0;
}

static void look(const char *me, bool greedy, unsigned start)
{
    balance_plan(records, N, me, greedy, start, &plan);
}

static unsigned owned_by(const char *owner)
{
    unsigned n = 0;
    for (unsigned i = 0; i < N; i++)
        n += records[i].owner && !records[i].expired && strcmp(records[i].owner, owner) == 0;
    return n;
}

// Carries out the plan; an owner releases a partition that another processor requests.
static unsigned act(const char *me)
{
    for (unsigned k = 0; k < plan.n_claim; k++)
        records[plan.claim[k]] = (struct balance_record){.owner = me};
    if (plan.ask >= 0)
        records[plan.ask] = (struct balance_record){.owner = me};
    return plan.n_claim + (plan.ask >= 0);
}

static void a_single_processor_claims_all_partitions(void **state)
{
    (void)state;
    look("a", false, 7);
    assert_int_equal(plan.n_claim, N);
    assert_int_equal(plan.claim[0], 7);
    assert_int_equal(plan.ask, -1);
}

static void one_of_several_processors_claims_its_share_and_a_greedy_one_all(void **state)
{
    (void)state;
    records[0].owner = "b";
    look("a", false, 0);
    assert_int_equal(plan.n_claim, 16);
    look("a", true, 0);
    assert_int_equal(plan.n_claim, 31);
}

static void expired_partitions_are_free_and_their_owner_does_not_count(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++)
        records[i] = (struct balance_record){.owner = "dead", .expired = true};
    look("a", false, 0);
    assert_int_equal(plan.n_claim, N);
}

static void a_new_processor_requests_one_partition_from_the_busiest(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++)
        records[i].owner = i < 12 ? "b" : "c";
    look("a", false, 0);
    assert_int_equal(plan.n_claim, 0);
    assert_true(plan.ask >= 12);
    records[plan.ask].wanted_by = "a"; // until it is given, no other
    look("a", false, 0);
    assert_int_equal(plan.ask, -1);
}

static void no_processor_requests_partitions_while_some_are_free(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N - 1; i++)
        records[i].owner = "b";
    look("a", false, 0);
    assert_int_equal(plan.n_claim, 1);
    assert_int_equal(plan.ask, -1);
}

// For every number of processors, in whatever order they come: it settles, evenly, and then
// stays.
static void it_settles_and_then_nothing_moves(void **state)
{
    (void)state;
    for (unsigned n = 1; n <= MAX_OWNERS; n++) {
        for (unsigned seed = 0; seed < 5; seed++) {
            memset(records, 0, sizeof records);
            unsigned moved, rounds = 0;
            do {
                moved = 0;
                for (unsigned i = 0; i < n; i++) {
                    look(names[(i + seed) % n], seed == 4, seed * 13 + i * 5);
                    assert_true(plan.ask < 0 || plan.n_claim == 0);
                    moved += act(names[(i + seed) % n]);
                }
                assert_true(++rounds < 100);
            } while (moved > 0);
            for (unsigned i = 0; i < n; i++)
                assert_in_range(owned_by(names[i]), N / n, N / n + 1);
        }
    }
}

// One of six stops; the others look at the same records, each before the others have acted.
static void released_partitions_are_claimed_without_collisions(void **state)
{
    (void)state;
    for (unsigned gone = 0; gone < 6; gone++) {
        unsigned n_claims[N] = {0}, n_free = 0;
        memset(records, 0, sizeof records);
        for (unsigned i = 0; i < N; i++)
            records[i].owner = i % 6 == gone ? NULL : names[i % 6];
        for (unsigned k = 0; k < 6; k++) {
            if (k == gone)
                continue;
            look(names[k], false, k * 5);
            for (unsigned c = 0; c < plan.n_claim; c++)
                n_claims[plan.claim[c]]++;
        }
        for (unsigned i = 0; i < N; i++) {
            assert_int_equal(n_claims[i], records[i].owner ? 0 : 1);
            n_free += !records[i].owner;
        }
        assert_in_range(n_free, 5, 6);
    }
}

// "c" is dead, which nobody can see yet, and what is dealt to it stays free.
static void remaining_partitions_are_claimed_beyond_the_share(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++)
        records[i].owner = i < 8 ? "a" : i < 16 ? "b" : i < 24 ? "c" : NULL; // of 8, 8, 8, 8
    look("a", false, 0);
    assert_int_equal(plan.n_claim, 3);
    look("b", false, 0);
    assert_int_equal(plan.n_claim, 3);
    for (unsigned i = 0; i < N; i++)
        records[i].left_over = !records[i].owner;
    look("a", false, 0);
    assert_int_equal(plan.n_claim, 8);
}

// Its giver has fewer than its share now, and may look first.
static void a_partition_released_for_a_processor_is_left_to_it(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++)
        records[i].owner = i < 11 ? "a" : i < 21 ? "b" : i < 31 ? "c" : NULL;
    for (unsigned newcomer = 0; newcomer < 2; newcomer++) {
        const char *for_whom = newcomer == 0 ? "a" : "d";
        records[31].wanted_by = for_whom;
        for (unsigned k = 0; k < 4; k++) {
            look(names[k], false, 31);
            assert_int_equal(plan.n_claim, strcmp(names[k], for_whom) == 0);
        }
    }
    records[31].left_over = true; // he is dead
    look("c", false, 0);
    assert_int_equal(plan.n_claim, 1);
}

// With every order in which they look after one has given: nobody is kept from his share.
static void asking_comes_to_an_end(void **state)
{
    (void)state;
    for (unsigned first = 0; first < 6; first++) {
        unsigned gave = 0;
        for (unsigned i = 0; i < N; i++) // 7, 7, 6, 6, 6
            records[i] = (struct balance_record){.owner = names[i % 5]};
        while (owned_by("f") < N / 6) {
            look("f", false, gave * 7);
            assert_true(plan.ask >= 0);
            records[plan.ask] = (struct balance_record){.wanted_by = "f"};
            for (unsigned k = 0; k < 6; k++) {
                look(names[(first + k) % 6], false, k);
                for (unsigned c = 0; c < plan.n_claim; c++)
                    records[plan.claim[c]] =
                        (struct balance_record){.owner = names[(first + k) % 6]};
            }
            assert_true(++gave <= N / 6);
        }
    }
}

static void a_difference_of_one_is_left_alone(void **state)
{
    (void)state;
    for (unsigned i = 0; i < N; i++)
        records[i].owner = i < 11 ? "a" : i < 22 ? "b" : "c"; // 11, 11, 10
    const char *const all[] = {"a", "b", "c"};
    for (unsigned i = 0; i < 3; i++) {
        look(all[i], false, i);
        assert_int_equal(plan.n_claim, 0);
        assert_int_equal(plan.ask, -1);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_single_processor_claims_all_partitions, reset),
        cmocka_unit_test_setup(one_of_several_processors_claims_its_share_and_a_greedy_one_all,
                               reset),
        cmocka_unit_test_setup(expired_partitions_are_free_and_their_owner_does_not_count,
                               reset),
        cmocka_unit_test_setup(a_new_processor_requests_one_partition_from_the_busiest, reset),
        cmocka_unit_test_setup(no_processor_requests_partitions_while_some_are_free, reset),
        cmocka_unit_test_setup(it_settles_and_then_nothing_moves, reset),
        cmocka_unit_test_setup(released_partitions_are_claimed_without_collisions, reset),
        cmocka_unit_test_setup(remaining_partitions_are_claimed_beyond_the_share, reset),
        cmocka_unit_test_setup(a_partition_released_for_a_processor_is_left_to_it, reset),
        cmocka_unit_test_setup(asking_comes_to_an_end, reset),
        cmocka_unit_test_setup(a_difference_of_one_is_left_alone, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
