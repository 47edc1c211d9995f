// Simulation: the broker's whole logic (batches, gates, lanes, ready lists, parked pops,
// leases, the file buffer and its replay) on virtual time and a scripted database that loses
// answers, goes away, locks lanes and gives them new numbers.  One number decides everything
// that happens.
//
//      SIM_SEEDS=100000 test_broker_sim    so many schedules
//      SIM_SEED=17 test_broker_sim         that one
//      SIM_TRACE=1 test_broker_sim         prints a fingerprint of the calls and answers of
//      each:
//                                          a change that only moves code leaves it as it was
//
// Invariants: every operation is answered once; what was answered as stored is there once,
// in the order of its producer, also when it went through the file buffer; a delivery is what
// the database leased, and nobody else gets it; the answer to an acknowledgement is true; and
// when all is well again everything is stored and consumed within the time that polling allows.
// Requests for several lanes that are sent without waiting for answers are not overtaken
// either. While a SQL session keeps a lane locked, producers of other lanes do not wait for it,
// and what they have in the file buffer is replayed.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "rig.h"
#include "segment/keys.h"
#include "sim_db.h"
#include "spool/spool.h"

enum { PRODUCERS = 4, CONSUMERS = 4, MAX_SENT = 400, MAX_TAKEN = 64, STEPS = 250 };
enum { QUIET_MS = 120 * 1000 }; // after the last fault, until everything is done
enum { LOCKED_MS = 10 * 1000 }; // of it, until the last locks end

// Seeds that have found something: an ack that was done and answered as refused; a lane that
// was forgotten when a claim met its own lease, and one whose push had lost its answer.  The
// last three: requests of the streamer that were overtaken on their way to the file buffer.
static const uint64_t kept[] = {1008, 2947, 1858, 1048, 1057, 1547};

// With pops of all kinds: an acknowledgement for a consumer whose number was forgotten, and a
// request of the streamer that was overtaken on its way to the file buffer while it waited at
// another locked lane.
static const uint64_t kept_mixed[] = {1199, 5415};

// With calls that are refused: requests that failed in flight were buffered before those that
// waited at a locked lane.
static const uint64_t kept_refusing[] = {1547, 1007};

static uint64_t seed, dice, fingerprint;
static bool is_up, sync_fails, ending;
static bool mixed;    // pops of all kinds, and events that make them look again
static bool refusing; // calls are refused instead of lost: pushes are not sent again
static struct spool *spool;

static uint64_t roll(uint64_t below) // splitmix64
{
    uint64_t z = dice += 0x9e3779b97f4a7c15;

    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return (z ^ z >> 31) % below;
}

static void trace(const char *what, int64_t number) // FNV-1a
{
    char text[64];
    int n = snprintf(text, sizeof text, "%s %lld %llu", what, (long long)number,
                     (unsigned long long)clock_mono_us());

    for (int i = 0; i < n; i++)
        fingerprint = (fingerprint ^ (uint8_t)text[i]) * 0x100000001b3;
}

#define MUST(condition, ...)                                          \
    do {                                                              \
        if (!(condition)) {                                           \
            print_error("SIM_SEED=%llu: ", (unsigned long long)seed); \
            fail_msg(__VA_ARGS__);                                    \
        }                                                             \
    } while (0)

// ---- producers: each writes to one lane, one request at a time ----

struct producer {
    unsigned lane;
    bool named; // its ids are its own, so that it can try again
    bool busy;
    struct push push;
    char names[16][37]; // of the request under way
    unsigned n;
    uint8_t answered[MAX_SENT][16]; // keys that must be there, in this order
    unsigned n_answered;
};

static struct producer producers[PRODUCERS];

static void producer_send(struct producer *p)
{
    static const char *partitions[] = {"", "p1", "p2", "p3"};

    p->push = (struct push){0};
    for (unsigned i = 0; i < p->n; i++)
        push_item(&p->push, "q", partitions[p->lane], p->named ? p->names[i] : NULL);
    p->busy = true;
    push_start(&p->push);
}

static void name_message(char out[37])
{
    uint8_t id[16];

    id_uuid7(id);
    id_format_uuid(id, out);
}

static void producer_step(struct producer *p)
{
    if (p->busy || p->n_answered + 16 > MAX_SENT || ending)
        return;
    p->n = 1 + (unsigned)roll(5);
    for (unsigned i = 0; i < p->n; i++)
        name_message(p->names[i]);
    producer_send(p);
}

// An error leaves it open whether the messages are stored: a producer with transaction ids
// sends them again.
static void producer_look(struct producer *p)
{
    if (!p->busy || p->push.times == 0)
        return;
    p->busy = false;
    for (unsigned i = 0; p->push.status == 0 && i < p->n; i++) {
        const struct push_item *it = &p->push.items[i];
        MUST(it->status == PUSH_QUEUED || it->status == PUSH_BUFFERED ||
                 (it->status == PUSH_DUPLICATE && p->named),
             "item answered with %d", it->status);
        MUST(it->status == PUSH_BUFFERED || sim_find(p->lane, it->key) > 0,
             "answered as stored, but it is not");
        memcpy(p->answered[p->n_answered++], it->key, 16);
    }
    if (p->push.status != 0 && p->named)
        producer_send(p);
}

static void producer_verify(const struct producer *p)
{
    int64_t before = 0;

    for (unsigned i = 0; i < p->n_answered; i++) {
        int64_t seq = sim_find(p->lane, p->answered[i]);
        MUST(sim_count(p->lane, p->answered[i]) == 1, "message %u is there %u times", i,
             sim_count(p->lane, p->answered[i]));
        MUST(seq > before, "message %u lies before an earlier one", i);
        before = seq;
    }
}

// ---- a streamer: several lanes in a request, and the next request before the answer ----

enum { STREAM_WINDOW = 5, STREAM_REQUESTS = 60, STREAM_ITEMS = 4 };
static struct {
    struct push pushes[STREAM_REQUESTS];
    unsigned n, n_done;
    uint8_t lanes[STREAM_REQUESTS][STREAM_ITEMS];
} stream;

static void stream_look(void)
{
    while (stream.n_done < stream.n && stream.pushes[stream.n_done].times > 0)
        stream.n_done++;
}

static void stream_step(void)
{
    static const char *partitions[] = {"", "p1", "p2", "p3"};

    if (ending || stream.n == STREAM_REQUESTS || stream.n - stream.n_done == STREAM_WINDOW)
        return;
    struct push *p = &stream.pushes[stream.n];
    unsigned n = 1 + (unsigned)roll(STREAM_ITEMS);
    *p = (struct push){0};
    for (unsigned i = 0; i < n; i++) {
        uint8_t lane = (uint8_t)(1 + roll(SIM_LANES));
        stream.lanes[stream.n][i] = lane;
        push_item(p, "q", partitions[lane], NULL);
    }
    stream.n++;
    push_start(p);
}

// Those that were answered well lie in each lane in the order in which they were sent.
static void stream_verify(void)
{
    int64_t before[SIM_LANES + 1] = {0};

    for (unsigned r = 0; r < stream.n; r++) {
        const struct push *p = &stream.pushes[r];
        for (unsigned i = 0; p->status == 0 && i < p->op.n_items; i++) {
            unsigned lane = stream.lanes[r][i];
            int64_t seq = sim_find(lane, p->items[i].key);
            MUST(seq > before[lane], "request %u of the streamer was overtaken in lane %u", r,
                 lane);
            before[lane] = seq;
        }
    }
}

// ---- consumers: pop, then acknowledge, fail, or do nothing ----

struct consumer_actor {
    enum { RESTING, POPPING, HOLDING, ACKING } state;
    struct pop_op pop;
    unsigned times;
    bool cancelled;
    uint8_t lease[16], taken[MAX_TAKEN][16];
    unsigned lane, n_taken;
    int64_t first; // sequence number of the first
    struct ack_op ack;
    struct ack_entry entries[MAX_TAKEN];
    char ids[MAX_TAKEN][37], lease_text[37];
    struct arena arena;
    bool tried; // an earlier try of this ack was answered with an error
};

static struct consumer_actor consumers[CONSUMERS];

static void on_messages(struct pop_op *op, const struct pop_result *r)
{
    struct consumer_actor *c = container_of(op, struct consumer_actor, pop);

    MUST(r->n_claims == 1 && r->lease, "one partition was asked for");
    memcpy(c->lease, r->lease, 16);
    c->lane = r->claims[0].partition_id[0];
    c->n_taken = 0;
    for (unsigned s = 0; s < r->claims[0].n_runs; s++) {
        const struct pop_run *run = &r->claims[0].runs[s];
        for (unsigned i = run->from; i < run->from + run->n; i++)
            memcpy(c->taken[c->n_taken++], run->keys.ptr + 16ul * i, 16);
    }
    c->first = sim_find(c->lane, c->taken[0]);
    for (unsigned i = 0; i < c->n_taken; i++)
        MUST(sim_find(c->lane, c->taken[i]) == c->first + i, "a delivery with holes");
}

static void on_popped(struct pop_op *op, int status)
{
    struct consumer_actor *c = container_of(op, struct consumer_actor, pop);

    trace("popped", status * 1000 + (int)op->n_messages);
    MUST(c->times++ == 0 && c->state == POPPING, "answered twice");
    c->state = status == 0 && op->n_messages > 0 && !c->cancelled ? HOLDING : RESTING;
    for (unsigned i = 0; c->state == HOLDING && i < CONSUMERS; i++)
        MUST(&consumers[i] == c ||
                 (consumers[i].state != HOLDING && consumers[i].state != ACKING) ||
                 memcmp(consumers[i].lease, c->lease, 16) != 0,
             "a lease was given to two");
    buf_free(&op->out);
}

// Of any partition, of one, or by namespace.
static void vary(struct pop_op *pop)
{
    static const char *partitions[] = {"p1", "p2", "p3"};
    uint64_t kind = roll(3);

    if (kind == 1) {
        pop->partition = span_of(partitions[roll(SIM_LANES)]);
    } else if (kind == 2) {
        pop->queue = SPAN_NONE;
        pop->namespace_ = SPAN("n");
    }
}

static void consumer_pop(struct consumer_actor *c)
{
    c->pop = (struct pop_op){.queue = SPAN("q"),
                             .group = SPAN("g"),
                             .batch = 1 + (uint32_t)roll(20),
                             .partitions = 1,
                             .wait = roll(4) > 0 && !ending,
                             .timeout_ms = 100 + (uint32_t)roll(3000),
                             .render = on_messages,
                             .done = on_popped};
    if (mixed)
        vary(&c->pop);
    c->times = 0;
    c->cancelled = false;
    c->state = POPPING;
    broker_pop(broker, &c->pop);
}

static void on_acked(struct ack_op *op, int status)
{
    struct consumer_actor *c = container_of(op, struct consumer_actor, ack);
    bool refused = status == 0 && c->entries[0].why == ACK_BAD_LEASE;

    MUST(c->state == ACKING, "answered twice");
    MUST(status != 0 || c->entries[0].why == ACK_OK || refused, "answered with %d",
         c->entries[0].why);
    MUST(status != 0 || refused || sim_was_settled(c->lease), "acknowledged, but it is not");
    MUST(!refused || c->tried || !sim_was_settled(c->lease), "refused, though it was done");
    c->tried = status != 0;
    c->state = status != 0 && roll(3) > 0 ? HOLDING : RESTING;
}

static void consumer_ack(struct consumer_actor *c)
{
    bool fails = roll(8) == 0 && !ending;
    unsigned n = c->n_taken;

    arena_deinit(&c->arena);
    arena_init(&c->arena);
    id_format_uuid(c->lease, c->lease_text);
    c->ack = (struct ack_op){.entries = c->entries,
                             .n_entries = n,
                             .group = SPAN("g"),
                             .arena = &c->arena,
                             .done = on_acked};
    for (unsigned i = 0; i < n; i++) {
        id_format_uuid(c->taken[i], c->ids[i]);
        c->entries[i] =
            (struct ack_entry){.txid = span_of(c->ids[i]),
                               .lease = span_of(c->lease_text),
                               .status = fails && i == n - 1 ? ACK_FAILED : ACK_COMPLETED};
        memcpy(c->entries[i].partition_id, uuid(c->lane), 16);
    }
    c->state = ACKING;
    broker_ack(broker, &c->ack);
}

static void consumer_step(struct consumer_actor *c)
{
    if (c->state == RESTING) {
        c->tried = false;
        consumer_pop(c);
    } else if (c->state == POPPING && !c->cancelled && c->times == 0 && roll(10) == 0) {
        c->cancelled = true;
        broker_pop_cancel(broker, &c->pop);
    } else if (c->state == HOLDING && roll(10) == 0 && !ending) {
        c->state = RESTING; // does nothing: the lease expires
    } else if (c->state == HOLDING) {
        consumer_ack(c);
    }
}

// ---- the database and the disk ----

static int disk_sync(int fd)
{
    (void)fd;
    return sync_fails ? -1 : 0;
}

static const struct spool_disk disk = {write, disk_sync};

static enum sim_fate lost_call(void) { return refusing ? SIM_REFUSED : SIM_LOST_CALL; }

static void serve_one(void)
{
    const enum sim_fate fates[] = {SIM_LOST_ANSWER, lost_call(), SIM_ROLLED_BACK};
    struct pg_call *call = fake_nth((unsigned)roll(fake_n_calls() + 1));

    if (call)
        trace(call->statement->name, 0);
    if (call)
        sim_serve(call, roll(12) == 0 && !ending ? fates[roll(3)] : SIM_ANSWERED);
}

static void serve_all(void)
{
    for (unsigned n = fake_n_calls(); n > 0 && fake_n_calls() > 0; n--) {
        trace(fake_nth(0)->statement->name, 1);
        sim_serve(fake_nth(0), SIM_ANSWERED);
    }
}

// Calls in flight are lost, before or after their commit; new calls are refused.
static void go_away(void)
{
    is_up = false;
    for (unsigned n = fake_n_calls(); n > 0 && fake_n_calls() > 0; n--)
        sim_serve(fake_nth(0), roll(2) ? SIM_LOST_ANSWER : lost_call());
    fake_set_up(false);
}

static void push_elsewhere(void)
{
    uint8_t key[16];
    unsigned lane = 1 + (unsigned)roll(SIM_LANES);

    if (sim_is_locked(lane))
        return;
    id_uuid7(key);
    sim_push_elsewhere(lane, key);
}

// A lock keeps a lane from being deleted.
static void renumber(void)
{
    unsigned lane = 1 + (unsigned)roll(SIM_LANES);

    if (!sim_is_locked(lane))
        sim_renumber(lane);
}

static void resume_pops(void)
{
    broker->pops_stopped = false;
    pops_resume(broker, NULL);
}

// Events that make pops look again: another server, a moved cursor, missed changes, pops that
// are stopped for a while, a message in another broker's log.
static void disturb(void)
{
    struct queue *q = queue_find(broker, SPAN("q"));
    struct group *g = q ? group_get(broker, q, SPAN("g")) : NULL;
    uint64_t what = roll(6);

    trace("disturb", (int64_t)what);
    if (what == 0)
        broker_forget(broker);
    else if (what == 1 && g)
        group_changed(broker, g);
    else if (what == 2)
        groups_forget(broker);
    else if (what == 3)
        broker->pops_stopped = true;
    else if (what == 4)
        resume_pops();
    else
        broker_notify(broker, SPAN("q"));
}

static void step(void)
{
    uint64_t what = roll(100);

    if (mixed && roll(10) == 0)
        disturb();
    if (what < 15)
        producer_step(&producers[roll(PRODUCERS)]);
    else if (what < 20)
        stream_step();
    else if (what < 40)
        consumer_step(&consumers[roll(CONSUMERS)]);
    else if (what < 75 && is_up)
        serve_one();
    else if (what < 80)
        spool_turn(spool);
    else if (what < 82)
        sync_fails = roll(3) == 0;
    else if (what < 83 && is_up)
        go_away();
    else if (what < 86 && !is_up)
        is_up = true, fake_set_up(true);
    else if (what < 95)
        clock_advance_us(roll(20000));
    else if (what < 96)
        clock_advance_us(roll(3000000));
    else if (what < 98 && is_up)
        push_elsewhere();
    else if (what < 99)
        sim_lock(1 + (unsigned)roll(SIM_LANES), roll(2));
    else if (roll(2) == 0)
        renumber();
    for (unsigned n = is_up ? 0 : fake_n_calls(); n > 0 && fake_n_calls() > 0; n--)
        fake_answer(fake_nth(0), QE_PG_AWAY);
    turn();
    stream_look();
    for (unsigned i = 0; i < PRODUCERS; i++)
        producer_look(&producers[i]);
}

// ---- one schedule ----

static bool is_finished(void)
{
    for (unsigned i = 0; i < PRODUCERS; i++)
        if (producers[i].busy)
            return false;
    for (unsigned i = 1; i <= SIM_LANES; i++)
        if (sim_cursor(i) < sim_last(i))
            return false;
    stream_look();
    return stream.n_done == stream.n && spool_pending(spool) == 0;
}

static bool is_any_locked(void)
{
    for (unsigned i = 1; i <= SIM_LANES; i++)
        if (sim_is_locked(i))
            return true;
    return false;
}

static void end_locks(void)
{
    for (unsigned i = 0; i < PRODUCERS; i++)
        MUST(!producers[i].busy || sim_is_locked(producers[i].lane),
             "the producer of lane %u waits for another lane", producers[i].lane);
    for (unsigned i = 0; i < PRODUCERS; i++)
        if (!sim_is_locked(producers[i].lane))
            producer_verify(&producers[i]); // also what went through the file buffer
    for (unsigned i = 1; i <= SIM_LANES; i++)
        sim_lock(i, false);
}

static bool is_anybody_popping(void)
{
    for (unsigned i = 0; i < CONSUMERS; i++)
        if (consumers[i].state == POPPING || consumers[i].state == ACKING)
            return true;
    return false;
}

static void settle_down(void)
{
    unsigned ms = 0;

    ending = true;
    sync_fails = false;
    if (!is_up)
        is_up = true, fake_set_up(true);
    if (mixed)
        resume_pops();
    for (; (!is_finished() || is_any_locked()) && ms < QUIET_MS; ms += 10) {
        if (ms == LOCKED_MS)
            end_locks();
        serve_all();
        spool_turn(spool);
        turn();
        for (unsigned i = 0; i < PRODUCERS; i++)
            producer_look(&producers[i]);
        for (unsigned i = 0; i < CONSUMERS; i++)
            if (consumers[i].state != POPPING)
                consumer_step(&consumers[i]);
        wait_ms(10);
    }
    MUST(is_finished(),
         "not done after %u s: pending %llu; lanes %lld/%lld %lld/%lld %lld/%lld", ms / 1000,
         (unsigned long long)spool_pending(spool), (long long)sim_cursor(1),
         (long long)sim_last(1), (long long)sim_cursor(2), (long long)sim_last(2),
         (long long)sim_cursor(3), (long long)sim_last(3));
    for (unsigned i = 0; i < PRODUCERS; i++)
        producer_verify(&producers[i]);
    stream_verify();
    // Clients that still wait hang up.
    for (unsigned i = 0; i < 1000 && is_anybody_popping(); i++) {
        serve_all();
        wait_ms(10);
    }
    MUST(!is_anybody_popping(), "a pop is still parked");
}

static void run_schedule(uint64_t number)
{
    char dir[] = "/dev/shm/queen-sim-XXXXXX", command[64];
    struct fault f;

    seed = dice = number;
    fingerprint = 0xcbf29ce484222325;
    is_up = true;
    sync_fails = ending = false;
    sim_reset();
    assert_int_equal(rig_setup(NULL), 0);
    assert_non_null(mkdtemp(dir));
    struct spool_conf conf = {.dir = dir,
                              .events_per_file = 5 + (unsigned)roll(50),
                              .idle_ms = 50,
                              .max_bytes = 1 << 20,
                              .disk = &disk,
                              .by_hand = true};
    assert_int_equal(spool_open(&spool, &conf, &f), 0);
    rig_spool = spool;
    rig_open();
    memset(producers, 0, sizeof producers);
    memset(consumers, 0, sizeof consumers);
    stream.n = stream.n_done = 0;
    for (unsigned i = 0; i < PRODUCERS; i++) {
        producers[i].lane = 1 + i % SIM_LANES;
        producers[i].named = i != 1;
    }
    for (unsigned i = 0; i < CONSUMERS; i++)
        arena_init(&consumers[i].arena);
    for (unsigned i = 0; i < STEPS; i++)
        step();
    settle_down();
    for (unsigned i = 0; i < CONSUMERS; i++)
        arena_deinit(&consumers[i].arena);
    assert_int_equal(rig_teardown(NULL), 0);
    rig_spool = NULL;
    spool_close(spool);
    snprintf(command, sizeof command, "rm -rf %s", dir);
    assert_int_equal(system(command), 0);
    if (getenv("SIM_TRACE"))
        printf("%llu %d %016llx\n", (unsigned long long)number, mixed,
               (unsigned long long)fingerprint);
}

static void run_kept(const uint64_t *seeds, unsigned n, bool is_mixed, bool is_refusing)
{
    mixed = is_mixed;
    refusing = is_refusing;
    for (unsigned i = 0; i < n; i++)
        run_schedule(seeds[i]);
}

static void schedules_that_have_found_something(void **state)
{
    (void)state;
    run_kept(kept, countof(kept), false, false);
    run_kept(kept_mixed, countof(kept_mixed), true, false);
    run_kept(kept_refusing, countof(kept_refusing), false, true);
}

static void run_schedules(bool is_mixed, bool is_refusing)
{
    const char *one = getenv("SIM_SEED"), *many = getenv("SIM_SEEDS");
    uint64_t from = one ? strtoull(one, NULL, 10) : 1000;
    uint64_t n = one ? 1 : many ? strtoull(many, NULL, 10) : 1000;

    mixed = is_mixed;
    refusing = is_refusing;
    for (uint64_t i = 0; i < n; i++)
        run_schedule(from + i);
}

static void any_schedule(void **state)
{
    (void)state;
    run_schedules(false, false);
}

static void any_schedule_with_pops_of_all_kinds(void **state)
{
    (void)state;
    run_schedules(true, false);
}

static void any_schedule_with_calls_that_are_refused(void **state)
{
    (void)state;
    run_schedules(false, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(schedules_that_have_found_something),
        cmocka_unit_test(any_schedule),
        cmocka_unit_test(any_schedule_with_pops_of_all_kinds),
        cmocka_unit_test(any_schedule_with_calls_that_are_refused),
    };

    log_setup(LOG_OFF, LOG_TEXT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
