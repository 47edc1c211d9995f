// The tables are arrays; every call is one function.
#include "sim_db.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/str.h"
#include "rig.h"

enum { MAX_SEGMENTS = 2000, MAX_LEASES = 4000, CONSUMER_0 = 100000 };

struct segment {
    int64_t first;
    unsigned count;
    char *keys, *body; // allocated
    size_t keys_len, body_len;
};

struct lane_table {
    struct segment segments[MAX_SEGMENTS];
    unsigned n;
    int64_t next;
    int64_t changed; // when somebody else changed it last
    bool made, locked;
    unsigned generation; // grows when the lane is deleted and created again
    // of the one consumer
    int64_t cursor, ver, first, last;
    unsigned acked;
    int retries;
    bool leased;
    uint8_t lease[16];
    uint64_t until_us;
};

static struct lane_table lanes[SIM_LANES + 1]; // from 1
static uint8_t settled[MAX_LEASES][16];
static unsigned n_settled;
static int64_t n_changes; // by somebody else; the snapshot of the feed

static void do_lanes(const struct pg_params *p);
static void do_push(const struct pg_params *p);
static void do_push_claim(const struct pg_params *p);
static void do_locked_lanes(const struct pg_params *p);
static void do_changes(const struct pg_params *p);
static void do_discover(const struct pg_params *p);
static void do_consumers(const struct pg_params *p);
static void do_claim(const struct pg_params *p);
static void do_finish(const struct pg_params *p);
static void do_settle(const struct pg_params *p);
static void do_release(const struct pg_params *p);
static void do_flags(const struct pg_params *p);
static void do_queues(const struct pg_params *p);

static const struct {
    const char *name;
    void (*serve)(const struct pg_params *p);
} calls[] = {
    {"ensure_lanes", do_lanes},
    {"push", do_push},
    {"locked_lanes", do_locked_lanes},
    {"changes", do_changes},
    {"discover", do_discover},
    {"ensure_consumers", do_consumers},
    {"claim", do_claim},
    {"finish", do_finish},
    {"settle", do_settle},
    {"release", do_release},
    {"maintenance", do_flags},
    {"select_queues", do_queues},
    {"push_claim", do_push_claim},
};

void sim_reset(void)
{
    for (unsigned i = 1; i <= SIM_LANES; i++) {
        for (unsigned s = 0; s < lanes[i].n; s++) {
            free(lanes[i].segments[s].keys);
            free(lanes[i].segments[s].body);
        }
        memset(&lanes[i], 0, sizeof lanes[i]);
        lanes[i].next = 1;
    }
    n_settled = 0;
    n_changes = 0;
}

static int64_t num_of(unsigned lane) { return lane + 16ll * lanes[lane].generation; }

// 0: the lane with that number was deleted.
static unsigned lane_of(int64_t num)
{
    unsigned lane = (unsigned)(num % 16);

    return num_of(lane) == num ? lane : 0;
}

void sim_renumber(unsigned lane)
{
    lanes[lane].generation++;
    if (lanes[lane].cursor + 1 < lanes[lane].next) // as if they had been pushed again
        lanes[lane].changed = ++n_changes;
}

void sim_lock(unsigned lane, bool locked) { lanes[lane].locked = locked; }
bool sim_is_locked(unsigned lane) { return lanes[lane].locked; }

static unsigned lane_named(span name)
{
    int64_t num = 0;

    assert_true(str_parse_i64((span){name.ptr + 1, name.len - 1}, &num));
    return (unsigned)num;
}

static bool is_name_locked(unsigned lane) { return lanes[lane].locked && !lanes[lane].made; }

// Such a call fails when it has waited long enough.
static bool waits_for_lock(const struct pg_call *call)
{
    const struct pg_params *p = call->params;

    if (strcmp(call->statement->name, "push") == 0 ||
        strcmp(call->statement->name, "push_claim") == 0)
        for (unsigned i = 0; i < fake_len(p, PG_INT8, 0); i++)
            if (lanes[lane_of(fake_int(p, PG_INT8, 0, i))].locked)
                return true;
    if (strcmp(call->statement->name, "ensure_lanes") == 0 && !fake_scalar(p, 2))
        for (unsigned i = 0; i < fake_len(p, PG_TEXT, 1); i++)
            if (is_name_locked(lane_named(fake_bytes(p, PG_TEXT, 1, i))))
                return true;
    return false;
}

void sim_serve(struct pg_call *call, enum sim_fate fate)
{
    static const int status[] = {0, QE_PG_GONE, QE_PG_GONE, QE_PG_RETRY, QE_PG_AWAY};

    if (fate <= SIM_LOST_ANSWER && waits_for_lock(call)) {
        fake_no_rows();
        fake_answer_locked(call);
        return;
    }
    // Calls that are not in the list are chores, which may succeed or fail.
    for (unsigned i = 0; i < countof(calls) && fate <= SIM_LOST_ANSWER; i++)
        if (strcmp(calls[i].name, call->statement->name) == 0)
            calls[i].serve(call->params);
    if (fate != SIM_ANSWERED)
        fake_no_rows();
    fake_answer(call, status[fate]);
}

// ---- what is true ----

static const struct segment *segment_of(unsigned lane, const void *key, unsigned *at)
{
    for (unsigned s = 0; s < lanes[lane].n; s++)
        for (*at = 0; *at < lanes[lane].segments[s].count; ++*at)
            if (memcmp(lanes[lane].segments[s].keys + 16ul * *at, key, 16) == 0)
                return &lanes[lane].segments[s];
    return NULL;
}

int64_t sim_find(unsigned lane, const uint8_t key[16])
{
    unsigned at;
    const struct segment *s = segment_of(lane, key, &at);

    return s ? s->first + at : 0;
}

unsigned sim_count(unsigned lane, const uint8_t key[16])
{
    unsigned n = 0;

    for (unsigned s = 0; s < lanes[lane].n; s++)
        for (unsigned i = 0; i < lanes[lane].segments[s].count; i++)
            n += memcmp(lanes[lane].segments[s].keys + 16ul * i, key, 16) == 0;
    return n;
}

int64_t sim_cursor(unsigned lane) { return lanes[lane].cursor; }
int64_t sim_last(unsigned lane) { return lanes[lane].next - 1; }

bool sim_was_settled(const uint8_t lease[16])
{
    for (unsigned i = 0; i < n_settled; i++)
        if (memcmp(settled[i], lease, 16) == 0)
            return true;
    return false;
}

static void note_settled(const void *lease)
{
    assert_true(n_settled < MAX_LEASES);
    memcpy(settled[n_settled++], lease, 16);
}

// ---- pushes ----

static int64_t created(int64_t seq) { return CREATED_US + seq; }

static void append(unsigned lane, span keys, span body)
{
    struct lane_table *l = &lanes[lane];
    struct segment *s = &l->segments[l->n++];

    assert_true(l->n < MAX_SEGMENTS);
    *s = (struct segment){.first = l->next,
                          .count = (unsigned)(keys.len / 16),
                          .keys = malloc(keys.len),
                          .body = malloc(body.len),
                          .keys_len = keys.len,
                          .body_len = body.len};
    memcpy(s->keys, keys.ptr, keys.len);
    memcpy(s->body, body.ptr, body.len);
    l->next += s->count;
}

void sim_push_elsewhere(unsigned lane, const uint8_t key[16])
{
    lanes[lane].made = true;
    append(lane, (span){(const char *)key, 16}, SPAN("\x01\0\0\0\0\x02{}"));
    lanes[lane].changed = ++n_changes;
}

static void do_lanes(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_TEXT, 1); i++) {
        unsigned num = lane_named(fake_bytes(p, PG_TEXT, 1, i));
        if (is_name_locked(num)) {
            fake_row("idx:i lane:l", (int)i, (int64_t)0);
            continue;
        }
        lanes[num].made = true;
        fake_row("idx:i lane:l lane_id:u", (int)i, num_of(num), uuid(num));
    }
}

static void do_locked_lanes(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_INT8, 0); i++)
        if (lanes[lane_of(fake_int(p, PG_INT8, 0, i))].locked)
            fake_row("lane:l", fake_int(p, PG_INT8, 0, i));
}

static bool has_duplicate(unsigned lane, span keys)
{
    unsigned at;

    for (unsigned i = 0; i < keys.len / 16; i++)
        if (segment_of(lane, keys.ptr + 16ul * i, &at))
            return true;
    return false;
}

// Columns of the call that pushes, and of the one that claims as well.
static const struct push_columns {
    const char *stored, *duplicate, *other;
} push_columns = {"lane:l first_seq:l created_at:T status:i", "seg:i status:i pos:i dup_id:u",
                  "seg:i status:i"},
  push_claim_columns = {"stored_lane:l stored_seq:l stored_at:T stored_status:i",
                        "seg:i stored_status:i pos:i dup_id:u", "seg:i stored_status:i"};

static void tell_duplicates(const struct push_columns *columns, unsigned seg, unsigned lane,
                            span keys)
{
    unsigned at;

    for (unsigned i = 0; i < keys.len / 16; i++)
        if (segment_of(lane, keys.ptr + 16ul * i, &at))
            fake_row(columns->duplicate, (int)seg + 1, 1, (int)i, uuid(lane));
}

// A segment with duplicates is not stored, nor is what follows it in its lane.
static void push(const struct pg_params *p, const struct push_columns *columns)
{
    unsigned n = fake_len(p, PG_INT8, 0);
    bool held[SIM_LANES + 1] = {0}, stored[64] = {0}, twice[64] = {0};

    assert_true(n <= countof(stored));
    for (unsigned i = 0; i < n; i++) {
        unsigned lane = lane_of(fake_int(p, PG_INT8, 0, i));
        span keys = fake_bytes(p, PG_BYTEA, 0, i);
        if (lane == 0)
            continue;
        twice[i] = has_duplicate(lane, keys);
        stored[i] = !twice[i] && !held[lane];
        held[lane] = held[lane] || !stored[i];
        if (!stored[i])
            continue;
        int64_t seq = lanes[lane].next;
        append(lane, keys, fake_bytes(p, PG_BYTEA, 1, i));
        fake_row(columns->stored, num_of(lane), seq, created(seq), 0);
    }
    for (unsigned i = 0; i < n; i++) {
        unsigned lane = lane_of(fake_int(p, PG_INT8, 0, i));
        if (lane == 0)
            fake_row(columns->other, (int)i + 1, SEG_LANE_GONE);
        else if (twice[i])
            tell_duplicates(columns, i, lane, fake_bytes(p, PG_BYTEA, 0, i));
        else if (!stored[i])
            fake_row(columns->other, (int)i + 1, 2);
    }
}

static void do_push(const struct pg_params *p) { push(p, &push_columns); }

// ---- pops ----

static const char *name_of(unsigned lane)
{
    static char names[SIM_LANES + 1][8];

    snprintf(names[lane], sizeof names[lane], "p%u", lane);
    return names[lane];
}

// All that has changed since the snapshot that the caller has: an answer that was lost is given
// again.
static void do_changes(const struct pg_params *p)
{
    static char snapshot[24];
    int64_t seen = 0;
    span text = {p->data.ptr + p->param[0].at, p->param[0].len};

    if (p->param[0].len != SIZE_MAX)
        assert_true(str_parse_i64(text, &seen));
    snprintf(snapshot, sizeof snapshot, "%lld", (long long)n_changes);
    fake_row("snapshot:t emptied:l flags:i", snapshot, (int64_t)0, 0);
    for (unsigned i = 1; i <= SIM_LANES; i++)
        if (lanes[i].changed > seen)
            fake_row("lane:l lane_id:u lane_name:t queue_name:t", num_of(i), uuid(i),
                     name_of(i), "q");
}

static bool is_leased(const struct lane_table *l)
{
    return l->leased && l->until_us > clock_mono_us();
}

// All lanes with messages, or one lane by its number.
static void do_discover(const struct pg_params *p)
{
    bool one = p->param[1].len != SIZE_MAX;
    unsigned only = one ? lane_named((span){p->data.ptr + p->param[1].at, p->param[1].len}) : 0;

    for (unsigned i = 1; i <= SIM_LANES; i++)
        if (one ? i == only && lanes[i].made : lanes[i].cursor + 1 < lanes[i].next)
            fake_row(is_leased(&lanes[i])
                         ? "lane:l lane_id:u lane_name:t consumer:l pending:b lease_us:l"
                         : "lane:l lane_id:u lane_name:t consumer:l pending:b",
                     num_of(i), uuid(i), name_of(i), CONSUMER_0 + num_of(i),
                     lanes[i].cursor + 1 < lanes[i].next,
                     (int64_t)(lanes[i].until_us - clock_mono_us()));
}

static void do_consumers(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_INT8, 0); i++) {
        int64_t lane = fake_int(p, PG_INT8, 0, i);
        if (lane_of(lane) != 0)
            fake_row("idx:i lane:l consumer:l", (int)i, lane, CONSUMER_0 + lane);
    }
}

// One row for each segment of it.
static void claim(unsigned target, unsigned lane, int64_t batch, bool auto_ack,
                  const void *lease)
{
    struct lane_table *l = &lanes[lane];
    int64_t take = l->next - 1 - l->cursor, start = l->cursor + 1;

    if (is_leased(l)) {
        fake_row("target:i status:i wait_us:l", (int)target, TAKEN,
                 (int64_t)(l->until_us - clock_mono_us()));
        return;
    }
    if (take == 0) {
        fake_row("target:i status:i", (int)target, EMPTY);
        return;
    }
    take = take < batch ? take : batch;
    for (unsigned s = 0; s < l->n; s++) {
        const struct segment *g = &l->segments[s];
        if (g->first + g->count <= start || g->first >= start + take)
            continue;
        fake_row("target:i status:i wait_us:l lane_id:u retries:i start_seq:l take:i more:b "
                 "first_seq:l count:i created_at:T keys:y body:y ver:l",
                 (int)target, CLAIMED, (int64_t)SIM_LEASE_US, uuid(lane), l->retries, start,
                 (int)take, take == batch, g->first, (int)g->count, created(g->first),
                 (span){g->keys, g->keys_len}, (span){g->body, g->body_len}, l->ver);
    }
    l->ver++;
    if (auto_ack) {
        l->cursor += take;
        return;
    }
    l->leased = true;
    l->first = start;
    l->last = start + take - 1;
    l->acked = 0;
    l->until_us = clock_mono_us() + SIM_LEASE_US;
    memcpy(l->lease, lease, 16);
}

// Its parameters are the last ones of the call.
static void do_claim(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_INT8, -3); i++) {
        unsigned lane = lane_of(fake_int(p, PG_INT8, -3, i) - CONSUMER_0);
        if (lane == 0)
            fake_row("target:i status:i", (int)i + 1, GONE);
        else
            claim(i + 1, lane, fake_int(p, PG_INT4, -1, i), fake_int(p, PG_BOOL, -1, i) != 0,
                  fake_bytes(p, PG_UUID, -1, i).ptr);
    }
}

static void do_push_claim(const struct pg_params *p)
{
    push(p, &push_claim_columns);
    do_claim(p);
}

// ---- acknowledgements ----

static bool holds(const struct lane_table *l, span lease)
{
    return is_leased(l) && lease.ptr && memcmp(l->lease, lease.ptr, 16) == 0;
}

static void do_finish(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_INT8, 0); i++) {
        int64_t consumer = fake_int(p, PG_INT8, 0, i);
        unsigned lane = lane_of(consumer - CONSUMER_0);
        struct lane_table *l = &lanes[lane];
        if (lane == 0 || !holds(l, fake_bytes(p, PG_UUID, 0, i)) || l->acked > 0)
            continue;
        note_settled(l->lease);
        l->cursor = l->last;
        l->leased = false;
        l->retries = 0;
        l->ver++;
        fake_row("consumer:l", consumer);
    }
}

// In the order of the log, which is that of the simulation's requests.
static int settle_entry(struct lane_table *l, unsigned lane, span key, int64_t status,
                        bool *frozen)
{
    int64_t seq = sim_find(lane, (const uint8_t *)key.ptr);

    if (seq == 0)
        return ACK_NOT_FOUND;
    if (*frozen)
        return ACK_OK;
    if (status == ACK_FAILED) {
        l->leased = false;
        l->retries++;
        *frozen = true;
        return ACK_OK;
    }
    l->cursor = seq > l->cursor ? seq : l->cursor;
    if (++l->acked == l->last - l->first + 1) {
        l->leased = false;
        l->retries = 0;
    }
    return ACK_OK;
}

static void do_settle(const struct pg_params *p)
{
    unsigned at = 0; // of the entries that are described one by one

    for (unsigned g = 0; g < fake_len(p, PG_BYTEA, 0); g++) {
        unsigned lane = (unsigned)(uint8_t)fake_bytes(p, PG_UUID, 0, g).ptr[0];
        span keys = fake_bytes(p, PG_BYTEA, 0, g), lease = fake_bytes(p, PG_UUID, 1, g);
        bool uniform = fake_int(p, PG_BOOL, 0, g) != 0, frozen = false, good = true;
        struct lane_table *l = &lanes[lane];
        int why[64];
        if (!uniform)
            lease = fake_bytes(p, PG_UUID, 2, at);
        good = holds(l, lease);
        if (good)
            note_settled(l->lease);
        for (unsigned i = 0; i < keys.len / 16; i++)
            why[i] = good ? settle_entry(l, lane, (span){keys.ptr + 16ul * i, 16},
                                         uniform ? 0 : fake_int(p, PG_INT2, 0, at + i), &frozen)
                          : ACK_BAD_LEASE;
        l->ver++;
        at += uniform ? 0 : (unsigned)(keys.len / 16);
        for (unsigned i = 0; i < keys.len / 16; i++)
            fake_row("grp:i entry:i why:i released:b dead:b queue_name:t lane_name:t lane:l "
                     "consumer:l more:b",
                     (int)g + 1, (int)i, why[i], !l->leased, 0, "q", name_of(lane),
                     num_of(lane), CONSUMER_0 + num_of(lane), l->cursor + 1 < l->next);
    }
}

static void do_release(const struct pg_params *p)
{
    for (unsigned i = 0; i < fake_len(p, PG_UUID, 0); i++)
        for (unsigned lane = 1; lane <= SIM_LANES; lane++) {
            struct lane_table *l = &lanes[lane];
            if (!holds(l, fake_bytes(p, PG_UUID, 0, i)) || l->acked > 0)
                continue;
            l->leased = false;
            l->ver++;
            fake_row("consumer:l lane:l queue_name:t", CONSUMER_0 + num_of(lane), num_of(lane),
                     "q");
        }
}

static void do_flags(const struct pg_params *p)
{
    (void)p;
    fake_row("queen.maintenance_flags():i", 0);
}

static void do_queues(const struct pg_params *p)
{
    (void)p;
    fake_row("name:t", "q");
}
