// inherited.c: the sockets of LISTEN_FDS. There is no list of the ones that were taken: systemd
// passes them without close-on-exec, and taking one sets it.
#include "net/inherited.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { FIRST_FD = 3, MOST_FDS = 64 };

static int number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;

    if (!text || *text == '\0')
        return 0;
    errno = 0;
    long n = strtol(text, &end, 10);
    return errno == 0 && *end == '\0' && n > 0 && n < 1 << 30 ? (int)n : 0;
}

// The end of the descriptors that were passed to this process, not to its parent.
static int end_of_fds(void)
{
    int n = number_of("LISTEN_PID") == (int)getpid() ? number_of("LISTEN_FDS") : 0;

    return FIRST_FD + (n < MOST_FDS ? n : MOST_FDS);
}

static bool waits_for_owner(int fd, struct sockaddr_storage *address)
{
    int flags = fcntl(fd, F_GETFD), listens = 0;
    socklen_t len = sizeof listens, address_len = sizeof *address;

    memset(address, 0, sizeof *address);
    return flags >= 0 && !(flags & FD_CLOEXEC) &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &listens, &len) == 0 && listens &&
           getsockname(fd, (struct sockaddr *)address, &address_len) == 0;
}

static bool is_same_address(const struct sockaddr *a, const struct sockaddr *b)
{
    if (a->sa_family != b->sa_family)
        return false;
    if (a->sa_family == AF_INET) {
        const struct sockaddr_in *x = (const void *)a, *y = (const void *)b;
        return x->sin_port == y->sin_port && x->sin_addr.s_addr == y->sin_addr.s_addr;
    }
    if (a->sa_family == AF_INET6) {
        const struct sockaddr_in6 *x = (const void *)a, *y = (const void *)b;
        return x->sin6_port == y->sin6_port &&
               memcmp(&x->sin6_addr, &y->sin6_addr, sizeof x->sin6_addr) == 0;
    }
    return false;
}

int inherited_take(const struct sockaddr *address)
{
    struct sockaddr_storage bound;

    for (int fd = FIRST_FD, end = end_of_fds(); fd < end; fd++) {
        if (!waits_for_owner(fd, &bound) ||
            !is_same_address((const struct sockaddr *)&bound, address))
            continue;
        int flags = fcntl(fd, F_GETFL);
        if (flags >= 0 && fcntl(fd, F_SETFL, flags | O_NONBLOCK) == 0 &&
            fcntl(fd, F_SETFD, FD_CLOEXEC) == 0)
            return fd;
    }
    return -1;
}

int inherited_check(struct fault *f)
{
    struct sockaddr_storage bound;
    char text[INET6_ADDRSTRLEN] = "?";

    for (int fd = FIRST_FD, end = end_of_fds(); fd < end; fd++) {
        if (!waits_for_owner(fd, &bound))
            continue;
        const struct sockaddr_in *four = (const void *)&bound;
        const struct sockaddr_in6 *six = (const void *)&bound;
        bool is_six = bound.ss_family == AF_INET6;
        if (!is_six && bound.ss_family != AF_INET)
            return fault_set(f, QE_CONF, "systemd passed a socket that is not TCP");
        inet_ntop(bound.ss_family, is_six ? (const void *)&six->sin6_addr : &four->sin_addr,
                  text, sizeof text);
        return fault_set(f, QE_CONF,
                         "systemd passed a socket for %s port %u; HOST and PORT must name the "
                         "same address",
                         text, ntohs(is_six ? six->sin6_port : four->sin_port));
    }
    return 0;
}
