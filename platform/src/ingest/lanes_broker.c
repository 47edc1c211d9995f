// lanes_broker.c: queries the broker about a partition: which lanes contain events, and the
// epoch of its owner.
//
// If the control database was restored from a backup it may lack a lane.  Then newer events of
// the tenant would overtake those in the lane.
#include <stdlib.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "ingest/lane_int.h"
#include "tenant/row.h"
#include "json/scan.h"

struct broker_query {
    struct entry *entry;
    entry_cb done;
    const char *list; // member of the reply that is an array of objects
    int (*read)(struct entry *e, span object, struct arena *a);
};

static void send_query(struct entry *e, struct buf *path, const struct broker_query *q);
static void on_query_reply(struct queen_response *r, const struct queen_error *err, void *ctx);

// ---- lanes ----

// {"name": "7/acme", "messages": {"pending": 3, "processing": 1, ...}, ...}
static int read_lane(struct entry *e, span object, struct arena *a)
{
    struct js j = js_read(object);
    span key, name = SPAN_NONE, partition;
    int64_t n = 0, v;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (js_key_is(key, SPAN("messages")) && js_peek(&j) == JS_OBJECT) {
            js_enter_object(&j);
            while (js_next_key(&j, &key)) {
                span raw = js_skip(&j);
                if ((js_key_is(key, SPAN("pending")) || js_key_is(key, SPAN("processing"))) &&
                    js_int(raw, &v))
                    n += v;
            }
            continue;
        }
        span raw = js_skip(&j);
        if (j.rc == 0 && js_key_is(key, SPAN("name")) && js_type_of(raw) == JS_STRING)
            name = js_text(raw, a);
    }
    if (js_finish(&j) != 0)
        return QE_BROKER_AWAY;
    if (n <= 0 || !str_split(&name, '/', &partition) || !tenant_is_name(name) ||
        !span_eq(partition, span_of(e->partition)) || lanes_has(e->lanes, partition, name))
        return 0;
    struct lane *lane = lane_new(e->lanes, partition, &e->owner, name);
    lane->recorded = true;
    log_warn("held.found", "lane=%s events=%lld", lane->key, (long long)n);
    lane->due_ms = uv_now(e->lanes->loop);
    return 0;
}

void entry_find_lanes(struct entry *e, entry_cb done)
{
    char *queue = queen_escape(e->lanes->held);
    struct buf path = {0};

    buf_printf(&path, "/api/v1/resources/partitions?queue=%s", queue);
    free(queue);
    send_query(e, &path, &(struct broker_query){e, done, "partitions", read_lane});
}

// ---- epochs ----

// {"partition": "7", "epoch": 12, ...}
static int read_owner(struct entry *e, span object, struct arena *a)
{
    struct js j = js_read(object);
    span key, name = SPAN_NONE;
    int64_t epoch = -1;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        if (j.rc == 0 && js_key_is(key, SPAN("partition")) && js_type_of(raw) == JS_STRING)
            name = js_text(raw, a);
        else if (j.rc == 0 && js_key_is(key, SPAN("epoch")) && !js_int(raw, &epoch))
            epoch = -1;
    }
    if (js_finish(&j) != 0)
        return QE_BROKER_AWAY;
    if (span_eq(name, span_of(e->partition)))
        e->is_owner = epoch == e->owner.epoch;
    return 0;
}

void entry_check_epoch(struct entry *e, entry_cb done)
{
    char *queue = queen_escape(e->lanes->queue), *group = queen_escape(e->lanes->group);
    struct buf path = {0};

    e->is_owner = false;
    buf_printf(&path, "/api/v1/consumer-groups/%s/queues/%s/owners", group, queue);
    free(queue);
    free(group);
    send_query(e, &path, &(struct broker_query){e, done, "owners", read_owner});
}

// ---- requests ----

static void send_query(struct entry *e, struct buf *path, const struct broker_query *q)
{
    struct broker_query *copy = mem_new(struct broker_query);

    *copy = *q;
    buf_putc(path, '\0');
    queen_request_start(e->lanes->broker, &(struct queen_request){.path = path->ptr},
                        on_query_reply, copy);
    buf_free(path);
}

static int lanes_broker_read_list(const struct broker_query *q, struct js *j, struct arena *a)
{
    int rc = 0;

    js_enter_array(j);
    while (js_next_item(j)) {
        span object = js_skip(j);
        if (j->rc == 0 && rc == 0 && !q->entry->left)
            rc =
                js_type_of(object) == JS_OBJECT ? q->read(q->entry, object, a) : QE_BROKER_AWAY;
    }
    return rc;
}

static int read_query_reply(const struct broker_query *q, span body)
{
    struct arena arena;
    struct js j = js_read(body);
    int rc = QE_BROKER_AWAY; // unless the list is present
    span key;

    if (js_peek(&j) != JS_OBJECT)
        return rc;
    arena_init(&arena);
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (js_key_is(key, span_of(q->list)) && js_peek(&j) == JS_ARRAY)
            rc = lanes_broker_read_list(q, &j, &arena);
        else
            js_skip(&j);
    }
    arena_deinit(&arena);
    return js_finish(&j) == 0 ? rc : QE_BROKER_AWAY;
}

static void on_query_reply(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct broker_query q = *(struct broker_query *)ctx;
    bool ok = r && err->code == 0;

    free(ctx);
    int rc = ok ? read_query_reply(&q, (span){r->body, r->body_len}) : QE_BROKER_AWAY;
    queen_response_free(r);
    q.done(q.entry, rc);
}
