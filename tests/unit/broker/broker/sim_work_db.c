// See sim_work_db.h.
#include "sim_work_db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/str.h"

enum { IS_WORK = 8, FULL = 10 };        // statuses of a claim
enum { DUPLICATES = 1, LANE_GONE = 3 }; // of a pushed segment

static unsigned limits; // LIMIT_...

// ---- what is true ----

struct work_lane lanes[LANES + 1];
const char *const group_names[GROUPS] = {"g", "h"};
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

bool is_held(const struct delivery *d)
{
    return d->state == HELD && d->until_us > clock_mono_us();
}

struct delivery *find_delivery(unsigned lane, unsigned group, const void *key)
{
    for (unsigned i = 0; i < lanes[lane].n; i++)
        if (memcmp(lanes[lane].keys[i], key, 16) == 0)
            return &lanes[lane].of[group][i];
    return NULL;
}

bool is_pending(unsigned lane, unsigned group)
{
    for (unsigned i = 0; i < lanes[lane].n; i++)
        if (lanes[lane].of[group][i].state != DONE)
            return true;
    return false;
}

// ---- the calls ----

static const char *const lane_names[] = {"", "p1", "p2", "p1~p7"};

const char *name_of(unsigned lane) { return lane_names[lane]; }

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

// The fast call and the careful one leave work queues to their own.  nth: the parameter with
// the consumers.
static void do_claim(const struct pg_params *p, int nth, int status)
{
    unsigned lane, group;

    for (unsigned i = 0; i < fake_len(p, PG_INT8, nth); i++)
        row_status((int)i + 1,
                   find_consumer(fake_int(p, PG_INT8, nth, i), &lane, &group) ? status : GONE,
                   0);
}

static void do_fast_claim(const struct pg_params *p) { do_claim(p, 0, WANTS_CARE); }
static void do_careful_claim(const struct pg_params *p) { do_claim(p, 0, IS_WORK); }

static void do_lanes(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_TEXT, 1); i++)
        for (unsigned lane = 1; lane <= LANES; lane++)
            if (span_eq(fake_bytes(p, PG_TEXT, 1, i), span_of(name_of(lane))))
                fake_row("idx:i lane:l lane_id:u", (int)i, num_of(lane), uuid(lane));
}

bool is_stored(unsigned lane, const void *key) { return find_delivery(lane, 0, key) != NULL; }

// Columns of the call that pushes, and of the one that claims as well.
struct push_columns {
    const char *stored, *duplicate, *gone;
};

// A segment with messages that are stored already, by a call whose answer was lost.
static bool row_duplicates(const struct push_columns *columns, unsigned i, unsigned lane,
                           span keys)
{
    bool any = false;

    for (unsigned k = 0; k < keys.len / 16; k++)
        if (is_stored(lane, keys.ptr + 16ul * k)) {
            fake_row(columns->duplicate, (int)i + 1, DUPLICATES, (int)k, uuid(lane));
            any = true;
        }
    return any;
}

// Refused segments are reported behind the stored ones.
static void push_segments(const struct pg_params *p, const struct push_columns *columns)
{
    unsigned n = fake_len(p, PG_INT8, 0), lane_at[32] = {0};

    assert_true(n <= countof(lane_at));
    for (unsigned i = 0; i < n; i++)
        for (unsigned lane = 1; lane <= LANES; lane++)
            if (fake_int(p, PG_INT8, 0, i) == num_of(lane))
                lane_at[i] = lane;
    for (unsigned i = 0; i < n; i++) {
        unsigned lane = lane_at[i];
        span keys = fake_bytes(p, PG_BYTEA, 0, i);
        if (lane == 0)
            fake_row(columns->gone, (int)i + 1, LANE_GONE);
        else if (row_duplicates(columns, i, lane, keys))
            lane_at[i] = 0;
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned lane = lane_at[i];
        span keys = fake_bytes(p, PG_BYTEA, 0, i);
        if (lane == 0)
            continue;
        fake_row(columns->stored, num_of(lane), (int64_t)lanes[lane].n + 1, (int64_t)CREATED_US,
                 0);
        for (unsigned k = 0; k < keys.len / 16; k++)
            memcpy(lanes[lane].keys[lanes[lane].n++], keys.ptr + 16ul * k, 16);
    }
}

static void do_push(const struct pg_params *p)
{
    push_segments(p, &(struct push_columns){"lane:l first_seq:l created_at:T status:i",
                                            "seg:i status:i pos:i dup_id:u", "seg:i status:i"});
}

// The broker does not know yet that this is a work queue.
static void do_push_claim(const struct pg_params *p)
{
    push_segments(p, &(struct push_columns){
                         "stored_lane:l stored_seq:l stored_at:T stored_status:i",
                         "seg:i stored_status:i pos:i dup_id:u", "seg:i stored_status:i"});
    do_claim(p, -3, WANTS_CARE);
}

// It was given back for later.
static bool is_delayed(const struct delivery *d)
{
    return d->state == RETURNED && d->until_us > clock_mono_us();
}

static bool is_available(const struct delivery *d)
{
    return d->state != DONE && !is_held(d) && !is_delayed(d);
}

// When the first delay ends, or the first lease as well; 0: none.
static int64_t next_end_us(unsigned lane, unsigned group, bool leases)
{
    uint64_t next = 0;

    for (unsigned i = 0; i < lanes[lane].n; i++) {
        const struct delivery *d = &lanes[lane].of[group][i];
        if ((is_delayed(d) || (leases && is_held(d))) && (next == 0 || d->until_us < next))
            next = d->until_us;
    }
    return next > 0 ? (int64_t)(next - clock_mono_us()) : 0;
}

// Takes messages for one pop, a row for each.  Returns their number.
static int64_t take(unsigned lane, unsigned group, int target, int64_t batch, bool auto_ack,
                    const void *lease, bool *taken)
{
    int64_t n = 0, due_us = next_end_us(lane, group, false);

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
                 target, CLAIMED, due_us > 0 && due_us < LEASE_US ? due_us : (int64_t)LEASE_US,
                 uuid(lane), d->failed, (int64_t)i + 1, 1, (int)is_pending(lane, group));
    }
    return n;
}

static int64_t n_held(unsigned lane, unsigned group)
{
    int64_t n = 0;

    for (unsigned i = 0; i < lanes[lane].n; i++)
        n += is_held(&lanes[lane].of[group][i]);
    return n;
}

// How many messages the group may lease of the queue, and of a key.
static int64_t room_of(unsigned group)
{
    int64_t room = MAX_IN_FLIGHT;

    for (unsigned lane = 1; lane <= LANES; lane++)
        room -= n_held(lane, group);
    return limits & LIMIT_QUEUE ? room : INT32_MAX;
}

static int64_t room_of_key(unsigned lane, unsigned group)
{
    int64_t n = lane == 2 ? n_held(2, group) : n_held(1, group) + n_held(3, group);

    return limits & LIMIT_KEYS ? KEY_MAX_IN_FLIGHT - n : INT32_MAX;
}

// Nothing for this pop: because of a limit, or nothing is there.
static void row_nothing(int target, unsigned lane, unsigned group)
{
    if (room_of(group) <= 0)
        row_status(target, FULL, LOOK_US);
    else if (room_of_key(lane, group) <= 0)
        row_status(target, NOT_YET, LOOK_US);
    else
        row_status(target, EMPTY, next_end_us(lane, group, true));
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
        bool auto_ack = status == EMPTY && fake_int(p, PG_BOOL, 0, i) != 0;
        int64_t batch = fake_int(p, PG_INT4, 0, i);
        if (status == EMPTY && !auto_ack && batch > room_of(group))
            batch = room_of(group);
        if (status == EMPTY && !auto_ack && batch > room_of_key(lane, group))
            batch = room_of_key(lane, group);
        if (status != EMPTY)
            row_status(target, status, 0);
        else if (take(lane, group, target, batch, auto_ack, fake_bytes(p, PG_UUID, 0, i).ptr,
                      taken) == 0)
            row_nothing(target, lane, group);
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
    d->until_us = *returned && roll(3) == 0 ? clock_mono_us() + roll(LEASE_US) : 0;
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
                     num_of(lane), consumer_of(lane, group),
                     returned || (limits && why == ACK_OK));
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
    {"maintenance", do_flags}, {"ensure_lanes", do_lanes},
    {"push", do_push},         {"push_claim", do_push_claim},
};

void serve(struct pg_call *call, enum fate fate)
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

// ---- what others do ----

void push_elsewhere(unsigned lane, unsigned n)
{
    for (; n > 0 && lanes[lane].n < MAX_MESSAGES; n--)
        id_uuid7(lanes[lane].keys[lanes[lane].n++]);
    lanes[lane].changed = ++n_changes;
}

void delete_group(unsigned group)
{
    group_generation[group]++;
    group_changed_at[group] = ++n_changes;
    for (unsigned lane = 1; lane <= LANES; lane++)
        for (unsigned i = 0; i < lanes[lane].n; i++)
            if (lanes[lane].of[group][i].state == HELD)
                lanes[lane].of[group][i] = (struct delivery){0};
}

void renumber(unsigned lane)
{
    lanes[lane].generation++;
    lanes[lane].changed = ++n_changes;
}

void work_reset(unsigned which)
{
    limits = which;
    memset(lanes, 0, sizeof lanes);
    memset(group_generation, 0, sizeof group_generation);
    memset(group_changed_at, 0, sizeof group_changed_at);
    n_changes = 0;
}
