// Simulation of work queues: pops of two groups that share partitions, on virtual time, with a
// scripted database that loses answers, goes away, gives partitions new numbers and deletes
// groups.  One partition has a higher priority, and in every second schedule a group may have
// only some messages in flight.  One number decides everything that happens; sim_db.c and
// test_sim.c simulate ordered queues, sim_work_db.c is the database.
//
//      SIM_SEEDS=100000 test_broker_sim_work   so many schedules
//      SIM_SEED=17 test_broker_sim_work        that one
//
// Invariants: every pop is answered once; what it delivers is leased to it and to nobody
// else; the answer to an acknowledgement is true; what was answered as stored is there; and
// when all is well again everything is settled within the time that leases and polling allow.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "sim_work_db.h"

enum { CONSUMERS = 6, MAX_TAKEN = 32, STEPS = 250, QUIET_MS = 120 * 1000 };

static uint64_t seed, dice;
static bool is_up, ending;

uint64_t roll(uint64_t below) // splitmix64
{
    uint64_t z = dice += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

#define MUST(condition, ...)                                          \
    do {                                                              \
        if (!(condition)) {                                           \
            print_error("SIM_SEED=%llu: ", (unsigned long long)seed); \
            fail_msg(__VA_ARGS__);                                    \
        }                                                             \
    } while (0)

// ---- consumers: pop, then settle, or do nothing ----

struct actor {
    enum { RESTING, POPPING, HOLDING, ACKING } state;
    struct pop_op pop;
    unsigned times, group;
    bool cancelled, tried; // tried: an earlier try of this ack was answered with an error
    uint8_t lease[16], taken[MAX_TAKEN][16];
    unsigned lane, n_taken;
    struct ack_op ack;
    struct ack_entry entries[MAX_TAKEN];
    char ids[MAX_TAKEN][37], lease_text[37];
    struct arena arena;
};

static struct actor actors[CONSUMERS];

static void on_messages(struct pop_op *op, const struct pop_result *r)
{
    struct actor *a = container_of(op, struct actor, pop);

    a->n_taken = 0;
    for (unsigned c = 0; c < r->n_claims; c++) {
        a->lane = r->claims[c].partition_id[0];
        for (unsigned s = 0; s < r->claims[c].n_runs; s++) {
            const struct pop_run *run = &r->claims[c].runs[s];
            for (unsigned i = run->from; i < run->from + run->n; i++)
                memcpy(a->taken[a->n_taken++], run->keys.ptr + 16ul * i, 16);
        }
    }
    MUST(a->n_taken <= op->batch, "more than was wanted");
    MUST(!op->partition.ptr || span_eq(op->partition, span_of(name_of(a->lane))),
         "messages of another partition");
    if (r->lease)
        memcpy(a->lease, r->lease, 16);
    for (unsigned i = 0; i < a->n_taken; i++) {
        struct delivery *d = find_delivery(a->lane, a->group, a->taken[i]);
        MUST(d && memcmp(d->lease, op->lease, 16) == 0, "a message of another lease");
        MUST(r->lease ? d->state == HELD : d->state == DONE, "a message that is not leased");
    }
}

static void on_popped(struct pop_op *op, int status)
{
    struct actor *a = container_of(op, struct actor, pop);

    MUST(a->times++ == 0 && a->state == POPPING, "answered twice");
    a->state =
        status == 0 && op->n_messages > 0 && !a->cancelled && !op->auto_ack ? HOLDING : RESTING;
    buf_free(&op->out);
}

static void actor_pop(struct actor *a)
{
    a->group = (unsigned)roll(GROUPS);
    a->pop = (struct pop_op){.queue = SPAN("q"),
                             .group = span_of(group_names[a->group]),
                             .batch = 1 + (uint32_t)roll(6),
                             .partitions = 1,
                             .auto_ack = roll(10) == 0,
                             .wait = roll(4) > 0 && !ending,
                             .timeout_ms = 100 + (uint32_t)roll(3000),
                             .render = on_messages,
                             .done = on_popped};
    if (roll(2) == 0 && !ending) // in the end pops of the group find everything
        a->pop.partition = span_of(name_of(1 + (unsigned)roll(LANES)));
    a->times = 0;
    a->cancelled = a->tried = false;
    a->state = POPPING;
    broker_pop(broker, &a->pop);
}

static void on_acked(struct ack_op *op, int status)
{
    struct actor *a = container_of(op, struct actor, ack);

    MUST(a->state == ACKING, "answered twice");
    for (unsigned i = 0; status == 0 && i < op->n_entries; i++) {
        const struct delivery *d = find_delivery(a->lane, a->group, a->taken[i]);
        bool ours = memcmp(d->lease, a->lease, 16) == 0;
        MUST(op->entries[i].why == ACK_OK || op->entries[i].why == ACK_BAD_LEASE,
             "answered with %d", op->entries[i].why);
        MUST(op->entries[i].why != ACK_OK || !ours || d->state != HELD,
             "acknowledged, but it is not");
        MUST(op->entries[i].why == ACK_OK || a->tried || !ours || !is_held(d),
             "refused under a lease that is valid");
    }
    a->tried = status != 0;
    a->state = status != 0 && roll(3) > 0 ? HOLDING : RESTING;
}

static void actor_ack(struct actor *a)
{
    static const enum ack_status statuses[] = {ACK_FAILED, ACK_RETRY, ACK_DLQ};

    arena_deinit(&a->arena);
    arena_init(&a->arena);
    id_format_uuid(a->lease, a->lease_text);
    a->ack = (struct ack_op){.entries = a->entries,
                             .n_entries = a->n_taken,
                             .group = span_of(group_names[a->group]),
                             .arena = &a->arena,
                             .done = on_acked};
    for (unsigned i = 0; i < a->n_taken; i++) {
        id_format_uuid(a->taken[i], a->ids[i]);
        a->entries[i] = (struct ack_entry){.txid = span_of(a->ids[i]),
                                           .lease = span_of(a->lease_text),
                                           .after_s = -1,
                                           .status = roll(4) == 0 && !ending ? statuses[roll(3)]
                                                                             : ACK_COMPLETED};
        memcpy(a->entries[i].partition_id, uuid(a->lane), 16);
    }
    a->state = ACKING;
    broker_ack(broker, &a->ack);
}

static void actor_step(struct actor *a)
{
    if (a->state == RESTING) {
        actor_pop(a);
    } else if (a->state == POPPING && !a->cancelled && a->times == 0 && roll(10) == 0) {
        a->cancelled = true;
        broker_pop_cancel(broker, &a->pop);
    } else if (a->state == HOLDING && roll(6) == 0 && !ending) {
        a->state = RESTING; // does nothing: the lease expires
    } else if (a->state == HOLDING) {
        actor_ack(a);
    }
}

// ---- what happens ----

static void serve_one(void)
{
    struct pg_call *call = fake_nth((unsigned)roll(fake_n_calls() + 1));

    if (call)
        serve(call, roll(12) == 0 ? 1 + (enum fate)roll(3) : ANSWERED);
}

static void serve_all(void)
{
    for (unsigned n = fake_n_calls(); n > 0 && fake_n_calls() > 0; n--)
        serve(fake_nth(0), ANSWERED);
}

static void go_away(void)
{
    is_up = false;
    for (unsigned n = fake_n_calls(); n > 0 && fake_n_calls() > 0; n--)
        serve(fake_nth(0), roll(2) ? LOST_ANSWER : LOST_CALL);
    fake_set_up(false);
}

// One request at a time, perhaps for several partitions.
static struct {
    struct push push;
    unsigned lanes[4];
    bool busy;
} producer;

static void producer_step(void)
{
    struct push *p = &producer.push;

    if (producer.busy && p->times > 0) {
        for (unsigned i = 0; p->status == 0 && i < p->op.n_items; i++)
            MUST(is_stored(producer.lanes[i], p->items[i].key), "answered, but not stored");
        producer.busy = false;
    }
    if (producer.busy || ending)
        return;
    *p = (struct push){0};
    for (unsigned n = 1 + (unsigned)roll(countof(producer.lanes)), i = 0; i < n; i++) {
        unsigned lane = producer.lanes[i] = 1 + (unsigned)roll(LANES);
        if (lanes[lane].n + n > MAX_MESSAGES)
            return;
        push_item(p, "q", name_of(lane), NULL);
    }
    producer.busy = true;
    push_start(p);
}

static void step(void)
{
    uint64_t what = roll(100);

    if (what < 40)
        actor_step(&actors[roll(CONSUMERS)]);
    else if (what < 75 && is_up)
        serve_one();
    else if (what < 78 && is_up)
        push_elsewhere(1 + (unsigned)roll(LANES), 1 + (unsigned)roll(4));
    else if (what < 82)
        producer_step();
    else if (what < 83 && is_up)
        go_away();
    else if (what < 87 && !is_up)
        is_up = true, fake_set_up(true);
    else if (what < 93)
        clock_advance_us(roll(20000));
    else if (what < 95)
        clock_advance_us(roll(3000000));
    else if (what < 97)
        delete_group((unsigned)roll(GROUPS));
    else if (what < 98)
        renumber(1 + (unsigned)roll(LANES));
    else if (what < 99)
        roll(4) > 0 ? broker_queue_changed(broker, SPAN("q")) : broker_forget(broker);
    else
        groups_forget(broker);
    for (unsigned n = is_up ? 0 : fake_n_calls(); n > 0 && fake_n_calls() > 0; n--)
        fake_answer(fake_nth(0), QE_PG_AWAY);
    turn();
}

// ---- one schedule ----

static bool is_finished(void)
{
    for (unsigned lane = 1; lane <= LANES; lane++)
        for (unsigned g = 0; g < GROUPS; g++)
            if (is_pending(lane, g))
                return false;
    return true;
}

static bool is_anybody_busy(void)
{
    producer_step();
    if (producer.busy)
        return true;
    for (unsigned i = 0; i < CONSUMERS; i++)
        if (actors[i].state == POPPING || actors[i].state == ACKING)
            return true;
    return false;
}

static void settle_down(void)
{
    unsigned ms = 0;

    ending = true;
    if (!is_up)
        is_up = true, fake_set_up(true);
    for (; !is_finished() && ms < QUIET_MS; ms += 10) {
        serve_all();
        turn();
        for (unsigned i = 0; i < CONSUMERS; i++)
            if (actors[i].state != POPPING)
                actor_step(&actors[i]);
        wait_ms(10);
    }
    MUST(is_finished(), "not done after %u s", ms / 1000);
    for (unsigned i = 0; i < 1000 && is_anybody_busy(); i++) {
        serve_all();
        wait_ms(10);
    }
    MUST(!is_anybody_busy(), "a request has no answer");
}

static void run_schedule(uint64_t number)
{
    seed = dice = number;
    is_up = true;
    ending = false;
    producer.busy = false;
    work_reset((unsigned)number % 4);
    memset(actors, 0, sizeof actors);
    assert_int_equal(rig_setup(NULL), 0);
    rig_open();
    for (unsigned i = 0; i < CONSUMERS; i++)
        arena_init(&actors[i].arena);
    for (unsigned i = 0; i < STEPS; i++)
        step();
    settle_down();
    for (unsigned i = 0; i < CONSUMERS; i++)
        arena_deinit(&actors[i].arena);
    assert_int_equal(rig_teardown(NULL), 0);
}

static void any_schedule(void **state)
{
    (void)state;
    const char *one = getenv("SIM_SEED"), *many = getenv("SIM_SEEDS");
    uint64_t from = one ? strtoull(one, NULL, 10) : 1000;
    uint64_t n = one ? 1 : many ? strtoull(many, NULL, 10) : 1000;

    for (uint64_t i = 0; i < n; i++)
        run_schedule(from + i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_schedule),
    };

    log_setup(LOG_OFF, LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
