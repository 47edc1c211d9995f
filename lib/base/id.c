// id.c: random bytes and UUIDs.
#include "base/id.h"

#include <errno.h>
#include <stdatomic.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/err.h"

static void read_kernel(void *bytes, size_t n)
{
    char *at = bytes;
    while (n > 0) {
        ssize_t got = getrandom(at, n, 0);
        if (got < 0 && errno != EINTR)
            BUG("getrandom: %s", strerror(errno));
        if (got > 0) {
            at += got;
            n -= (size_t)got;
        }
    }
}

// Bytes are wiped from the pool once they are handed out, because they may become secrets.
void id_random(void *bytes, size_t n)
{
    static _Thread_local struct {
        uint8_t bytes[256];
        size_t left;
    } pool;

    if (n > sizeof pool.bytes / 4) {
        read_kernel(bytes, n);
        return;
    }
    if (pool.left < n) {
        read_kernel(pool.bytes, sizeof pool.bytes);
        pool.left = sizeof pool.bytes;
    }
    pool.left -= n;
    memcpy(bytes, pool.bytes + pool.left, n);
    memset(pool.bytes + pool.left, 0, n);
}

// Weyl sequence through two xor-multiply rounds: good enough for jitter and sampling.
uint64_t id_random_u64(void)
{
    static _Thread_local uint64_t state;

    if (state == 0)
        id_random(&state, sizeof state);
    state += 0x9e3779b97f4a7c15u;
    uint64_t x = state;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

// Milliseconds in the upper 48 bits. The 12 bits after the version are 4096ths of a
// millisecond. The result is never less than the clock and never the same twice, in any
// thread.
static uint64_t next_stamp(void)
{
    static _Atomic uint64_t last;

    uint64_t us = clock_wall_us();
    uint64_t now = (us / 1000) << 12 | (us % 1000) * 4096 / 1000;
    uint64_t seen = atomic_load_explicit(&last, memory_order_relaxed);
    uint64_t mine;
    do {
        mine = now > seen ? now : seen + 1;
    } while (!atomic_compare_exchange_weak_explicit(&last, &seen, mine, memory_order_relaxed,
                                                    memory_order_relaxed));
    return mine;
}

void id_uuid7(uint8_t out[16])
{
    uint64_t stamp = next_stamp();

    id_random(out + 8, 8);
    for (int i = 0; i < 6; i++)
        out[i] = (uint8_t)(stamp >> (52 - 8 * i));
    out[6] = (uint8_t)(0x70 | (stamp >> 8 & 0x0f));
    out[7] = (uint8_t)stamp;
    out[8] = (uint8_t)(0x80 | (out[8] & 0x3f));
}

void id_uuid4(uint8_t out[16])
{
    id_random(out, 16);
    out[6] = (uint8_t)(0x40 | (out[6] & 0x0f));
    out[8] = (uint8_t)(0x80 | (out[8] & 0x3f));
}

static int hex_value(char c, bool upper_too)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    if (c >= 'a' && c <= 'f')
        return c - 'a' + 10;
    if (upper_too && c >= 'A' && c <= 'F')
        return c - 'A' + 10;
    return -1;
}

static bool id_parse_hex(span text, uint8_t out[16], bool upper_too)
{
    if (text.len != 36)
        return false;
    const char *p = text.ptr;
    for (int i = 0; i < 16; i++) {
        if ((i == 4 || i == 6 || i == 8 || i == 10) && *p++ != '-')
            return false;
        int high = hex_value(*p++, upper_too), low = hex_value(*p++, upper_too);
        if (high < 0 || low < 0)
            return false;
        out[i] = (uint8_t)(high << 4 | low);
    }
    return true;
}

bool id_parse_uuid(span text, uint8_t out[16]) { return id_parse_hex(text, out, true); }
bool id_parse_uuid_canonical(span text, uint8_t out[16])
{
    return id_parse_hex(text, out, false);
}

void id_format_uuid(const uint8_t id[16], char out[36])
{
    static const char hex[] = "0123456789abcdef";

    for (int i = 0; i < 16; i++) {
        if (i == 4 || i == 6 || i == 8 || i == 10)
            *out++ = '-';
        *out++ = hex[id[i] >> 4];
        *out++ = hex[id[i] & 15];
    }
}

uint64_t id_uuid7_ms(const uint8_t id[16])
{
    uint64_t ms = 0;
    for (int i = 0; i < 6; i++)
        ms = ms << 8 | id[i];
    return ms;
}
