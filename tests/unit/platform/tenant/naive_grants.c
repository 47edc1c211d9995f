// naive_grants.c: see naive_grants.h.
#include "naive_grants.h"

#include <assert.h>
#include <stddef.h>

#include "base/err.h"

static struct naive_grant *by_id(struct naive *n, int id)
{
    for (unsigned i = 0; i < NAIVE_GRANTS; i++)
        if (n->grant[i].id == id)
            return &n->grant[i];
    return NULL;
}

static struct naive_grant *of_tenant(struct naive *n, int tenant)
{
    for (unsigned i = 0; i < NAIVE_GRANTS; i++)
        if (n->grant[i].id && n->grant[i].attached && n->grant[i].tenant == tenant)
            return &n->grant[i];
    return NULL;
}

static unsigned count(const struct naive *n, bool closing_only)
{
    unsigned total = 0;

    for (unsigned i = 0; i < NAIVE_GRANTS; i++)
        total += n->grant[i].id && (!closing_only || n->grant[i].state == GRANT_CLOSING);
    return total;
}

static bool is_idle(const struct naive_grant *s)
{
    return s->id && s->attached && s->state == GRANT_READY && s->refs == 0;
}

static struct naive_grant *oldest_idle(struct naive *n)
{
    struct naive_grant *best = NULL;

    for (unsigned i = 0; i < NAIVE_GRANTS; i++)
        if (is_idle(&n->grant[i]) && (!best || n->grant[i].idle_turn < best->idle_turn))
            best = &n->grant[i];
    return best;
}

static void maybe_close(struct naive *n, struct naive_grant *s)
{
    if (s->state != GRANT_DRAINING || s->refs > 0 || s->acting)
        return;
    s->state = GRANT_CLOSING;
    buf_printf(n->log, "close %d\n", s->id);
}

static void drain(struct naive *n, struct naive_grant *s)
{
    s->attached = false;
    s->state = GRANT_DRAINING;
    maybe_close(n, s);
}

static void settle(struct naive *n)
{
    struct naive_grant *s;

    while (n->n_queue > 0 && count(n, false) < n->max) {
        s = by_id(n, 0);
        *s = (struct naive_grant){.id = ++n->last_id,
                                  .tenant = n->queue[0],
                                  .attached = true,
                                  .acting = true,
                                  .state = GRANT_OPENING};
        for (unsigned i = 1; i < n->n_queue; i++)
            n->queue[i - 1] = n->queue[i];
        n->n_queue--;
        buf_printf(n->log, "open %d tenant %d\n", s->id, s->tenant);
    }
    while (count(n, true) < n->n_queue && (s = oldest_idle(n)) != NULL)
        drain(n, s);
}

static int queued_at(const struct naive *n, int tenant)
{
    for (unsigned i = 0; i < n->n_queue; i++)
        if (n->queue[i] == tenant)
            return (int)i;
    return -1;
}

static void unqueue(struct naive *n, int tenant)
{
    int at = queued_at(n, tenant);

    if (at < 0)
        return;
    for (unsigned i = (unsigned)at + 1; i < n->n_queue; i++)
        n->queue[i - 1] = n->queue[i];
    n->n_queue--;
}

static void enqueue(struct naive *n, int tenant)
{
    n->queue[n->n_queue++] = tenant;
    settle(n);
}

static int first_want(const struct naive *n, int tenant)
{
    for (unsigned i = 0; i < n->n_wants; i++)
        if (n->want[i].tenant == tenant)
            return (int)i;
    return -1;
}

static void leave(struct naive *n, unsigned at)
{
    for (unsigned i = at + 1; i < n->n_wants; i++)
        n->want[i - 1] = n->want[i];
    n->n_wants--;
}

static void tell(struct naive *n, int want, int status, int grant)
{
    buf_printf(n->log, "told %d status %d grant %d\n", want, status, grant);
}

void naive_get(struct naive *n, int tenant, int want, bool check, uint64_t deadline)
{
    struct naive_grant *s = of_tenant(n, tenant);

    if (s && s->state == GRANT_READY && !check) {
        s->refs++;
        tell(n, want, 0, s->id);
        return;
    }
    assert(n->n_wants < NAIVE_WANTS);
    n->want[n->n_wants++] = (struct naive_want){want, tenant, deadline, ++n->turn};
    if (s && s->state == GRANT_READY) {
        s->state = GRANT_CHECKING;
        s->acting = true;
        buf_printf(n->log, "check %d\n", s->id);
    } else if (!s && queued_at(n, tenant) < 0) {
        enqueue(n, tenant);
    }
}

static void rest(struct naive *n, struct naive_grant *s, uint64_t now)
{
    s->state = GRANT_READY;
    s->idle_since = now;
    s->idle_turn = ++n->turn;
}

static void serve(struct naive *n, struct naive_grant *s)
{
    int at;

    while ((at = first_want(n, s->tenant)) >= 0) {
        int want = n->want[at].id;
        leave(n, (unsigned)at);
        s->refs++;
        tell(n, want, 0, s->id);
    }
}

void naive_put(struct naive *n, int grant, uint64_t now)
{
    struct naive_grant *s = by_id(n, grant);

    if (--s->refs > 0)
        return;
    if (s->state == GRANT_READY) {
        rest(n, s, now);
        settle(n);
    } else {
        maybe_close(n, s);
    }
}

static void cancel_at(struct naive *n, unsigned at)
{
    int tenant = n->want[at].tenant;

    leave(n, at);
    if (first_want(n, tenant) < 0)
        unqueue(n, tenant);
}

void naive_cancel(struct naive *n, int want)
{
    for (unsigned i = 0; i < n->n_wants; i++)
        if (n->want[i].id == want) {
            cancel_at(n, i);
            return;
        }
}

void naive_opened(struct naive *n, int grant, int status, uint64_t now)
{
    struct naive_grant *s = by_id(n, grant);
    int tenant = s->tenant;

    s->acting = false;
    if (s->state == GRANT_DRAINING) {
        maybe_close(n, s);
    } else if (status != 0) {
        drain(n, s);
        naive_refuse(n, tenant, status);
    } else {
        rest(n, s, now);
        serve(n, s);
        settle(n);
    }
}

void naive_checked(struct naive *n, int grant, bool healthy, uint64_t now)
{
    struct naive_grant *s = by_id(n, grant);

    s->acting = false;
    if (s->state == GRANT_DRAINING) {
        maybe_close(n, s);
        return;
    }
    s->state = GRANT_READY;
    if (s->refs == 0)
        rest(n, s, now);
    if (!healthy) {
        naive_retire(n, s->tenant);
        return;
    }
    serve(n, s);
    settle(n);
}

void naive_closed(struct naive *n, int grant)
{
    by_id(n, grant)->id = 0;
    settle(n);
}

void naive_retire(struct naive *n, int tenant)
{
    struct naive_grant *s = of_tenant(n, tenant);

    if (s)
        drain(n, s);
    if (first_want(n, tenant) >= 0 && queued_at(n, tenant) < 0)
        enqueue(n, tenant);
}

void naive_refuse(struct naive *n, int tenant, int status)
{
    int at;

    unqueue(n, tenant);
    while ((at = first_want(n, tenant)) >= 0) {
        int want = n->want[at].id;
        leave(n, (unsigned)at);
        tell(n, want, status, 0);
    }
}

void naive_tick(struct naive *n, uint64_t now, uint64_t idle)
{
    struct naive_grant *s;

    for (unsigned i = 0; i < n->n_wants;) {
        if (now < n->want[i].deadline) {
            i++;
            continue;
        }
        int want = n->want[i].id;
        cancel_at(n, i);
        tell(n, want, QE_BUSY, 0);
    }
    while ((s = oldest_idle(n)) != NULL && now >= s->idle_since + idle)
        drain(n, s);
}
