// A fingerprint of the messages that a consumer has under a lease of this broker.
//
// An acknowledgement that names exactly the messages of a lease, whatever the order, needs no
// look at them in the database: queen.finish checks only that the lease is still valid.  The
// fingerprint is 64 bits; to pass by accident, another set of as many messages would have to
// have the same.  It is dropped when the lease is thought to have ended, or once it was
// matched: queen.settle answers a second acknowledgement.
#include "broker/settle/outstanding_int.h"

static uint64_t sum_keys(span keys)
{
    uint64_t sum = 0;

    for (size_t at = 0; at + 16 <= keys.len; at += 16)
        sum += XXH3_64bits_withSeed(keys.ptr + at, 16, map_seed);
    return sum;
}

void outstanding_add(struct broker *b, struct consumer *c, const uint8_t lease[16],
                     const struct pop_claim *claim)
{
    outstanding_drop(b, c);
    if (c->gone)
        return; // its number does not count any more, and may be 0
    c->outstanding.sum = 0;
    for (unsigned i = 0; i < claim->n_runs; i++) {
        const struct pop_run *s = &claim->runs[i];
        if (s->keys.len / 16 < (size_t)s->from + s->n)
            return; // a damaged segment, as render finds too
        c->outstanding.sum +=
            sum_keys((span){s->keys.ptr + (size_t)16 * s->from, (size_t)16 * s->n});
    }
    c->outstanding.n = claim->n_messages;
    memcpy(c->outstanding.lease, lease, 16);
    HASH_ADD(outstanding.hh, b->outstanding, outstanding.lease, 16, c);
}

void outstanding_drop(struct broker *b, struct consumer *c)
{
    if (c->outstanding.n > 0)
        HASH_DELETE(outstanding.hh, b->outstanding, c);
    c->outstanding.n = 0;
}

// The consumer whose whole batch these entries are, or NULL.
static struct consumer *owner_of(struct broker *b, const struct ack_group *g)
{
    struct consumer *c = NULL;
    uint64_t sum = 0;

    if (g->uniform && g->has_lease)
        HASH_FIND(outstanding.hh, b->outstanding, g->lease, 16, c);
    if (!c || c->outstanding.n != g->n ||
        memcmp(c->lane->id, g->first->partition_id, 16) != 0 ||
        !span_eq(g->name, (span){c->group->name, c->group->name_len}))
        return NULL;
    for (const struct ack_entry *e = g->first; e; e = e->next)
        sum += sum_keys((span){(const char *)e->key, 16});
    return sum == c->outstanding.sum ? c : NULL;
}

bool outstanding_match(struct broker *b, struct ack_group *groups, unsigned n)
{
    for (unsigned i = 0; i < n; i++) {
        struct ack_group *g = &groups[i];
        const struct consumer *c = owner_of(b, g);
        if (!c)
            return false;
        g->consumer = c->num;
        g->lane = c->lane->num;
        g->ver = c->ver;
        g->queue = arena_copy(g->arena, (span){c->lane->queue->name, c->lane->queue->name_len});
        g->partition = arena_copy(g->arena, lane_shown(c->lane));
    }
    for (unsigned i = 0; i < n; i++)
        outstanding_drop(b, consumer_find_num(b, groups[i].consumer));
    return true;
}

// Something may be pending behind the batch.
static bool has_more(struct broker *b, const struct ack_group *g)
{
    const struct consumer *c = consumer_find_num(b, g->consumer);

    return !c || c->dirty;
}

#define FOR_GROUPS(type, put)                  \
    pg_begin_array(p, type);                   \
    for (unsigned i = 0; i < n; i++) {         \
        const struct ack_group *g = groups[i]; \
        put;                                   \
    }                                          \
    pg_end_array(p)

void outstanding_fill(struct broker *b, struct pg_params *p, struct ack_group *const *groups,
                      unsigned n)
{
    FOR_GROUPS(PG_INT8, pg_put_i64(p, g->consumer));
    FOR_GROUPS(PG_INT8, pg_put_i64(p, g->lane));
    FOR_GROUPS(PG_INT8, pg_put_i64(p, g->ver));
    FOR_GROUPS(PG_UUID, pg_put_uuid(p, g->lease));
    FOR_GROUPS(PG_BOOL, pg_put_bool(p, has_more(b, g)));
}

static void finished(struct broker *b, struct ack_group *g)
{
    g->done = true;
    for (struct ack_entry *e = g->first; e; e = e->next) {
        e->why = ACK_OK;
        e->released = 1;
        e->queue = g->queue;
        e->partition = g->partition;
    }
    ack_group_count(b, g, g->queue, true, g->n);
    notify_released(b, g->queue, g->consumer, has_more(b, g));
}

int outstanding_read(struct broker *b, struct ack_group *const *groups, unsigned n,
                     const struct pg_reply *reply)
{
    unsigned at = 0;

    // They come in the order given; should they not, it is only slower.
    for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
        int64_t consumer = pg_reply_i64(reply, row, FINISH_COL_CONSUMER);
        unsigned passed = 0;
        for (; passed < n && groups[at]->consumer != consumer; passed++)
            at = at + 1 < n ? at + 1 : 0; // this one needs queen.settle
        if (passed == n || groups[at]->done)
            return QE_PG_SHAPE;
        finished(b, groups[at]);
    }
    return 0;
}
