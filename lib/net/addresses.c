// addresses.c: atomic counters by hash of the address.
#include "net/addresses.h"

#include <netinet/in.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/map.h"
#include "base/mem.h"

enum { SLOTS = 32768 };

struct address_slot {
    _Atomic uint32_t n_connections;
    _Atomic uint64_t failures; // window number in the upper half, count in the lower
};

struct addresses {
    struct addresses_conf conf;
    struct address_slot slots[SLOTS];
};

struct addresses *addresses_new(const struct addresses_conf *conf)
{
    struct addresses *a = mem_new(struct addresses);

    a->conf = *conf;
    return a;
}

void addresses_free(struct addresses *a) { free(a); }

bool addresses_peer(int fd, uint8_t ip[16])
{
    struct sockaddr_storage from = {0};
    socklen_t len = sizeof from;
    struct in6_addr six = IN6ADDR_ANY_INIT;

    memset(ip, 0, 16);
    if (getpeername(fd, (struct sockaddr *)&from, &len) != 0)
        return false;
    if (from.ss_family == AF_INET) {
        memset(six.s6_addr + 10, 0xff, 2);
        memcpy(six.s6_addr + 12, &((const struct sockaddr_in *)(const void *)&from)->sin_addr,
               4);
    } else if (from.ss_family == AF_INET6) {
        six = ((const struct sockaddr_in6 *)(const void *)&from)->sin6_addr;
    } else {
        return false;
    }
    memcpy(ip, six.s6_addr, 16);
    return true;
}

static uint16_t slot_of(int fd)
{
    struct in6_addr six;

    if (!addresses_peer(fd, six.s6_addr))
        return ADDRESS_NONE;
    bool four = IN6_IS_ADDR_V4MAPPED(&six);
    return (
        uint16_t)(XXH3_64bits_withSeed(six.s6_addr + (four ? 12 : 0), four ? 4 : 8, map_seed) %
                  SLOTS);
}

bool addresses_enter(struct addresses *a, int fd, uint16_t *slot)
{
    *slot = a ? slot_of(fd) : ADDRESS_NONE;
    if (*slot == ADDRESS_NONE)
        return true;
    uint32_t n =
        atomic_fetch_add_explicit(&a->slots[*slot].n_connections, 1, memory_order_relaxed);
    if (a->conf.max_connections == 0 || n < a->conf.max_connections)
        return true;
    addresses_leave(a, *slot);
    *slot = ADDRESS_NONE;
    return false;
}

void addresses_leave(struct addresses *a, uint16_t slot)
{
    if (slot != ADDRESS_NONE)
        atomic_fetch_sub_explicit(&a->slots[slot].n_connections, 1, memory_order_relaxed);
}

// A race between two threads at the start of a window loses a few counts.
void addresses_note_failure(struct addresses *a, uint16_t slot, uint64_t now_s)
{
    if (!a || slot == ADDRESS_NONE)
        return;
    uint64_t window = now_s / ADDRESS_FAILURE_S << 32;
    _Atomic uint64_t *failures = &a->slots[slot].failures;
    uint64_t old = atomic_load_explicit(failures, memory_order_relaxed);

    if (old >> 32 != window >> 32)
        atomic_store_explicit(failures, window | 1, memory_order_relaxed);
    else if ((uint32_t)old != UINT32_MAX)
        atomic_fetch_add_explicit(failures, 1, memory_order_relaxed);
}

bool addresses_is_barred(const struct addresses *a, uint16_t slot, uint64_t now_s)
{
    if (!a || slot == ADDRESS_NONE || a->conf.max_failures == 0)
        return false;
    uint64_t now = atomic_load_explicit(&a->slots[slot].failures, memory_order_relaxed);

    return now >> 32 == now_s / ADDRESS_FAILURE_S && (uint32_t)now >= a->conf.max_failures;
}
