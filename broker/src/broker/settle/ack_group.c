// The entries of one request for one partition and group: out as arrays, back as rows.
#include "broker/settle/ack_int.h"

#include "base/map.h"
#include "segment/keys.h"

// Groups by partition and name: an open table of 1-based numbers, as large as the entries need.
// Requests for one partition never look into it.
struct group_index {
    uint32_t *at; // 0: free
    uint32_t mask;
};

static struct group_index index_new(struct arena *a, unsigned n)
{
    uint32_t size = 4;

    while (size < 2 * (uint64_t)n)
        size *= 2;
    return (struct group_index){arena_new_array(a, uint32_t, size), size - 1};
}

static bool is_of(const struct ack_group *g, const struct ack_entry *e, span name)
{
    return memcmp(g->first->partition_id, e->partition_id, 16) == 0 && span_eq(g->name, name);
}

// The group of this entry, or NULL; *slot is its place in the table.
static struct ack_group *ack_group_of(const struct group_index *index, struct ack_group *groups,
                                      const struct ack_entry *e, span name, uint32_t **slot)
{
    uint64_t hash = XXH3_64bits_withSeed(e->partition_id, 16, map_seed) ^
                    XXH3_64bits_withSeed(name.ptr, name.len, map_seed);

    for (uint32_t i = (uint32_t)hash & index->mask;; i = (i + 1) & index->mask) {
        *slot = &index->at[i];
        if (**slot == 0)
            return NULL;
        if (is_of(&groups[**slot - 1], e, name))
            return &groups[**slot - 1];
    }
}

static void ack_group_add(struct ack_group *g, struct ack_entry *e)
{
    uint8_t lease[16] = {0};
    bool has_lease = e->lease.ptr != NULL;

    if (has_lease)
        (void)key_of_text(e->lease, lease);
    if (g->n == 0) {
        g->uniform = true;
        g->has_lease = has_lease;
        memcpy(g->lease, lease, 16);
        g->first = e;
    } else {
        g->last->next = e;
        if (has_lease != g->has_lease || memcmp(lease, g->lease, 16) != 0)
            g->uniform = false;
    }
    if (e->status != ACK_COMPLETED || e->tries.ptr)
        g->uniform = false;
    g->has_tries = g->has_tries || e->tries.ptr;
    e->next = NULL;
    g->last = e;
    g->n++;
}

struct ack_group *ack_groups_make(struct arena *a, struct ack_entry *entries, unsigned n,
                                  const span *names, bool name_each, unsigned *n_groups)
{
    unsigned cap = 0;

    for (unsigned i = 0; i < n; i++)
        cap += i == 0 ||
               memcmp(entries[i].partition_id, entries[i - 1].partition_id, 16) != 0 ||
               name_each;
    struct ack_group *groups = arena_new_array(a, struct ack_group, cap > 0 ? cap : 1);
    struct group_index index = {0};
    struct ack_group *g = NULL; // of the entry before
    if (cap > 1)
        index = index_new(a, cap);
    *n_groups = 0;
    for (unsigned i = 0; i < n; i++) {
        struct ack_entry *e = &entries[i];
        span name = names[name_each ? i : 0];
        e->why = ACK_NOT_FOUND;
        e->released = -1;
        e->dead = false;
        e->attempt = 0;
        e->retry_us = 0;
        e->queue = e->partition = SPAN_NONE;
        if (e->bad_partition)
            continue;
        (void)key_of_text(e->txid, e->key);
        uint32_t *slot = NULL;
        if (!g || !is_of(g, e, name))
            g = index.at ? ack_group_of(&index, groups, e, name, &slot) : NULL;
        if (!g) {
            g = &groups[(*n_groups)++];
            g->name = name;
            g->arena = a;
            if (slot)
                *slot = *n_groups;
        }
        ack_group_add(g, e);
    }
    return groups;
}

#define FOR_GROUPS(type, put)                  \
    pg_begin_array(p, type);                   \
    for (unsigned i = 0; i < n; i++) {         \
        const struct ack_group *g = groups[i]; \
        put;                                   \
    }                                          \
    pg_end_array(p)

#define FOR_ENTRIES(type, put)                                                   \
    pg_begin_array(p, type);                                                     \
    for (unsigned i = 0; i < n; i++)                                             \
        if (!groups[i]->uniform)                                                 \
            for (const struct ack_entry *e = groups[i]->first; e; e = e->next) { \
                put;                                                             \
            }                                                                    \
    pg_end_array(p)

static void put_keys(struct pg_params *p, const struct ack_group *g)
{
    size_t mark;
    struct buf *keys = pg_open_element(p, &mark);

    for (const struct ack_entry *e = g->first; e; e = e->next)
        buf_put_bytes(keys, e->key, 16);
    pg_close_element(p, mark);
}

static void put_lease(struct pg_params *p, const struct ack_entry *e)
{
    uint8_t key[16];

    if (!e->lease.ptr) {
        pg_put_null(p);
        return;
    }
    (void)key_of_text(e->lease, key);
    pg_put_uuid(p, key);
}

static void put_ack_text_or_null(struct pg_params *p, span text)
{
    if (text.ptr)
        pg_put_text(p, text);
    else
        pg_put_null(p);
}

void ack_groups_fill(struct pg_params *p, struct ack_group *const *groups, unsigned n)
{
    FOR_GROUPS(PG_UUID, pg_put_uuid(p, g->first->partition_id));
    FOR_GROUPS(PG_TEXT, pg_put_text(p, g->name));
    FOR_GROUPS(PG_BYTEA, put_keys(p, g));
    FOR_GROUPS(PG_BOOL, pg_put_bool(p, g->uniform));
    FOR_GROUPS(PG_UUID, if (g->uniform && g->has_lease) pg_put_uuid(p, g->lease);
               else pg_put_null(p));
    FOR_ENTRIES(PG_INT4, pg_put_i32(p, (int32_t)i + 1));
    FOR_ENTRIES(PG_INT2, pg_put_i16(p, (int16_t)e->status));
    FOR_ENTRIES(PG_UUID, put_lease(p, e));
    FOR_ENTRIES(PG_TEXT, put_ack_text_or_null(p, e->error));
}

void ack_groups_fill_more(struct pg_params *p, struct ack_group *const *groups, unsigned n)
{
    FOR_ENTRIES(PG_TEXT, put_ack_text_or_null(p, e->code));
    FOR_ENTRIES(PG_TEXT, put_ack_text_or_null(p, e->worker));
    FOR_GROUPS(PG_TEXT, put_ack_text_or_null(p, g->first->worker));
}

void ack_groups_fill_after(struct pg_params *p, struct ack_group *const *groups, unsigned n)
{
    FOR_ENTRIES(PG_INT4, if (e->after_s >= 0) pg_put_i32(p, e->after_s); else pg_put_null(p));
}

void ack_groups_fill_tries(struct pg_params *p, struct ack_group *const *groups, unsigned n)
{
    FOR_ENTRIES(PG_TEXT, put_ack_text_or_null(p, e->tries));
}

static void take_names(struct ack_group *g, const struct pg_reply *reply, unsigned row,
                       unsigned col)
{
    if (g->named || pg_reply_is_null(reply, row, col + ACK_COL_QUEUE_NAME))
        return;
    g->named = true;
    span queue = arena_copy(g->arena, pg_reply_bytes(reply, row, col + ACK_COL_QUEUE_NAME));
    span lane = arena_copy(g->arena, pg_reply_bytes(reply, row, col + ACK_COL_LANE_NAME));
    for (struct ack_entry *e = g->first; e; e = e->next) {
        e->queue = queue;
        e->partition = lane;
    }
}

static void set(struct ack_entry *e, const struct pg_reply *reply, unsigned row, unsigned col)
{
    e->why = (enum ack_why)pg_reply_i16(reply, row, col + ACK_COL_WHY);
    e->released = pg_reply_is_null(reply, row, col + ACK_COL_RELEASED)
                      ? -1
                      : (int8_t)pg_reply_bool(reply, row, col + ACK_COL_RELEASED);
    e->dead = pg_reply_bool(reply, row, col + ACK_COL_DEAD);
}

void ack_group_count(struct broker *b, struct ack_group *g, span queue, bool ok, unsigned n)
{
    if (!g->counted && queue.ptr)
        g->counted = queue_get(b, queue);
    if (!g->counted)
        return;
    struct tally *t = queue_tally(b, g->counted, true);
    t->ack_ok += ok ? n : 0;
    t->ack_failed += ok ? 0 : n;
}

// Rows come in the order of the log, so any entry may be next.
static struct ack_entry *entry_at(struct ack_group *g, int pos)
{
    if (!g->at) {
        unsigned n = 0;
        g->at = arena_new_array(g->arena, struct ack_entry *, g->n);
        for (struct ack_entry *e = g->first; e; e = e->next)
            g->at[n++] = e;
    }
    return pos >= 0 && (unsigned)pos < g->n ? g->at[pos] : NULL;
}

bool ack_row_is_sound(const struct ack_group *g, const struct pg_reply *reply, unsigned row,
                      unsigned col)
{
    int16_t why = pg_reply_i16(reply, row, col + ACK_COL_WHY);

    return why >= ACK_OK && why <= ACK_NOT_WORK &&
           (pg_reply_is_null(reply, row, col + ACK_COL_ENTRY) ||
            (uint32_t)pg_reply_i32(reply, row, col + ACK_COL_ENTRY) < g->n);
}

void ack_group_read(struct broker *b, struct ack_group *g, const struct pg_reply *reply,
                    unsigned row, unsigned col)
{
    take_names(g, reply, row, col);
    ack_group_count(b, g, pg_reply_bytes(reply, row, col + ACK_COL_QUEUE_NAME),
                    pg_reply_i16(reply, row, col + ACK_COL_WHY) == ACK_OK,
                    pg_reply_is_null(reply, row, col + ACK_COL_ENTRY) ? g->n : 1);
    if (pg_reply_is_null(reply, row, col + ACK_COL_ENTRY)) {
        for (struct ack_entry *e = g->first; e; e = e->next)
            set(e, reply, row, col);
    } else {
        struct ack_entry *e = entry_at(g, pg_reply_i32(reply, row, col + ACK_COL_ENTRY));
        if (e)
            set(e, reply, row, col);
    }
    bool released = !pg_reply_is_null(reply, row, col + ACK_COL_RELEASED) &&
                    pg_reply_bool(reply, row, col + ACK_COL_RELEASED);
    // A message of a work queue that will be delivered again, while its lease goes on.
    bool returned = !pg_reply_is_null(reply, row, col + ACK_COL_MORE) &&
                    pg_reply_bool(reply, row, col + ACK_COL_MORE);
    if ((released || returned) && !pg_reply_is_null(reply, row, col + ACK_COL_CONSUMER)) {
        bool more = returned || pg_reply_is_null(reply, row, col + ACK_COL_MORE);
        notify_released(b, pg_reply_bytes(reply, row, col + ACK_COL_QUEUE_NAME),
                        pg_reply_i64(reply, row, col + ACK_COL_CONSUMER), more);
    }
}

// The decision of the retry policy about a failed delivery.
void ack_group_read_retry(struct broker *b, struct ack_group *g, const struct pg_reply *reply,
                          unsigned row)
{
    if (pg_reply_is_null(reply, row, SETTLE_COL_ATTEMPT) ||
        pg_reply_is_null(reply, row, ACK_COL_ENTRY))
        return;
    struct ack_entry *e = entry_at(g, pg_reply_i32(reply, row, ACK_COL_ENTRY));
    if (!e)
        return;
    e->attempt = pg_reply_i32(reply, row, SETTLE_COL_ATTEMPT);
    if (e->dead) {
        counter_add(&b->stats.exhausted, e->status == ACK_FAILED);
    } else if (!pg_reply_is_null(reply, row, SETTLE_COL_DUE_AT)) {
        int nth = e->attempt < 1                ? 1
                  : e->attempt < RETRY_ATTEMPTS ? e->attempt
                                                : RETRY_ATTEMPTS;
        e->retry_us = pg_reply_unix_us(reply, row, SETTLE_COL_DUE_AT);
        counter_add(&b->stats.retries[nth - 1], 1);
        timer_expect(b->house, pg_reply_i64(reply, row, SETTLE_COL_WAIT_US));
    }
}
