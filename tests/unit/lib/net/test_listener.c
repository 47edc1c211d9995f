// listener.c: addresses, faults, limits, and life without descriptors.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "net/listener.h"

static uv_loop_t loop;
static int accepted[512];
static unsigned n_accepted, limit;

static bool admit(void *ctx)
{
    (void)ctx;
    return n_accepted < limit;
}

static void on_accepted(void *ctx, int fd)
{
    (void)ctx;
    accepted[n_accepted++] = fd;
}

static int setup(void **state)
{
    (void)state;
    log_setup(LOG_OFF, LOG_TEXT);
    n_accepted = 0;
    limit = 512;
    return uv_loop_init(&loop);
}

static int teardown(void **state)
{
    (void)state;
    for (unsigned i = 0; i < n_accepted; i++)
        close(accepted[i]);
    return uv_loop_close(&loop);
}

static struct listener *open_on(const char *host)
{
    struct listener *l;
    struct fault f = {0};
    struct listener_conf conf = {.host = host, .admit = admit, .accepted = on_accepted};

    assert_int_equal(listener_open(&l, &loop, &conf, &f), 0);
    assert_int_not_equal(listener_port(l), 0);
    return l;
}

static void close_listener(struct listener *l)
{
    listener_close(l, NULL, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
}

static int dial(unsigned port)
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);

    a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    assert_int_equal(connect(fd, (struct sockaddr *)&a, sizeof a), 0);
    return fd;
}

static void connections_come_ready_to_use(void **state)
{
    (void)state;
    struct listener *l = open_on("127.0.0.1");
    int fd = dial(listener_port(l));
    int on = 0;
    socklen_t len = sizeof on;

    uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(n_accepted, 1);
    assert_true(fcntl(accepted[0], F_GETFL) & O_NONBLOCK);
    assert_true(fcntl(accepted[0], F_GETFD) & FD_CLOEXEC);
    assert_int_equal(getsockopt(accepted[0], IPPROTO_TCP, TCP_NODELAY, &on, &len), 0);
    assert_int_not_equal(on, 0);
    close(fd);
    close_listener(l);
}

static void names_and_literals_are_understood(void **state)
{
    (void)state;
    close_listener(open_on("localhost"));
    close_listener(open_on(NULL));
    int six = socket(AF_INET6, SOCK_STREAM, 0);
    struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_addr = in6addr_loopback};
    if (six >= 0 && bind(six, (struct sockaddr *)&a, sizeof a) == 0) {
        close_listener(open_on("::1"));
        close_listener(open_on("[::1]"));
    }
    if (six >= 0)
        close(six);
}

static void a_taken_port_is_named_in_the_fault(void **state)
{
    (void)state;
    struct listener *l = open_on("127.0.0.1"), *second;
    struct fault f = {0};
    struct listener_conf conf = {
        .host = "127.0.0.1", .port = listener_port(l), .accepted = on_accepted};

    assert_int_equal(listener_open(&second, &loop, &conf, &f), UV_EADDRINUSE);
    assert_null(second);
    assert_non_null(strstr(f.text, "already in use"));
    close_listener(l);
}

static void a_host_that_does_not_exist_is_a_fault(void **state)
{
    (void)state;
    struct listener *l;
    struct fault f = {0};
    struct listener_conf conf = {.host = "300.1.2.3", .accepted = on_accepted};

    assert_int_equal(listener_open(&l, &loop, &conf, &f), QE_CONF);
    assert_non_null(strstr(f.text, "300.1.2.3"));
}

static void above_the_limit_connections_are_closed(void **state)
{
    (void)state;
    struct listener *l = open_on("127.0.0.1");
    char byte;

    limit = 1;
    int first = dial(listener_port(l)), second = dial(listener_port(l));
    while (listener_refused(l) == 0)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(n_accepted, 1);
    assert_int_equal(recv(second, &byte, 1, 0), 0);
    close(first);
    close(second);
    close_listener(l);
}

static void without_descriptors_it_rests_and_recovers(void **state)
{
    (void)state;
    struct listener *l = open_on("127.0.0.1");
    int clients[3], filler[256], n_filler = 0;
    struct rlimit old, low;

    for (int i = 0; i < 3; i++)
        clients[i] = dial(listener_port(l));
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &old), 0);
    low = old;
    low.rlim_cur = 64;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &low), 0);
    while (n_filler < 256 && (filler[n_filler] = dup(0)) >= 0)
        n_filler++;

    unsigned turns = 0;
    uint64_t until = uv_hrtime() + 150 * 1000000ULL;
    while (uv_hrtime() < until) {
        uv_run(&loop, UV_RUN_ONCE);
        turns++;
    }
    assert_in_range(turns, 1, 20); // no busy loop
    assert_in_range(listener_refused(l), 1, 3);
    assert_int_equal(n_accepted, 0);

    for (int i = 0; i < n_filler; i++)
        close(filler[i]);
    setrlimit(RLIMIT_NOFILE, &old);
    while (n_accepted + listener_refused(l) < 3)
        uv_run(&loop, UV_RUN_ONCE);
    assert_in_range(n_accepted, 1, 2);
    for (int i = 0; i < 3; i++)
        close(clients[i]);
    close_listener(l);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(connections_come_ready_to_use),          T(names_and_literals_are_understood),
        T(a_taken_port_is_named_in_the_fault),     T(a_host_that_does_not_exist_is_a_fault),
        T(above_the_limit_connections_are_closed), T(without_descriptors_it_rests_and_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
