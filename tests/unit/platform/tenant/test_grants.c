// grants.c against a naive model: a million operations, the same decisions in the same order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "naive_grants.h"

enum { MAX = 5, WANTS = 200, OPERATIONS = 1000000 };

// One of our own, so that a seed means the same everywhere.
static uint64_t seed;
static unsigned rnd(unsigned n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)(seed >> 33) % n;
}

struct probe {
    struct tenant_want want;
    int id; // 0: free
    bool waiting;
    struct grant *held;
};

static struct world {
    struct grants *grants;
    struct tenant_entry entry[NAIVE_TENANTS];
    struct naive naive;
    struct probe probe[WANTS];
    struct grant *grant[NAIVE_GRANTS]; // not closed yet
    unsigned n_grants;
    int last_grant, last_want;
    uint64_t now;
    struct buf real, model;
    unsigned most_grants;
} * w;

static int id_of(const struct grant *s) { return (int)(intptr_t)s->owner; }

static void act_open(void *ctx, struct grant *s)
{
    (void)ctx;
    s->owner = (void *)(intptr_t)++w->last_grant;
    w->grant[w->n_grants++] = s;
    if (w->n_grants > w->most_grants)
        w->most_grants = w->n_grants;
    buf_printf(&w->real, "open %d tenant %d\n", id_of(s), (int)(s->entry - w->entry));
}

static void act_check(void *ctx, struct grant *s)
{
    (void)ctx;
    buf_printf(&w->real, "check %d\n", id_of(s));
}

static void act_close(void *ctx, struct grant *s)
{
    (void)ctx;
    assert_int_equal(s->refs, 0); // what is held is never closed
    buf_printf(&w->real, "close %d\n", id_of(s));
}

static void act_told(void *ctx, struct tenant_want *want, int status, struct grant *s)
{
    struct probe *p = container_of(want, struct probe, want);

    (void)ctx;
    assert_true(p->waiting); // exactly once
    p->waiting = false;
    p->held = s;
    buf_printf(&w->real, "told %d status %d grant %d\n", p->id, status, s ? id_of(s) : 0);
    if (status != 0)
        p->id = 0;
}

static const struct grants_acts acts = {act_open, act_check, act_close, act_told};

static struct probe *pick(bool held)
{
    unsigned from = rnd(WANTS);

    for (unsigned i = 0; i < WANTS; i++) {
        struct probe *p = &w->probe[(from + i) % WANTS];
        if (p->id && (held ? p->held != NULL : p->waiting))
            return p;
    }
    return NULL;
}

static struct grant *pick_grant(enum grant_state state, bool acting)
{
    unsigned from = w->n_grants > 0 ? rnd(w->n_grants) : 0;

    for (unsigned i = 0; i < w->n_grants; i++) {
        struct grant *s = w->grant[(from + i) % w->n_grants];
        if (acting ? s->acting : s->state == state)
            return s;
    }
    return NULL;
}

static void do_get(void)
{
    int tenant = (int)(rnd(4) ? rnd(4) : rnd(NAIVE_TENANTS)); // some are requested more often
    uint64_t deadline = w->now + 1 + rnd(30);
    bool check = rnd(5) == 0;
    struct probe *p = NULL;

    for (unsigned i = 0; i < WANTS && !p; i++)
        if (w->probe[i].id == 0)
            p = &w->probe[i];
    if (!p)
        return;
    *p = (struct probe){.id = ++w->last_want, .waiting = true};
    p->want.deadline_us = deadline;
    naive_get(&w->naive, tenant, p->id, check, deadline);
    grants_get(w->grants, &w->entry[tenant], &p->want, check);
}

static void do_put(void)
{
    struct probe *p = pick(true);

    if (!p)
        return;
    naive_put(&w->naive, id_of(p->held), w->now);
    struct grant *s = p->held;
    *p = (struct probe){0};
    grants_put(w->grants, s, w->now);
}

static void do_report(void)
{
    struct grant *s = pick_grant(GRANT_OPENING, true);

    if (!s)
        return;
    // Pending actions: the model records those of a draining grant.
    bool opening = false;
    for (unsigned i = 0; i < NAIVE_GRANTS; i++)
        if (w->naive.grant[i].id == id_of(s))
            opening = w->naive.grant[i].idle_turn == 0; // never ready yet
    int status = rnd(7) ? 0 : QE_TENANT_DOWN;
    if (opening) {
        naive_opened(&w->naive, id_of(s), status, w->now);
        grants_opened(w->grants, s, status, w->now);
    } else {
        naive_checked(&w->naive, id_of(s), status == 0, w->now);
        grants_checked(w->grants, s, status == 0, w->now);
    }
}

static void do_closed(void)
{
    struct grant *s = pick_grant(GRANT_CLOSING, false);

    if (!s)
        return;
    for (unsigned i = 0; i < w->n_grants; i++)
        if (w->grant[i] == s)
            w->grant[i--] = w->grant[--w->n_grants];
    naive_closed(&w->naive, id_of(s));
    grants_closed(w->grants, s);
}

static void do_rare(void)
{
    int tenant = (int)rnd(NAIVE_TENANTS);
    struct probe *p;

    switch (rnd(3)) {
    case 0:
        naive_retire(&w->naive, tenant);
        grants_retire(w->grants, &w->entry[tenant], GRANTS_OUTDATED);
        break;
    case 1:
        naive_refuse(&w->naive, tenant, QE_TENANT_DOWN);
        grants_refuse(w->grants, &w->entry[tenant], QE_TENANT_DOWN);
        break;
    default:
        p = pick(false);
        if (!p)
            break;
        naive_cancel(&w->naive, p->id);
        grants_cancel(w->grants, &p->want);
        p->id = 0;
    }
}

static void do_tick(void)
{
    w->now += rnd(10);
    naive_tick(&w->naive, w->now, 40);
    grants_tick(w->grants, w->now, 40);
}

static void compare(unsigned operation)
{
    struct grants_counts n = grants_counts(w->grants);

    if (w->real.len != w->model.len ||
        (w->real.len > 0 && memcmp(w->real.ptr, w->model.ptr, w->real.len) != 0)) {
        buf_putc(&w->real, '\0');
        buf_putc(&w->model, '\0');
        fail_msg("operation %u differs:\n%s--- the model:\n%s", operation, w->real.ptr,
                 w->model.ptr);
    }
    buf_reset(&w->real);
    buf_reset(&w->model);
    if (n.n_grants > MAX || n.n_grants != w->n_grants || n.n_waiting != w->naive.n_wants ||
        n.n_queued != w->naive.n_queue)
        fail_msg("operation %u: %u grants of at most %d, %u waiting, %u queued", operation,
                 n.n_grants, MAX, n.n_waiting, n.n_queued);
}

static void a_million_operations_are_decided_as_the_model_decides(void **state)
{
    static void (*const often[])(void) = {do_get,    do_get,    do_get,    do_put,
                                          do_put,    do_put,    do_put,    do_report,
                                          do_report, do_closed, do_closed, do_tick};

    (void)state;
    w = mem_new(struct world);
    seed = 7;
    w->grants = grants_new(MAX, &acts, NULL);
    w->naive = (struct naive){.max = MAX, .log = &w->model};
    for (unsigned i = 0; i < NAIVE_TENANTS; i++)
        tenant_entry_init(&w->entry[i], w->grants, NULL);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (rnd(25) == 0)
            do_rare();
        else
            often[rnd((unsigned)countof(often))]();
        compare(i);
    }
    struct grants_counts n = grants_counts(w->grants);
    assert_int_equal(w->most_grants, MAX); // the limit was reached, and kept
    assert_true(n.hits > 50000 && n.misses > 10000 && n.waits > 1000);
    for (unsigned why = 0; why <= GRANTS_FAILED; why++)
        assert_true(n.closed[why] > 100); // every reason has been seen

    grants_stop(w->grants);
    buf_reset(&w->real);
    while (!grants_is_empty(w->grants)) {
        struct probe *p = pick(true);
        struct grant *s;
        if (p) {
            s = p->held;
            *p = (struct probe){0};
            grants_put(w->grants, s, w->now);
        } else if ((s = pick_grant(GRANT_OPENING, true)) != NULL) {
            if (s->state == GRANT_OPENING)
                grants_opened(w->grants, s, 0, w->now);
            else
                grants_checked(w->grants, s, true, w->now);
        } else {
            do_closed();
        }
    }
    grants_free(w->grants);
    buf_free(&w->real);
    buf_free(&w->model);
    free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_million_operations_are_decided_as_the_model_decides),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
