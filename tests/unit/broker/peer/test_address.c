// address.c: the list of peers.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "peer/address.h"

static struct peer_name names[PEERS_MAX];
static unsigned n;
static struct fault f;

static int parse(const char *list) { return peer_names_parse(list, 6633, names, &n, &f); }

static void hosts_come_with_and_without_ports(void **state)
{
    (void)state;
    assert_int_equal(parse(" a.example ,b:7000,, [::1]:7001,::2,[::3],10.0.0.1:1"), 0);
    static const struct {
        const char *host;
        unsigned port;
    } want[] = {{"a.example", 6633}, {"b", 7000},   {"::1", 7001},
                {"::2", 6633},       {"::3", 6633}, {"10.0.0.1", 1}};
    assert_int_equal(n, countof(want));
    for (unsigned i = 0; i < n; i++) {
        assert_string_equal(names[i].host, want[i].host);
        assert_int_equal(names[i].port, want[i].port);
    }
    assert_int_equal(parse(""), 0);
    assert_int_equal(n, 0);
}

static void an_invalid_peer_is_named(void **state)
{
    (void)state;
    static const char *const wrong[] = {"a,:7", "a:0",    "a:65536", "a:7x",
                                        "[::1", "[::1]x", "a:-1"};
    for (unsigned i = 0; i < countof(wrong); i++) {
        assert_int_equal(parse(wrong[i]), QE_CONF);
        assert_non_null(strstr(f.text, "QUEEN_UDP_PEERS"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_come_with_and_without_ports),
        cmocka_unit_test(an_invalid_peer_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
