// slots.c against a naive model: a million operations, the same decisions in the same order.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "naive_slots.h"

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
    struct slot *held;
};

static struct world {
    struct slots *slots;
    struct tenant_entry entry[NAIVE_TENANTS];
    struct naive naive;
    struct probe probe[WANTS];
    struct slot *slot[NAIVE_SLOTS]; // not closed yet
    unsigned n_slots;
    int last_slot, last_want;
    uint64_t now;
    struct buf real, model;
    unsigned most_slots;
} * w;

static int id_of(const struct slot *s) { return (int)(intptr_t)s->owner; }

static void act_open(void *ctx, struct slot *s)
{
    (void)ctx;
    s->owner = (void *)(intptr_t)++w->last_slot;
    w->slot[w->n_slots++] = s;
    if (w->n_slots > w->most_slots)
        w->most_slots = w->n_slots;
    buf_printf(&w->real, "open %d tenant %d\n", id_of(s), (int)(s->entry - w->entry));
}

static void act_check(void *ctx, struct slot *s)
{
    (void)ctx;
    buf_printf(&w->real, "check %d\n", id_of(s));
}

static void act_close(void *ctx, struct slot *s)
{
    (void)ctx;
    assert_int_equal(s->refs, 0); // what is held is never closed
    buf_printf(&w->real, "close %d\n", id_of(s));
}

static void act_told(void *ctx, struct tenant_want *want, int status, struct slot *s)
{
    struct probe *p = container_of(want, struct probe, want);

    (void)ctx;
    assert_true(p->waiting); // exactly once
    p->waiting = false;
    p->held = s;
    buf_printf(&w->real, "told %d status %d slot %d\n", p->id, status, s ? id_of(s) : 0);
    if (status != 0)
        p->id = 0;
}

static const struct slots_acts acts = {act_open, act_check, act_close, act_told};

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

static struct slot *pick_slot(enum slot_state state, bool acting)
{
    unsigned from = w->n_slots > 0 ? rnd(w->n_slots) : 0;

    for (unsigned i = 0; i < w->n_slots; i++) {
        struct slot *s = w->slot[(from + i) % w->n_slots];
        if (acting ? s->acting : s->state == state)
            return s;
    }
    return NULL;
}

static void do_get(void)
{
    int tenant = (int)(rnd(4) ? rnd(4) : rnd(NAIVE_TENANTS)); // some are asked for more often
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
    slots_get(w->slots, &w->entry[tenant], &p->want, check);
}

static void do_put(void)
{
    struct probe *p = pick(true);

    if (!p)
        return;
    naive_put(&w->naive, id_of(p->held), w->now);
    struct slot *s = p->held;
    *p = (struct probe){0};
    slots_put(w->slots, s, w->now);
}

static void do_report(void)
{
    struct slot *s = pick_slot(SLOT_OPENING, true);

    if (!s)
        return;
    // What is under way: a slot that drains does not say, but the model knows.
    bool opening = false;
    for (unsigned i = 0; i < NAIVE_SLOTS; i++)
        if (w->naive.slot[i].id == id_of(s))
            opening = w->naive.slot[i].idle_turn == 0; // never ready yet
    int status = rnd(7) ? 0 : QE_TENANT_DOWN;
    if (opening) {
        naive_opened(&w->naive, id_of(s), status, w->now);
        slots_opened(w->slots, s, status, w->now);
    } else {
        naive_checked(&w->naive, id_of(s), status == 0, w->now);
        slots_checked(w->slots, s, status == 0, w->now);
    }
}

static void do_closed(void)
{
    struct slot *s = pick_slot(SLOT_CLOSING, false);

    if (!s)
        return;
    for (unsigned i = 0; i < w->n_slots; i++)
        if (w->slot[i] == s)
            w->slot[i--] = w->slot[--w->n_slots];
    naive_closed(&w->naive, id_of(s));
    slots_closed(w->slots, s);
}

static void do_rare(void)
{
    int tenant = (int)rnd(NAIVE_TENANTS);
    struct probe *p;

    switch (rnd(3)) {
    case 0:
        naive_retire(&w->naive, tenant);
        slots_retire(w->slots, &w->entry[tenant], SLOTS_OUTDATED);
        break;
    case 1:
        naive_refuse(&w->naive, tenant, QE_TENANT_DOWN);
        slots_refuse(w->slots, &w->entry[tenant], QE_TENANT_DOWN);
        break;
    default:
        p = pick(false);
        if (!p)
            break;
        naive_cancel(&w->naive, p->id);
        slots_cancel(w->slots, &p->want);
        p->id = 0;
    }
}

static void do_tick(void)
{
    w->now += rnd(10);
    naive_tick(&w->naive, w->now, 40);
    slots_tick(w->slots, w->now, 40);
}

static void compare(unsigned operation)
{
    struct slots_counts n = slots_counts(w->slots);

    if (w->real.len != w->model.len ||
        (w->real.len > 0 && memcmp(w->real.ptr, w->model.ptr, w->real.len) != 0)) {
        buf_putc(&w->real, '\0');
        buf_putc(&w->model, '\0');
        fail_msg("operation %u differs:\n%s--- the model:\n%s", operation, w->real.ptr,
                 w->model.ptr);
    }
    buf_reset(&w->real);
    buf_reset(&w->model);
    if (n.n_slots > MAX || n.n_slots != w->n_slots || n.n_waiting != w->naive.n_wants ||
        n.n_queued != w->naive.n_queue)
        fail_msg("operation %u: %u slots of at most %d, %u waiting, %u queued", operation,
                 n.n_slots, MAX, n.n_waiting, n.n_queued);
}

static void a_million_operations_are_decided_as_the_model_decides(void **state)
{
    static void (*const often[])(void) = {do_get,    do_get,    do_get,    do_put,
                                          do_put,    do_put,    do_put,    do_report,
                                          do_report, do_closed, do_closed, do_tick};

    (void)state;
    w = mem_new(struct world);
    seed = 7;
    w->slots = slots_new(MAX, &acts, NULL);
    w->naive = (struct naive){.max = MAX, .log = &w->model};
    for (unsigned i = 0; i < NAIVE_TENANTS; i++)
        tenant_entry_init(&w->entry[i], w->slots, NULL);
    for (unsigned i = 0; i < OPERATIONS; i++) {
        if (rnd(25) == 0)
            do_rare();
        else
            often[rnd((unsigned)countof(often))]();
        compare(i);
    }
    struct slots_counts n = slots_counts(w->slots);
    assert_int_equal(w->most_slots, MAX); // the limit was reached, and kept
    assert_true(n.hits > 50000 && n.misses > 10000 && n.waits > 1000);
    for (unsigned why = 0; why <= SLOTS_FAILED; why++)
        assert_true(n.closed[why] > 100); // every reason has been seen

    slots_stop(w->slots);
    buf_reset(&w->real);
    while (!slots_is_empty(w->slots)) {
        struct probe *p = pick(true);
        struct slot *s;
        if (p) {
            s = p->held;
            *p = (struct probe){0};
            slots_put(w->slots, s, w->now);
        } else if ((s = pick_slot(SLOT_OPENING, true)) != NULL) {
            if (s->state == SLOT_OPENING)
                slots_opened(w->slots, s, 0, w->now);
            else
                slots_checked(w->slots, s, true, w->now);
        } else {
            do_closed();
        }
    }
    slots_free(w->slots);
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
