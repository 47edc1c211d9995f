// group_states.c: every pair of a state and an event.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "pop_ways.h"

// ---- groups ----

static void handle_group(unsigned state, unsigned event)
{
    struct group g = {.state = (uint8_t)state};

    group_handle(&g, event);
}

static void states_of_a_group(void **state)
{
    (void)state;
    enum { NEVER = GROUP_STATES };
    static const uint8_t expected[GROUP_STATES][GROUP_EVENTS] = {
        // asked, learnt, failed, missed, changed
        [GROUP_UNKNOWN] = {GROUP_DISCOVERING, NEVER, NEVER, GROUP_UNKNOWN, GROUP_UNKNOWN},
        [GROUP_KNOWN] = {GROUP_REDISCOVERING, NEVER, NEVER, GROUP_UNKNOWN, GROUP_UNKNOWN},
        [GROUP_DISCOVERING] = {NEVER, GROUP_KNOWN, GROUP_UNKNOWN, GROUP_DISCOVERING,
                               GROUP_STALE},
        [GROUP_REDISCOVERING] = {NEVER, GROUP_KNOWN, GROUP_KNOWN, GROUP_DISCOVERING,
                                 GROUP_STALE},
        [GROUP_STALE] = {NEVER, GROUP_UNKNOWN, GROUP_UNKNOWN, GROUP_STALE, GROUP_STALE},
    };
    for (unsigned s = 0; s < GROUP_STATES; s++)
        for (unsigned e = 0; e < GROUP_EVENTS; e++) {
            struct group g = {.state = (uint8_t)s};
            if (expected[s][e] == NEVER) {
                assert_true(aborts(handle_group, s, e));
                continue;
            }
            group_handle(&g, e);
            assert_int_equal(g.state, expected[s][e]);
        }
}

// The rows of a discovery that a change has overtaken do not count as complete.
static void a_change_during_a_discovery_causes_another(void **state)
{
    (void)state;
    make_discovering(5000);
    group_changed(broker, group());
    assert_int_equal(group()->state, GROUP_STALE);
    answer_discover(0);
    STATE(POP_DISCOVERING);
    assert_int_equal(group()->state, GROUP_DISCOVERING);
    answer_discover(0);
    STATE(POP_PARKED);
    assert_int_equal(group()->state, GROUP_KNOWN);
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        T(states_of_a_group),
        T(a_change_during_a_discovery_causes_another),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
