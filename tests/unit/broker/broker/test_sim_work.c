// Simulation of work queues: pops of two groups that share partitions, on virtual time, with a
// scripted database that loses answers, goes away, gives partitions new numbers and deletes
// groups.  One number decides everything that happens; sim_db.c and test_sim.c simulate ordered
// queues.
//
//      SIM_SEEDS=100000 test_broker_sim_work   so many schedules
//      SIM_SEED=17 test_broker_sim_work        that one
//
// Invariants: every pop is answered once; what it delivers is leased to it and to nobody
// else; the answer to an acknowledgement is true; and when all is well again everything is
// settled within the time that leases and polling allow.
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
#include "base/str.h"
#include "rig.h"

enum { LANES = 2, GROUPS = 2, CONSUMERS = 6, MAX_MESSAGES = 400, MAX_TAKEN = 32, STEPS = 250 };
enum { LEASE_US = 2 * 1000 * 1000, QUIET_MS = 120 * 1000, IS_WORK = 8 };

static const char *const group_names[GROUPS] = {"g", "h"};

static uint64_t seed, dice;
static bool is_up, ending;

static uint64_t roll(uint64_t below) // splitmix64
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

// ---- what is true ----

struct delivery { // of a message, for a group
    enum { NEW, HELD, RETURNED, DONE } state;
    uint8_t lease[16]; // the last one
    uint64_t until_us; // HELD
    int failed;
};

static struct {
    uint8_t keys[MAX_MESSAGES][16];
    struct delivery of[GROUPS][MAX_MESSAGES]; // message i has the sequence number i + 1
    unsigned n;
    unsigned generation; // grows when the partition is deleted and created again
    int64_t changed;
} lanes[LANES + 1]; // from 1
static unsigned group_generation[GROUPS];
static int64_t group_changed_at[GROUPS], n_changes;

static int64_t num_of(unsigned lane) { return lane + 10ll * lanes[lane].generation; }

static int64_t consumer_of(unsigned lane, unsigned group)
{
    return 1000 * (1 + group + GROUPS * (int64_t)group_generation[group]) + num_of(lane);
}

// False: the group or the partition was deleted.
static bool find_consumer(int64_t num, unsigned *lane, unsigned *group)
{
    for (*group = 0; *group < GROUPS; ++*group)
        for (*lane = 1; *lane <= LANES; ++*lane)
            if (consumer_of(*lane, *group) == num)
                return true;
    return false;
}

static unsigned group_named(span name) { return span_eq(name, SPAN("h")); }

static bool is_held(const struct delivery *d)
{
    return d->state == HELD && d->until_us > clock_mono_us();
}

static struct delivery *find_delivery(unsigned lane, unsigned group, const void *key)
{
    for (unsigned i = 0; i < lanes[lane].n; i++)
        if (memcmp(lanes[lane].keys[i], key, 16) == 0)
            return &lanes[lane].of[group][i];
    return NULL;
}

static bool is_pending(unsigned lane, unsigned group)
{
    for (unsigned i = 0; i < lanes[lane].n; i++)
        if (lanes[lane].of[group][i].state != DONE)
            return true;
    return false;
}

// ---- the calls ----

static const char *name_of(unsigned lane) { return lane == 1 ? "p1" : "p2"; }

static void do_changes(const struct pg_params *p)
{
    static char snapshot[24];
    int64_t seen = 0;

    if (p->param[0].len != SIZE_MAX)
        assert_true(
            str_parse_i64((span){p->data.ptr + p->param[0].at, p->param[0].len}, &seen));
    snprintf(snapshot, sizeof snapshot, "%lld", (long long)n_changes);
    fake_row("snapshot:t emptied:l flags:i", snapshot, (int64_t)0, 0);
    for (unsigned g = 0; g < GROUPS; g++)
        if (group_changed_at[g] > seen)
            fake_row("lane:l lane_name:t queue_name:t", (int64_t)0, group_names[g], "q");
    for (unsigned i = 1; i <= LANES; i++)
        if (lanes[i].changed > seen)
            fake_row("lane:l lane_id:u lane_name:t queue_name:t", num_of(i), uuid(i),
                     name_of(i), "q");
}

static void do_discover(const struct pg_params *p)
{
    span only = {p->data.ptr + p->param[1].at, p->param[1].len};
    unsigned group = group_named((span){p->data.ptr + p->param[2].at, p->param[2].len});

    for (unsigned i = 1; i <= LANES; i++)
        if (only.len == SIZE_MAX ? is_pending(i, group) : span_eq(only, span_of(name_of(i))))
            fake_row("lane:l lane_id:u lane_name:t consumer:l pending:b", num_of(i), uuid(i),
                     name_of(i), consumer_of(i, group), is_pending(i, group));
}

static void do_consumers(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_INT8, 0); i++) {
        int64_t num = fake_int(p, PG_INT8, 0, i);
        for (unsigned lane = 1; lane <= LANES; lane++)
            if (num_of(lane) == num)
                fake_row("idx:i lane:l consumer:l", (int)i, num,
                         consumer_of(lane, group_named(fake_bytes(p, PG_TEXT, 0, i))));
    }
}

// The fast call and the careful one leave work queues to their own.
static void do_claim(const struct pg_params *p, bool careful)
{
    unsigned lane, group;

    for (unsigned i = 0; i < fake_len(p, PG_INT8, 0); i++)
        row_status((int)i + 1,
                   !find_consumer(fake_int(p, PG_INT8, 0, i), &lane, &group) ? GONE
                   : careful                                                 ? IS_WORK
                                                                             : WANTS_CARE,
                   0);
}

static void do_fast_claim(const struct pg_params *p) { do_claim(p, false); }
static void do_careful_claim(const struct pg_params *p) { do_claim(p, true); }

static bool is_available(const struct delivery *d) { return d->state != DONE && !is_held(d); }

// Takes messages for one pop, a row for each.  Returns their number.
static int64_t take(unsigned lane, unsigned group, int target, int64_t batch, bool auto_ack,
                    const void *lease, bool *taken)
{
    int64_t n = 0;

    for (unsigned i = 0; i < lanes[lane].n && n < batch; i++) {
        struct delivery *d = &lanes[lane].of[group][i];
        if (!is_available(d))
            continue;
        d->state = auto_ack ? DONE : HELD;
        d->until_us = clock_mono_us() + LEASE_US;
        memcpy(d->lease, lease, 16);
        taken[i] = true;
        n++;
        fake_row("target:i status:i wait_us:l lane_id:u retries:i start_seq:l take:i more:b",
                 target, CLAIMED, (int64_t)LEASE_US, uuid(lane), d->failed, (int64_t)i + 1, 1,
                 (int)is_pending(lane, group));
    }
    return n;
}

// When the first lease ends; 0: none.
static int64_t next_end_us(unsigned lane, unsigned group)
{
    uint64_t next = 0;

    for (unsigned i = 0; i < lanes[lane].n; i++) {
        const struct delivery *d = &lanes[lane].of[group][i];
        if (is_held(d) && (next == 0 || d->until_us < next))
            next = d->until_us;
    }
    return next > 0 ? (int64_t)(next - clock_mono_us()) : 0;
}

// The pops from `from` to `to` want messages of one consumer.
static void claim_part(const struct pg_params *p, unsigned from, unsigned to)
{
    bool taken[MAX_MESSAGES] = {0};
    unsigned lane, group;
    int status = !find_consumer(fake_int(p, PG_INT8, 0, from), &lane, &group) ? GONE
                 : roll(20) == 0                                              ? BUSY
                                                                              : EMPTY;

    for (unsigned i = from; i < to; i++) {
        int target = (int)i + 1;
        if (status != EMPTY)
            row_status(target, status, 0);
        else if (take(lane, group, target, fake_int(p, PG_INT4, 0, i),
                      fake_int(p, PG_BOOL, 0, i) != 0, fake_bytes(p, PG_UUID, 0, i).ptr,
                      taken) == 0)
            row_status(target, EMPTY, next_end_us(lane, group));
    }
    for (unsigned i = 0; status == EMPTY && i < lanes[lane].n; i++)
        if (taken[i])
            fake_row("target:i lane_id:u first_seq:l count:i created_at:T keys:y body:y",
                     (int)to, uuid(lane), (int64_t)i + 1, 1, (int64_t)CREATED_US,
                     (span){(const char *)lanes[lane].keys[i], 16}, SPAN("\x01\0\0\0\0\x02{}"));
}

static void do_work(const struct pg_params *p)
{
    unsigned n = fake_len(p, PG_INT8, 0);

    for (unsigned from = 0, to; from < n; from = to) {
        to = from + 1;
        while (to < n && fake_int(p, PG_INT8, 0, to) == fake_int(p, PG_INT8, 0, from))
            to++;
        claim_part(p, from, to);
    }
}

static int settle_one(struct delivery *d, span lease, int64_t status, bool *returned)
{
    *returned = false;
    if (!d)
        return ACK_NOT_FOUND;
    if (memcmp(d->lease, lease.ptr, 16) != 0)
        return ACK_BAD_LEASE;
    if (d->state != HELD)
        return d->state == DONE ? ACK_OK : ACK_BAD_LEASE;
    if (!is_held(d))
        return ACK_BAD_LEASE;
    *returned = status == ACK_FAILED || status == ACK_RETRY;
    d->state = *returned ? RETURNED : DONE;
    d->failed += status == ACK_FAILED;
    return ACK_OK;
}

static void do_settle(const struct pg_params *p)
{
    unsigned at = 0; // of the entries that are described one by one

    for (unsigned g = 0; g < fake_len(p, PG_BYTEA, 0); g++) {
        unsigned lane = (unsigned)(uint8_t)fake_bytes(p, PG_UUID, 0, g).ptr[0];
        unsigned group = group_named(fake_bytes(p, PG_TEXT, 0, g));
        span keys = fake_bytes(p, PG_BYTEA, 0, g), lease = fake_bytes(p, PG_UUID, 1, g);
        bool uniform = fake_int(p, PG_BOOL, 0, g) != 0, returned;

        for (unsigned i = 0; i < keys.len / 16; i++, at += !uniform) {
            int why =
                settle_one(find_delivery(lane, group, keys.ptr + 16ul * i),
                           uniform ? lease : fake_bytes(p, PG_UUID, 2, at),
                           uniform ? ACK_COMPLETED : fake_int(p, PG_INT2, 0, at), &returned);
            fake_row("grp:i entry:i why:i released:b dead:b queue_name:t lane_name:t lane:l "
                     "consumer:l more:b",
                     (int)g + 1, (int)i, why, why == ACK_OK, 0, "q", name_of(lane),
                     num_of(lane), consumer_of(lane, group), returned);
        }
    }
}

static void do_release(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_UUID, 0); i++)
        for (unsigned lane = 1; lane <= LANES; lane++)
            for (unsigned g = 0; g < GROUPS; g++) {
                bool any = false;
                for (unsigned m = 0; m < lanes[lane].n; m++) {
                    struct delivery *d = &lanes[lane].of[g][m];
                    if (is_held(d) &&
                        memcmp(d->lease, fake_bytes(p, PG_UUID, 0, i).ptr, 16) == 0)
                        d->state = RETURNED, any = true;
                }
                if (any)
                    fake_row("consumer:l lane:l queue_name:t", consumer_of(lane, g),
                             num_of(lane), "q");
            }
}

static void do_flags(const struct pg_params *p)
{
    (void)p;
    fake_row("queen.maintenance_flags():i", 0);
}

static const struct {
    const char *name;
    void (*serve)(const struct pg_params *p);
} calls[] = {
    {"changes", do_changes},   {"discover", do_discover},
    {"claim", do_fast_claim},  {"ensure_consumers", do_consumers},
    {"claim_work", do_work},   {"claim_careful", do_careful_claim},
    {"settle", do_settle},     {"release", do_release},
    {"maintenance", do_flags},
};

enum fate { ANSWERED, LOST_ANSWER, LOST_CALL, ROLLED_BACK };

static void serve(struct pg_call *call, enum fate fate)
{
    static const int status[] = {0, QE_PG_GONE, QE_PG_GONE, QE_PG_RETRY};

    // Calls that are not in the list are chores, which may succeed or fail.
    for (unsigned i = 0; i < countof(calls) && fate <= LOST_ANSWER; i++)
        if (strcmp(calls[i].name, call->statement->name) == 0)
            calls[i].serve(call->params);
    if (fate != ANSWERED)
        fake_no_rows();
    fake_answer(call, status[fate]);
}

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
    static const char *partitions[] = {"p1", "p2"};

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
    if (roll(2) == 0)
        a->pop.partition = span_of(partitions[roll(LANES)]);
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

static void push_elsewhere(void)
{
    unsigned lane = 1 + (unsigned)roll(LANES);

    for (uint64_t n = 1 + roll(4); n > 0 && lanes[lane].n < MAX_MESSAGES; n--)
        id_uuid7(lanes[lane].keys[lanes[lane].n++]);
    lanes[lane].changed = ++n_changes;
}

// A group is deleted: its leases end, and it begins again.
static void delete_group(void)
{
    unsigned group = (unsigned)roll(GROUPS);

    group_generation[group]++;
    group_changed_at[group] = ++n_changes;
    for (unsigned lane = 1; lane <= LANES; lane++)
        for (unsigned i = 0; i < lanes[lane].n; i++)
            if (lanes[lane].of[group][i].state == HELD)
                lanes[lane].of[group][i] = (struct delivery){0};
}

static void renumber(void)
{
    unsigned lane = 1 + (unsigned)roll(LANES);

    lanes[lane].generation++;
    lanes[lane].changed = ++n_changes;
}

static void step(void)
{
    uint64_t what = roll(100);

    if (what < 40)
        actor_step(&actors[roll(CONSUMERS)]);
    else if (what < 75 && is_up)
        serve_one();
    else if (what < 82 && is_up)
        push_elsewhere();
    else if (what < 83 && is_up)
        go_away();
    else if (what < 87 && !is_up)
        is_up = true, fake_set_up(true);
    else if (what < 93)
        clock_advance_us(roll(20000));
    else if (what < 95)
        clock_advance_us(roll(3000000));
    else if (what < 97)
        delete_group();
    else if (what < 98)
        renumber();
    else if (what < 99)
        broker_forget(broker);
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
    memset(lanes, 0, sizeof lanes);
    memset(group_generation, 0, sizeof group_generation);
    memset(group_changed_at, 0, sizeof group_changed_at);
    memset(actors, 0, sizeof actors);
    n_changes = 0;
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
