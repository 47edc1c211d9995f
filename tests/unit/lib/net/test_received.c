// Tests of the count of received bytes.
#include "net/received.h"

#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

static void receive(int from, int to, uint64_t n)
{
    char bytes[1000] = {0};

    assert_int_equal(send(from, bytes, n, 0), n);
    assert_int_equal(recv(to, bytes, n, MSG_WAITALL), n);
}

static void a_tcp_socket_counts_what_it_receives(void **state)
{
    (void)state;
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof at;
    int listener = socket(AF_INET, SOCK_STREAM, 0), client = socket(AF_INET, SOCK_STREAM, 0);

    assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof at), 0);
    assert_int_equal(listen(listener, 1), 0);
    assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &len), 0);
    assert_int_equal(connect(client, (struct sockaddr *)&at, sizeof at), 0);
    int server = accept(listener, NULL, NULL);
    assert_int_equal(net_received(client), 0);
    receive(server, client, 1000);
    assert_int_equal(net_received(client), 1000);
    receive(server, client, 500);
    assert_int_equal(net_received(client), 1500);
    assert_int_equal(net_received(server), 0);
    close(server);
    close(client);
    close(listener);
}

static void others_do_not(void **state)
{
    (void)state;
    int ends[2];

    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
    receive(ends[0], ends[1], 1000);
    assert_int_equal(net_received(ends[1]), 0);
    assert_int_equal(net_received(-1), 0);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tcp_socket_counts_what_it_receives),
        cmocka_unit_test(others_do_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
