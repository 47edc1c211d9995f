// Cutting the messages of a batch into segments, and writing them as parameters.
#include "broker/segments/segs.h"

#include <assert.h>
#include <stdlib.h>

#include "base/id.h"
#include "base/mem.h"
#include "crypt/sealer.h"
#include "segment/codec.h"

void segs_add(struct segs *f, struct push_item *it)
{
    struct lane *lane = it->lane;

    it->next = it->same = NULL;
    f->correlated = f->correlated || it->correlation.ptr;
    if (!lane->first) {
        lane->first = it;
        lane->next_in_batch = f->lanes;
        f->lanes = lane;
        f->n_lanes++;
    } else {
        lane->last->next = it;
    }
    lane->last = it;
}

void segs_free(struct segs *f)
{
    free(f->at);
    *f = (struct segs){0};
}

struct push_item *seg_item(const struct seg *s, unsigned pos)
{
    struct push_item *it = s->first;

    while (pos-- > 0)
        it = it->next;
    return it;
}

static struct segment_message message_of(const struct push_item *it)
{
    return (struct segment_message){
        .txid = it->txid_is_key ? SPAN_NONE : it->txid,
        .producer = it->producer,
        .payload = it->payload,
        .meta = it->meta,
        .trace = it->has_trace ? it->trace : NULL,
    };
}

uint64_t item_bytes(const struct push_item *it)
{
    struct segment_message m = message_of(it);

    return segment_size(&m);
}

// Messages of one request follow each other.
static void seg_count_stored(const struct seg *s, int64_t created_us)
{
    struct broker *b = s->lane->queue->broker;
    const struct push_item *it = s->first, *from = NULL;
    uint64_t bytes = 0;

    if (!stored_is_counted(b))
        return;
    for (unsigned i = 0; i < s->count; i++, it = it->next) {
        if (from && it->producer.ptr != from->producer.ptr) {
            stored_add(b, from->producer, s->num, created_us, bytes);
            from = NULL;
        }
        if (!it->producer.ptr)
            continue;
        bytes = from ? bytes + item_bytes(it) : item_bytes(it);
        from = it;
    }
    if (from)
        stored_add(b, from->producer, s->num, created_us, bytes);
}

void seg_stored(struct seg *s, int64_t created_us)
{
    struct push_item *it = s->first;

    s->stored = true;
    seg_count_stored(s, created_us);
    for (unsigned i = 0; i < s->count; i++, it = it->next) {
        it->status = PUSH_QUEUED;
        segment_message_id(created_us, i, s->num, it->message_id);
        memcpy(it->partition_id, s->lane_id, 16);
    }
}

void seg_lane_gone(struct broker *b, const struct seg *s)
{
    if (s->lane->num == s->num)
        lane_forget_num(b, s->lane);
}

// ---- cutting ----

// The same id twice in one batch: the first is stored, the others point to it.
// A small open table over the keys of a lane, made when it has more than one message.
static struct push_item *first_with_key(struct push_item **table, unsigned mask,
                                        struct push_item *it)
{
    uint64_t hash;

    memcpy(&hash, it->key + 8, sizeof hash);
    for (unsigned i = (unsigned)(hash ^ hash >> 32) & mask;; i = (i + 1) & mask) {
        if (!table[i]) {
            table[i] = it;
            return NULL;
        }
        if (memcmp(table[i]->key, it->key, 16) == 0)
            return table[i];
    }
}

static void drop_repeated(struct lane *lane)
{
    unsigned n = 0, size = 4;

    for (struct push_item *it = lane->first; it; it = it->next)
        n++;
    if (n < 2)
        return;
    while (size < n * 2)
        size *= 2;
    struct push_item **table = mem_new_array(struct push_item *, size);
    struct push_item *last = NULL, *next;
    for (struct push_item *it = lane->first; it; it = next) {
        next = it->next;
        it->same = first_with_key(table, size - 1, it);
        if (it->same) { // out of the chain; resolved with the first
            assert(last);
            last->next = next;
        } else {
            last = it;
        }
    }
    lane->last = last;
    free(table);
}

// With authentication a payload is bound to its message. Without it the stored form is that of
// the wire contract, which has no associated data.
static const uint8_t *seal_name(const struct push_item *it)
{
    return it->lane->queue->broker->conf.must_seal ? it->key : NULL;
}

static void cut_lane(struct segs *f, struct lane *lane)
{
    struct seg *seg = NULL;
    size_t bytes = 0;
    int64_t before = 0;
    unsigned nth = 0;
    struct sealer *sealer = lane->queue->broker->sealer;
    bool is_sealed = queue_is_sealed(lane->queue);

    for (struct push_item *it = lane->first; it; it = it->next) {
        struct segment_message m = message_of(it);
        if (is_sealed && sealer)
            m.payload.len = sealer_size(sealer, m.payload.len, seal_name(it) != NULL);
        size_t size = segment_size(&m);
        if (!seg || seg->count == SEGMENT_MAX_MESSAGES || bytes + size > SEGMENT_MAX_BYTES ||
            !key_range_add(&seg->range, it->key)) {
            seg = &f->at[f->n++];
            *seg = (struct seg){.lane = lane,
                                .num = lane->num,
                                .first = it,
                                .nth = nth++,
                                .before = before,
                                .sealed = is_sealed && sealer,
                                .bare = is_sealed && !sealer};
            memcpy(seg->lane_id, lane->id, sizeof seg->lane_id);
            (void)key_range_add(&seg->range, it->key); // one key alone always fits
            bytes = 0;
        }
        seg->count++;
        before++;
        bytes += size;
    }
}

void segs_cut(struct segs *f, unsigned n_items)
{
    struct lane *lane, *next;

    f->at = mem_new_array(struct seg, n_items);
    for (lane = f->lanes; lane; lane = next) {
        next = lane->next_in_batch;
        drop_repeated(lane);
        cut_lane(f, lane);
        lane->first = lane->last = NULL;
        lane->next_in_batch = NULL;
    }
    f->lanes = NULL;
}

// ---- sending ----

#define FOR_SEGS(type, put)                                  \
    pg_begin_array(p, type);                                 \
    for (const struct seg *s = f->at; s < f->at + f->n; s++) \
        put;                                                 \
    pg_end_array(p)

// Every message for which `is` holds.
#define FOR_MESSAGES(is, type, put)                                         \
    pg_begin_array(p, type);                                                \
    for (unsigned si = 0; si < f->n; si++) {                                \
        const struct push_item *it = f->at[si].first;                       \
        for (unsigned pos = 0; pos < f->at[si].count; pos++, it = it->next) \
            if (is) {                                                       \
                put;                                                        \
            }                                                               \
    }                                                                       \
    pg_end_array(p)

static void put_keys(struct pg_params *p, const struct seg *s)
{
    size_t mark;
    struct buf *keys = pg_open_element(p, &mark);
    const struct push_item *it = s->first;

    for (unsigned i = 0; i < s->count; i++, it = it->next)
        buf_put_bytes(keys, it->key, 16);
    pg_close_element(p, mark);
}

// p_last of queen.push_segments.
static int64_t last_hint(const struct seg *s)
{
    if (!s->bare)
        return s->lane->last_seq;
    return s->lane->queue->broker->conf.must_seal ? -2 : -1;
}

// Straight into the parameter: nothing is encrypted into a place of its own.
static void put_sealed(struct buf *body, const struct seg *s, const struct push_item *it)
{
    struct sealer *sealer = s->lane->queue->broker->sealer;
    struct segment_message m = message_of(it);

    m.encrypted = true;
    m.payload.len = sealer_size(sealer, it->payload.len, seal_name(it) != NULL);
    segment_put_head(body, &m);
    sealer_seal(sealer, body, it->payload, seal_name(it));
}

static void segs_put_body(struct pg_params *p, const struct seg *s)
{
    size_t mark;
    struct buf *body = pg_open_element(p, &mark);
    const struct push_item *it = s->first;

    segment_begin(body);
    for (unsigned i = 0; i < s->count; i++, it = it->next) {
        if (s->sealed) {
            put_sealed(body, s, it);
            continue;
        }
        struct segment_message m = message_of(it);
        segment_put(body, &m);
    }
    pg_close_element(p, mark);
}

void message_put(struct buf *out, const struct push_item *it, size_t *id_at)
{
    static const uint8_t no_id[16];
    struct sealer *sealer = it->lane->queue->broker->sealer;
    struct segment_message m = message_of(it);

    m.id = no_id;
    *id_at = segment_id_at(&m);
    m.encrypted = sealer && queue_is_sealed(it->lane->queue);
    if (!m.encrypted) {
        segment_put(out, &m);
        return;
    }
    m.payload.len = sealer_size(sealer, it->payload.len, seal_name(it) != NULL);
    segment_put_head(out, &m);
    sealer_seal(sealer, out, it->payload, seal_name(it));
}

static void put_ms(struct pg_params *p, const struct key_range *r, uint64_t ms)
{
    if (r->any)
        pg_put_i64(p, (int64_t)ms);
    else
        pg_put_null(p);
}

void segs_fill(const struct segs *f, struct pg_params *p)
{
    pg_param_i32(p, (int32_t)f->n_lanes);
    FOR_SEGS(PG_INT8, pg_put_i64(p, s->num));
    FOR_SEGS(PG_INT8, pg_put_i64(p, last_hint(s)));
    FOR_SEGS(PG_INT4, pg_put_i32(p, (int32_t)s->nth));
    FOR_SEGS(PG_INT8, pg_put_i64(p, s->before));
    FOR_SEGS(PG_INT4, pg_put_i32(p, (int32_t)s->count));
    FOR_SEGS(PG_INT8, put_ms(p, &s->range, s->range.min_ms));
    FOR_SEGS(PG_INT8, put_ms(p, &s->range, s->range.max_ms));
    FOR_SEGS(PG_BYTEA, put_keys(p, s));
    FOR_SEGS(PG_BYTEA, segs_put_body(p, s));
    // Those with a key that cannot be found by time.
    FOR_MESSAGES(!id_is_uuid7(it->key), PG_INT4, pg_put_i32(p, (int32_t)si + 1));
    FOR_MESSAGES(!id_is_uuid7(it->key), PG_INT4, pg_put_i32(p, (int32_t)pos));
    FOR_MESSAGES(!id_is_uuid7(it->key), PG_UUID, pg_put_uuid(p, it->key));
}

static void put_correlation(struct pg_params *p, const struct push_item *it)
{
    uint8_t key[16];

    (void)key_of_text(it->correlation, key);
    pg_put_uuid(p, key);
}

void segs_fill_correlated(const struct segs *f, struct pg_params *p)
{
    FOR_MESSAGES(it->correlation.ptr, PG_INT4, pg_put_i32(p, (int32_t)si + 1));
    FOR_MESSAGES(it->correlation.ptr, PG_INT4, pg_put_i32(p, (int32_t)pos));
    FOR_MESSAGES(it->correlation.ptr, PG_UUID, put_correlation(p, it));
}
