// replay_window.c: replays, restarts, the dead.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "peer/replay_window.h"

enum { DEAD_US = 5000000 };
static struct replay_windows h;
static uint64_t now;

static int reset(void **state)
{
    (void)state;
    memset(&h, 0, sizeof h);
    now = 1;
    return 0;
}

static bool hear(const char *sender, const char *session, uint64_t sequence)
{
    struct peer_note note = {.sequence = sequence};
    strncpy(note.sender, sender, sizeof note.sender - 1);
    strncpy(note.session, session, sizeof note.session - 1);
    return replay_window_admit(&h, &note, now, DEAD_US) != NULL;
}

static void each_number_is_heard_once(void **state)
{
    (void)state;
    static const uint64_t order[] = {5, 6, 8, 7, 70, 9, 69, 200};
    for (unsigned i = 0; i < countof(order); i++) {
        assert_true(hear("a", "s1", order[i]));
        for (unsigned j = 0; j <= i; j++)
            assert_false(hear("a", "s1", order[j]));
    }
    assert_false(hear("a", "s1", 100)); // fell out of the window
    assert_true(hear("a", "s1", 137));
}

static void servers_do_not_share_numbers(void **state)
{
    (void)state;
    assert_true(hear("a", "s1", 9));
    assert_true(hear("b", "s2", 9));
    assert_false(hear("b", "s2", 9));
}

static void a_new_session_is_a_restart_and_an_old_one_stays_dead(void **state)
{
    (void)state;
    assert_true(hear("a", "s1", 100));
    assert_true(hear("a", "s2", 1));
    assert_int_equal(h.n_restarts, 1);
    assert_false(hear("a", "s1", 101)); // a recording
    assert_true(hear("a", "s2", 2));
    assert_int_equal(h.n_restarts, 1);
}

static void silence_is_death(void **state)
{
    (void)state;
    assert_true(hear("a", "s1", 1));
    now += DEAD_US / 2;
    assert_true(hear("b", "s1", 1));
    assert_int_equal(replay_window_alive(&h, now, DEAD_US), 2);
    now += DEAD_US / 2 + 1;
    assert_int_equal(replay_window_alive(&h, now, DEAD_US), 1);
}

static void the_dead_make_room_and_the_living_do_not(void **state)
{
    (void)state;
    char name[16];
    for (unsigned i = 0; i < REPLAY_WINDOWS_MAX; i++, now++) {
        snprintf(name, sizeof name, "s%u", i);
        assert_true(hear(name, "x", 1));
    }
    assert_false(hear("late", "x", 1));
    now += DEAD_US;
    assert_true(hear("late", "x", 1));
    assert_int_equal(h.n, REPLAY_WINDOWS_MAX);
    assert_true(hear("s1", "x", 2)); // s0 was silent longest
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(each_number_is_heard_once, reset),
        cmocka_unit_test_setup(servers_do_not_share_numbers, reset),
        cmocka_unit_test_setup(a_new_session_is_a_restart_and_an_old_one_stays_dead, reset),
        cmocka_unit_test_setup(silence_is_death, reset),
        cmocka_unit_test_setup(the_dead_make_room_and_the_living_do_not, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
