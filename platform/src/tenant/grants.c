// grants.c: hands out pools, queues requests and evicts idle pools.
#include "tenant/grants.h"

#include <assert.h>
#include <stdlib.h>

#include "base/mem.h"

TAILQ_HEAD(grant_list, grant);
TAILQ_HEAD(entry_list, tenant_entry);

struct grants {
    unsigned max;
    const struct grants_acts *acts;
    void *ctx;
    bool stopping;
    struct grant_list all, idle; // idle: longest idle first
    struct entry_list queue;     // entries that wait for room, in order
    struct want_list waiting;    // requests of all entries, in order of arrival
    uint64_t turn;
    struct grants_counts n;
};

enum { WANT_NONE, WANT_WAITS }; // tenant_want.state

// The steps of a request, in order; then those of a grant.
static void wait_for_grant(struct grants *s, struct tenant_entry *e, struct tenant_want *w);
static void want_room(struct grants *s, struct tenant_entry *e);
static void make_room(struct grants *s);
static void open_grant(struct grants *s, struct tenant_entry *e);
static void serve_wants(struct grants *s, struct tenant_entry *e);
static void finish_want(struct grants *s, struct tenant_want *w, int status,
                        struct grant *grant);
static void use_grant(struct grants *s, struct grant *grant);
static void mark_ready(struct grants *s, struct grant *grant, uint64_t now_us);
static void drain_grant(struct grants *s, struct grant *grant, enum grants_why why);
static void close_if_free(struct grants *s, struct grant *grant);

void tenant_entry_init(struct tenant_entry *e, struct grants *s, void *owner)
{
    *e = (struct tenant_entry){.grants = s, .owner = owner};
    TAILQ_INIT(&e->wants);
}

bool grants_is_unused(const struct tenant_entry *e)
{
    return e->grant == NULL && TAILQ_EMPTY(&e->wants);
}

struct grants *grants_new(unsigned max, const struct grants_acts *acts, void *ctx)
{
    struct grants *s = mem_new(struct grants);

    s->max = max;
    s->acts = acts;
    s->ctx = ctx;
    TAILQ_INIT(&s->all);
    TAILQ_INIT(&s->idle);
    TAILQ_INIT(&s->queue);
    TAILQ_INIT(&s->waiting);
    return s;
}

void grants_free(struct grants *s)
{
    assert(TAILQ_EMPTY(&s->all) && TAILQ_EMPTY(&s->queue) && TAILQ_EMPTY(&s->waiting));
    free(s);
}

void grants_get(struct grants *s, struct tenant_entry *e, struct tenant_want *w,
                bool must_check)
{
    struct grant *grant = e->grant;

    w->entry = e;
    w->state = WANT_NONE;
    w->missed = grant == NULL || grant->state == GRANT_OPENING;
    if (s->stopping) {
        s->acts->finish(s->ctx, w, QE_STOPPING, NULL);
        return;
    }
    if (grant && grant->state == GRANT_READY && !must_check) {
        use_grant(s, grant);
        finish_want(s, w, 0, grant);
        return;
    }
    wait_for_grant(s, e, w);
    if (grant && grant->state == GRANT_READY) {
        if (grant->refs == 0) {
            TAILQ_REMOVE(&s->idle, grant, idle);
            s->n.n_idle--;
        }
        grant->state = GRANT_CHECKING;
        grant->acting = true;
        s->acts->check(s->ctx, grant);
    } else if (!grant && !e->queued) {
        want_room(s, e);
    }
}

static void wait_for_grant(struct grants *s, struct tenant_entry *e, struct tenant_want *w)
{
    w->state = WANT_WAITS;
    w->turn = ++s->turn;
    TAILQ_INSERT_TAIL(&e->wants, w, link);
    TAILQ_INSERT_TAIL(&s->waiting, w, waiting);
    s->n.n_waiting++;
}

static void stop_waiting(struct grants *s, struct tenant_want *w)
{
    w->state = WANT_NONE;
    TAILQ_REMOVE(&w->entry->wants, w, link);
    TAILQ_REMOVE(&s->waiting, w, waiting);
    s->n.n_waiting--;
}

static void grants_unqueue(struct grants *s, struct tenant_entry *e)
{
    if (!e->queued)
        return;
    e->queued = false;
    TAILQ_REMOVE(&s->queue, e, queue);
    s->n.n_queued--;
}

void grants_cancel(struct grants *s, struct tenant_want *w)
{
    if (w->state != WANT_WAITS)
        return;
    stop_waiting(s, w);
    if (TAILQ_EMPTY(&w->entry->wants))
        grants_unqueue(s, w->entry);
}

// ---- room ----

static void want_room(struct grants *s, struct tenant_entry *e)
{
    e->queued = true;
    TAILQ_INSERT_TAIL(&s->queue, e, queue);
    s->n.n_queued++;
    s->n.waits += s->n.n_grants >= s->max;
    make_room(s);
}

// Gives free room to the entries that have waited longest, then evicts idle grants until as
// many are closing as entries wait for room.
static void make_room(struct grants *s)
{
    struct tenant_entry *e;
    struct grant *victim;

    if (s->stopping)
        return;
    while (s->n.n_grants < s->max && (e = TAILQ_FIRST(&s->queue)) != NULL) {
        grants_unqueue(s, e);
        open_grant(s, e);
    }
    while (s->n.n_closing < s->n.n_queued && (victim = TAILQ_FIRST(&s->idle)) != NULL)
        drain_grant(s, victim, GRANTS_NO_ROOM);
}

static void open_grant(struct grants *s, struct tenant_entry *e)
{
    struct grant *grant = mem_new(struct grant);

    grant->state = GRANT_OPENING;
    grant->acting = true;
    grant->entry = e;
    e->grant = grant;
    TAILQ_INSERT_TAIL(&s->all, grant, all);
    s->n.n_grants++;
    s->acts->open(s->ctx, grant);
}

void grants_opened(struct grants *s, struct grant *grant, int status, uint64_t now_us)
{
    struct tenant_entry *e = grant->entry;

    grant->acting = false;
    s->n.failed_opens += status != 0;
    if (grant->state == GRANT_DRAINING) { // retired while opening
        close_if_free(s, grant);
        return;
    }
    assert(grant->state == GRANT_OPENING);
    if (status != 0) {
        drain_grant(s, grant, GRANTS_FAILED);
        grants_refuse(s, e, status);
        return;
    }
    mark_ready(s, grant, now_us);
    serve_wants(s, e);
    make_room(s);
}

void grants_checked(struct grants *s, struct grant *grant, bool healthy, uint64_t now_us)
{
    struct tenant_entry *e = grant->entry;

    grant->acting = false;
    s->n.failed_checks += !healthy;
    if (grant->state == GRANT_DRAINING) { // retired during the check
        close_if_free(s, grant);
        return;
    }
    assert(grant->state == GRANT_CHECKING);
    mark_ready(s, grant, now_us);
    if (!healthy) {
        struct tenant_want *w;
        TAILQ_FOREACH (w, &e->wants, link)
            w->missed = true;
        grants_retire(s, e, GRANTS_UNHEALTHY);
        return;
    }
    serve_wants(s, e);
    make_room(s);
}

static void serve_wants(struct grants *s, struct tenant_entry *e)
{
    struct tenant_want *w;

    while (e->grant && e->grant->state == GRANT_READY && (w = TAILQ_FIRST(&e->wants)) != NULL) {
        stop_waiting(s, w);
        use_grant(s, e->grant);
        finish_want(s, w, 0, e->grant);
    }
}

static void finish_want(struct grants *s, struct tenant_want *w, int status,
                        struct grant *grant)
{
    s->n.hits += !w->missed;
    s->n.misses += w->missed;
    s->acts->finish(s->ctx, w, status, grant);
}

// ---- grants ----

static void use_grant(struct grants *s, struct grant *grant)
{
    if (grant->refs++ == 0) {
        TAILQ_REMOVE(&s->idle, grant, idle);
        s->n.n_idle--;
    }
}

// Marks the grant ready, and idle if it has no user.
static void mark_ready(struct grants *s, struct grant *grant, uint64_t now_us)
{
    grant->state = GRANT_READY;
    if (grant->refs > 0)
        return;
    grant->idle_since_us = now_us;
    TAILQ_INSERT_TAIL(&s->idle, grant, idle);
    s->n.n_idle++;
    if (s->stopping)
        drain_grant(s, grant, GRANTS_IDLE);
}

void grants_put(struct grants *s, struct grant *grant, uint64_t now_us)
{
    assert(grant->refs > 0);
    if (--grant->refs > 0)
        return;
    if (grant->state == GRANT_READY) {
        mark_ready(s, grant, now_us);
        make_room(s);
    } else {
        close_if_free(s, grant); // does nothing during a check
    }
}

// Detaches the grant from its entry, so that it is not handed out again.
static void drain_grant(struct grants *s, struct grant *grant, enum grants_why why)
{
    assert(grant->entry);
    s->n.closed[why]++;
    grant->entry->grant = NULL;
    grant->entry = NULL;
    if (grant->state == GRANT_READY && grant->refs == 0) {
        TAILQ_REMOVE(&s->idle, grant, idle);
        s->n.n_idle--;
    }
    grant->state = GRANT_DRAINING;
    close_if_free(s, grant);
}

static void close_if_free(struct grants *s, struct grant *grant)
{
    if (grant->state != GRANT_DRAINING || grant->refs > 0 || grant->acting)
        return;
    grant->state = GRANT_CLOSING;
    s->n.n_closing++;
    s->acts->close(s->ctx, grant);
}

void grants_closed(struct grants *s, struct grant *grant)
{
    assert(grant->state == GRANT_CLOSING);
    TAILQ_REMOVE(&s->all, grant, all);
    s->n.n_grants--;
    s->n.n_closing--;
    free(grant);
    make_room(s);
}

void grants_retire(struct grants *s, struct tenant_entry *e, enum grants_why why)
{
    if (e->grant)
        drain_grant(s, e->grant, why);
    if (!TAILQ_EMPTY(&e->wants) && !e->queued)
        want_room(s, e);
}

void grants_refuse(struct grants *s, struct tenant_entry *e, int status)
{
    uint64_t now = s->turn; // a request added by the callback waits behind these
    struct tenant_want *w;

    grants_unqueue(s, e);
    while ((w = TAILQ_FIRST(&e->wants)) != NULL && w->turn <= now) {
        stop_waiting(s, w);
        finish_want(s, w, status, NULL);
    }
}

// ---- timer and shutdown ----

static struct tenant_want *find_late(const struct grants *s, uint64_t now_us)
{
    struct tenant_want *w;

    TAILQ_FOREACH (w, &s->waiting, waiting)
        if (now_us >= w->deadline_us)
            return w;
    return NULL;
}

void grants_tick(struct grants *s, uint64_t now_us, uint64_t idle_us)
{
    struct tenant_want *w;
    struct grant *grant;

    while ((w = find_late(s, now_us)) !=
           NULL) { // search again each time: finish may change the list
        grants_cancel(s, w);
        finish_want(s, w, QE_BUSY, NULL);
    }
    while ((grant = TAILQ_FIRST(&s->idle)) != NULL && now_us >= grant->idle_since_us + idle_us)
        drain_grant(s, grant, GRANTS_IDLE);
}

void grants_stop(struct grants *s)
{
    struct tenant_want *w;
    struct grant *grant;

    s->stopping = true;
    while ((w = TAILQ_FIRST(&s->waiting)) != NULL) {
        grants_cancel(s, w);
        s->acts->finish(s->ctx, w, QE_STOPPING, NULL);
    }
    while ((grant = TAILQ_FIRST(&s->idle)) != NULL)
        drain_grant(s, grant, GRANTS_IDLE);
}

bool grants_is_empty(const struct grants *s) { return s->n.n_grants == 0; }

struct grants_counts grants_counts(const struct grants *s) { return s->n; }
