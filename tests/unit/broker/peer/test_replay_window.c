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
static uint64_t now, wall = 1000000;

static int reset(void **state)
{
    (void)state;
    memset(&h, 0, sizeof h);
    now = 1;
    wall = 1000000;
    return 0;
}

static bool hear(const char *sender, const char *session, uint64_t sequence)
{
    struct peer_note note = {.sequence = sequence, .at_ms = wall};
    strncpy(note.sender, sender, sizeof note.sender - 1);
    strncpy(note.session, session, sizeof note.session - 1);
    return replay_window_admit(&h, &note, &(struct replay_clock){now, 1000000, DEAD_US}) ==
           REPLAY_NEW;
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

// An attacker has recorded a session that we have never seen, or have forgotten.
static void an_earlier_session_does_not_silence_the_present_one(void **state)
{
    (void)state;
    assert_true(hear("a", "s5", 100));
    for (char old = '1'; old < '5'; old++)
        assert_false(hear("a", (char[]){'s', old, '\0'}, 1000));
    assert_true(hear("a", "s5", 101));
    assert_int_equal(h.n_restarts, 0);
}

static void a_dead_sender_may_come_back_with_an_earlier_clock(void **state)
{
    (void)state;
    assert_true(hear("a", "s5", 100));
    now += DEAD_US;
    assert_false(hear("a", "s4", 1));
    now++;
    assert_true(hear("a", "s4", 1));
    assert_true(hear("a", "s4", 2));
}

static void a_recording_is_stale_after_a_minute(void **state)
{
    (void)state;
    wall = 1000000 - PEER_FRESH_MS - 1;
    assert_false(hear("a", "s1", 1));
    wall = 1000000 + PEER_FRESH_MS + 1;
    assert_false(hear("a", "s1", 1));
    wall = 0; // without a time
    assert_false(hear("a", "s1", 1));
    wall = 1000000 - PEER_FRESH_MS;
    assert_true(hear("a", "s1", 1));
    wall = 1000000 + PEER_FRESH_MS;
    assert_true(hear("a", "s1", 2));
    assert_int_equal(h.n, 1);
}

static void sessions_compare_by_their_time(void **state)
{
    (void)state;
    char early[PEER_SESSION + 1] = "", late[PEER_SESSION + 1] = "";
    replay_session_make(early, 0x19ffffffff0, 0xffff);
    replay_session_make(late, 0x1a000000000, 0);
    assert_true(strcmp(early, late) < 0);
    assert_int_equal(strlen(early), PEER_SESSION - 1);
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
        cmocka_unit_test_setup(an_earlier_session_does_not_silence_the_present_one, reset),
        cmocka_unit_test_setup(a_dead_sender_may_come_back_with_an_earlier_clock, reset),
        cmocka_unit_test_setup(a_recording_is_stale_after_a_minute, reset),
        cmocka_unit_test_setup(sessions_compare_by_their_time, reset),
        cmocka_unit_test_setup(silence_is_death, reset),
        cmocka_unit_test_setup(the_dead_make_room_and_the_living_do_not, reset),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
