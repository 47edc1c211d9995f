// identity_limits.c: see identity_limits.h.
#include "auth/identity_limits.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

enum {
    SECOND_US = 1000 * 1000,
    MANY = 10000,                  // unused states are removed beyond this number
    MAX_DEBT_US = 600 * SECOND_US, // a bucket recovers at the latest after this time
};

struct limit_state {
    // When the bucket is full again, in 1/1024 us, so that rates up to 10^9 keep their
    // precision.
    _Atomic uint64_t requests, bytes;
    _Atomic unsigned connections;
    _Atomic uint64_t stored, unreported; // bytes; unreported: not in the database's sum yet
    struct limit_table *table;
    unsigned n_users; // under the table's lock
    bool counts;      // stored bytes; likewise
    UT_hash_handle hh;
    size_t len;
    char subject[];
};

struct limit_table {
    pthread_mutex_t lock; // of the hash and n_users; never held for a request
    struct limit_state *states;
    _Atomic bool counts; // some state does
};

// ---- text ----

static int parse_one(span name, span value, struct limits *l, struct fault *f)
{
    const struct {
        span name;
        uint64_t *to, max;
    } limits[] = {
        {SPAN("requests"), &l->requests, LIMITS_MAX_RATE},
        {SPAN("bytes"), &l->bytes, LIMITS_MAX_RATE},
        {SPAN("connections"), &l->connections, LIMITS_MAX_RATE},
        {SPAN("stored"), &l->stored, LIMITS_MAX_STORED},
    };
    uint64_t n;

    for (unsigned i = 0; i < countof(limits); i++) {
        if (!span_eq(name, limits[i].name))
            continue;
        if (!str_parse_u64(value, &n) || n < 1 || n > limits[i].max)
            return fault_set(f, QE_BAD_PARAM, "the limit %.*s must be a number from 1 to %llu",
                             (int)name.len, name.ptr, (unsigned long long)limits[i].max);
        if (*limits[i].to != 0)
            return fault_set(f, QE_BAD_PARAM, "the limit %.*s is given twice", (int)name.len,
                             name.ptr);
        *limits[i].to = n;
        return 0;
    }
    return fault_set(
        f, QE_BAD_PARAM,
        "invalid limit \"%.*s\": it must be requests, bytes, connections or stored",
        (int)(name.len < 50 ? name.len : 50), name.ptr);
}

int limits_parse(span text, struct limits *l, struct fault *f)
{
    span rest = text, item;
    int rc = 0;

    *l = (struct limits){0};
    while (rc == 0 && text.len > 0 && str_split(&rest, ',', &item)) {
        span value = item, name;
        if (!str_split(&value, '=', &name) || !value.ptr)
            rc = fault_set(f, QE_BAD_PARAM, "a limit must be written as name=number");
        else
            rc = parse_one(str_trim(name), str_trim(value), l, f);
    }
    return rc;
}

// ---- states ----

struct limit_table *limits_new(void)
{
    struct limit_table *t = mem_new(struct limit_table);

    pthread_mutex_init(&t->lock, NULL);
    return t;
}

static void state_remove(struct limit_table *t, struct limit_state *s)
{
    HASH_DELETE(hh, t->states, s);
    free(s);
}

void limits_free(struct limit_table *t)
{
    struct limit_state *s, *next;

    if (!t)
        return;
    HASH_ITER (hh, t->states, s, next) {
        state_remove(t, s);
    }
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static uint64_t ticks(uint64_t us) { return us << 10; }

static bool is_idle(const struct limit_state *s, uint64_t now)
{
    return s->n_users == 0 && atomic_load(&s->connections) == 0 &&
           atomic_load(&s->requests) <= now && atomic_load(&s->bytes) <= now &&
           atomic_load(&s->unreported) == 0;
}

static void sweep_users(struct limit_table *t, uint64_t now)
{
    struct limit_state *s, *next;

    HASH_ITER (hh, t->states, s, next) {
        if (is_idle(s, now))
            state_remove(t, s);
    }
}

struct limit_state *limits_find(struct limit_table *t, span subject, uint64_t now_us)
{
    struct limit_state *s;

    pthread_mutex_lock(&t->lock);
    HASH_FIND(hh, t->states, subject.ptr ? subject.ptr : "", subject.len, s);
    if (!s) {
        if (HASH_COUNT(t->states) >= MANY)
            sweep_users(t, ticks(now_us));
        s = mem_zalloc(1, sizeof *s + subject.len + 1);
        s->table = t;
        s->len = subject.len;
        if (subject.len > 0)
            memcpy(s->subject, subject.ptr, subject.len);
        HASH_ADD_KEYPTR(hh, t->states, s->subject, s->len, s);
    }
    s->n_users++;
    pthread_mutex_unlock(&t->lock);
    return s;
}

void limits_drop(struct limit_state *s)
{
    if (!s)
        return;
    struct limit_table *t = s->table;
    pthread_mutex_lock(&t->lock);
    s->n_users--;
    pthread_mutex_unlock(&t->lock);
}

_Atomic unsigned *limits_connections(struct limit_state *s) { return &s->connections; }

// ---- buckets ----

static unsigned wait_of(uint64_t full, uint64_t now)
{
    uint64_t us = (full - now - ticks(SECOND_US)) >> 10;

    return (unsigned)(us / SECOND_US + 1);
}

static bool is_empty(uint64_t full, uint64_t now)
{
    return full > now && full - now > ticks(SECOND_US);
}

// Takes n of `rate` per second. False: the bucket is empty, and may_overdraw is not set.
static bool bucket_take(_Atomic uint64_t *bucket, uint64_t rate, uint64_t n, uint64_t now,
                        bool may_overdraw, unsigned *wait_s)
{
    uint64_t full = atomic_load_explicit(bucket, memory_order_relaxed), next;
    uint64_t most = ticks(MAX_DEBT_US);
    double cost = (double)n * (double)ticks(SECOND_US) / (double)rate;

    do {
        uint64_t from = full > now ? full : now;
        next = cost >= (double)most ? now + most : from + (uint64_t)cost;
        if (next > now + most)
            next = now + most;
        if (!may_overdraw && is_empty(next, now)) {
            *wait_s = wait_of(next, now);
            return false;
        }
    } while (!atomic_compare_exchange_weak_explicit(bucket, &full, next, memory_order_relaxed,
                                                    memory_order_relaxed));
    return true;
}

enum limit_kind limits_look(const struct limit_state *s, const struct limits *l,
                            uint64_t now_us, unsigned *wait_s)
{
    uint64_t now = ticks(now_us);
    uint64_t requests = atomic_load_explicit(&s->requests, memory_order_relaxed);
    uint64_t bytes = atomic_load_explicit(&s->bytes, memory_order_relaxed);

    if (l->bytes > 0 && is_empty(bytes, now)) {
        *wait_s = wait_of(bytes, now);
        return LIMIT_BYTES;
    }
    if (l->requests > 0) {
        uint64_t next = (requests > now ? requests : now) + ticks(SECOND_US) / l->requests;
        if (is_empty(next, now)) {
            *wait_s = wait_of(next, now);
            return LIMIT_REQUESTS;
        }
    }
    return LIMIT_NONE;
}

enum limit_kind limits_admit(struct limit_state *s, const struct limits *l, uint64_t now_us,
                             unsigned *wait_s)
{
    enum limit_kind kind = limits_look(s, l, now_us, wait_s);

    if (kind != LIMIT_NONE || l->requests == 0)
        return kind;
    return bucket_take(&s->requests, l->requests, 1, ticks(now_us), false, wait_s)
               ? LIMIT_NONE
               : LIMIT_REQUESTS;
}

void limits_spend(struct limit_state *s, const struct limits *l, uint64_t bytes,
                  uint64_t now_us)
{
    unsigned wait_s;

    if (l->bytes > 0 && bytes > 0)
        bucket_take(&s->bytes, l->bytes, bytes, ticks(now_us), true, &wait_s);
}

// ---- stored bytes ----

void limits_stored_count(struct limit_state *s)
{
    pthread_mutex_lock(&s->table->lock);
    s->counts = true;
    pthread_mutex_unlock(&s->table->lock);
    atomic_store(&s->table->counts, true);
}

bool limits_stored_any(struct limit_table *t)
{
    return atomic_load_explicit(&t->counts, memory_order_relaxed);
}

bool limits_stored_is_full(const struct limit_state *s, const struct limits *l)
{
    return l->stored > 0 &&
           atomic_load_explicit(&s->stored, memory_order_relaxed) +
                   atomic_load_explicit(&s->unreported, memory_order_relaxed) >=
               l->stored;
}

// NULL: none that counts.
static struct limit_state *counted(struct limit_table *t, span subject)
{
    struct limit_state *s;

    HASH_FIND(hh, t->states, subject.ptr ? subject.ptr : "", subject.len, s);
    return s && s->counts ? s : NULL;
}

bool limits_stored_add(struct limit_table *t, span subject, uint64_t bytes)
{
    pthread_mutex_lock(&t->lock);
    struct limit_state *s = counted(t, subject);
    if (s)
        atomic_fetch_add(&s->unreported, bytes);
    pthread_mutex_unlock(&t->lock);
    return s != NULL;
}

void limits_stored_reported(struct limit_table *t, span subject, uint64_t bytes)
{
    pthread_mutex_lock(&t->lock);
    struct limit_state *s = counted(t, subject);
    if (s) {
        atomic_fetch_add(&s->stored, bytes);
        atomic_fetch_sub(&s->unreported, bytes);
    }
    pthread_mutex_unlock(&t->lock);
}

void limits_stored_set(struct limit_table *t, span subject, uint64_t bytes)
{
    pthread_mutex_lock(&t->lock);
    struct limit_state *s = counted(t, subject);
    if (s)
        atomic_store(&s->stored, bytes);
    pthread_mutex_unlock(&t->lock);
}

void limits_stored_each(struct limit_table *t, void (*cb)(void *ctx, span subject), void *ctx)
{
    struct limit_state *s, *next;

    pthread_mutex_lock(&t->lock);
    HASH_ITER (hh, t->states, s, next)
        if (s->counts)
            cb(ctx, (span){s->subject, s->len});
    pthread_mutex_unlock(&t->lock);
}
