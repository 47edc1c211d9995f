// permission.c: rules against the names in bodies, and against the queues of partitions and
// leases.
#include "api/permission.h"

#include <stdlib.h>

#include "api/api_int.h"
#include "auth/access.h"
#include "base/map.h"
#include "base/mem.h"
#include "db/sql.gen.h"
#include "pg/params.h"
#include "pg/reply.h"

enum {
    MAX_PLACES = 50000, // of the cache
    FULL_RETRY_S = 60,  // messages are removed by retention, not within seconds
};

// The queue of a partition; this never changes.
struct queue_place {
    uint8_t id[16];
    UT_hash_handle hh;
    size_t len;
    char name[];
};

// In the request's arena.
struct lookup {
    struct http_req *req;
    struct custom_op op;
    struct permission_ids ids;
    unsigned need;
    void (*go)(void *ctx, span queue);
    void *ctx;
};

static void on_places(struct custom_op *op, int status, const struct pg_reply *reply);
static void on_lease_places(struct custom_op *op, int status, const struct pg_reply *reply);

static void deny(struct http_req *req, span queue)
{
    struct api *api = http_req_app(req);

    counter_add(&api->guard_stats.forbidden, 1);
    http_reply_header(req, SPAN("WWW-Authenticate"),
                      SPAN("Bearer error=\"insufficient_scope\""));
    http_reply_errf(req, QE_FORBIDDEN, "the rules do not permit this for queue \"%.*s\"",
                    (int)(queue.len < 100 ? queue.len : 100), queue.ptr ? queue.ptr : "");
}

bool permission_check(struct http_req *req, unsigned op, span queue, span group)
{
    const struct access_rules *rules = access_rules_of(req);

    if (!rules || access_rules_permit(rules, op, queue, group))
        return true;
    deny(req, queue);
    return false;
}

bool permission_has(const struct http_req *req, unsigned op, span queue)
{
    const struct access_rules *rules = access_rules_of(req);

    return !rules || access_rules_permit(rules, op, queue, SPAN_NONE);
}

bool permission_may_store(struct http_req *req)
{
    const struct access *a = access_of(req);
    struct api *api = http_req_app(req);

    if (!a || a->limits.stored == 0)
        return true;
    if (a->identity.subject.len == 0) { // its messages cannot be counted
        http_reply_errf(req, QE_FORBIDDEN,
                        "a limit of stored bytes needs a token with a subject");
        return false;
    }
    if (!limits_stored_is_full(a->limit, &a->limits))
        return true;
    counter_add(&api->guard_stats.limited[LIMIT_STORED], 1);
    http_reply_retry_after(req, FULL_RETRY_S);
    http_reply_errf(req, QE_BUSY,
                    "the messages of this sender have reached its limit of %llu stored bytes",
                    (unsigned long long)a->limits.stored);
    return false;
}

bool permission_check_items(struct http_req *req, const struct push_item *items, unsigned n)
{
    const struct access_rules *rules = access_rules_of(req);
    span last = SPAN_NONE;

    if (n > 0 && !permission_may_store(req))
        return false;
    if (!rules)
        return true;
    for (unsigned i = 0; i < n; i++) {
        if (i > 0 && span_eq(items[i].queue, last))
            continue;
        last = items[i].queue;
        if (!access_rules_permit(rules, MAY_PUSH, last, SPAN_NONE)) {
            deny(req, last);
            return false;
        }
    }
    return true;
}

// The last member of a name counts, as in PostgreSQL.
bool permission_check_body(struct http_req *req, span object, span group)
{
    const struct access_rules *rules = access_rules_of(req);
    const struct http_route *route = http_req_route(req);
    struct arena *arena = http_req_arena(req);
    struct js j = js_read(object);
    span key, queue = SPAN_NONE, target = SPAN_NONE;

    if (!rules)
        return true;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        bool is_text = js_type_of(raw) == JS_STRING;
        if (js_key_is(key, SPAN("queue")))
            queue = is_text ? js_text(raw, arena) : SPAN_NONE;
        else if (js_key_is(key, SPAN("targetQueue")))
            target = is_text ? js_text(raw, arena) : SPAN_NONE;
    }
    for (unsigned op = 1; op < MAY_ADMIN; op <<= 1) {
        if ((route->need & op) == 0)
            continue;
        if (queue.ptr ? access_rules_permit(rules, op, queue, group)
                      : access_rules_permit_all(rules, op))
            continue;
        deny(req, queue);
        return false;
    }
    return !target.ptr || permission_check(req, MAY_PUSH, target, SPAN_NONE);
}

bool permission_sees_encrypted(const struct http_req *req, span queue)
{
    const struct access *a = access_of(req);

    if (!a)
        return true;
    if (!a->rules)
        return a->level > ACCESS_READ_ONLY;
    return queue.ptr ? access_rules_permit(a->rules, MAY_READ_ENCRYPTED, queue, SPAN_NONE)
                     : access_rules_permit_all(a->rules, MAY_READ_ENCRYPTED);
}

// ---- partitions ----

static const struct queue_place *place_find(const struct api *api, const uint8_t id[16])
{
    struct queue_place *p;

    HASH_FIND(hh, api->places, id, 16, p);
    return p;
}

void permission_forget(struct api *a)
{
    struct queue_place *p, *next;

    HASH_ITER (hh, a->places, p, next) {
        // NOLINTNEXTLINE(clang-analyzer-unix.Malloc): it does not follow the list's links
        HASH_DELETE(hh, a->places, p);
        free(p);
    }
}

static void place_add(struct api *api, const uint8_t id[16], span name)
{
    if (place_find(api, id))
        return;
    struct queue_place *p = mem_zalloc(1, sizeof *p + name.len);
    memcpy(p->id, id, 16);
    p->len = name.len;
    memcpy(p->name, name.ptr, name.len);
    HASH_ADD(hh, api->places, id, 16, p);
}

static const uint8_t *id_at(const struct permission_ids *ids, unsigned i)
{
    return ids->first + i * ids->stride;
}

// Checks all that are known; false: answered. *queue is that of the last one.
static bool places_permit(const struct lookup *l, span *queue)
{
    const struct api *api = http_req_app(l->req);
    const struct queue_place *p = NULL;

    *queue = SPAN_NONE;
    for (unsigned i = 0; i < l->ids.n; i++) {
        p = place_find(api, id_at(&l->ids, i));
        if (!p)
            continue;
        *queue = (span){p->name, p->len};
        for (unsigned op = 1; op < MAY_ADMIN; op <<= 1)
            if ((l->need & op) != 0 &&
                !permission_check(l->req, op, *queue,
                                  l->ids.groups ? l->ids.groups[i] : l->ids.group))
                return false;
    }
    return true;
}

void permission_check_partitions(struct http_req *req, unsigned op,
                                 const struct permission_ids *ids,
                                 void (*go)(void *ctx, span queue), void *ctx)
{
    struct api *api = http_req_app(req);
    unsigned n_unknown = 0;
    span queue;

    if (!access_rules_of(req)) {
        go(ctx, SPAN_NONE);
        return;
    }
    struct lookup *l = arena_new(http_req_arena(req), struct lookup);
    *l = (struct lookup){.req = req, .ids = *ids, .need = op, .go = go, .ctx = ctx};
    l->op.done = on_places;
    l->op.statement = &pg_stmt_partition_queues;
    l->op.first = true;
    if (HASH_COUNT(api->places) + ids->n > MAX_PLACES)
        permission_forget(api);
    // Before the lookup of the others: another request may empty the cache meanwhile.
    if (!places_permit(l, &queue))
        return;
    pg_begin_array(&l->op.params, PG_UUID);
    for (unsigned i = 0; i < ids->n; i++) {
        if (place_find(api, id_at(ids, i)))
            continue;
        pg_put_uuid(&l->op.params, id_at(ids, i));
        n_unknown++;
    }
    pg_end_array(&l->op.params);
    if (n_unknown > 0) {
        broker_custom(api->broker, &l->op);
        return;
    }
    pg_params_free(&l->op.params);
    go(ctx, queue);
}

// All that exist are in the cache now, or were checked before.
static void on_places(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct lookup *l = container_of(op, struct lookup, op);
    struct api *api = http_req_app(l->req);
    span queue;

    pg_params_free(&op->params);
    if (status != 0) {
        api_reply_failed(l->req, status, &op->op.why);
        return;
    }
    for (unsigned row = 0; row < pg_reply_rows(reply); row++)
        place_add(api, pg_reply_uuid(reply, row, PARTITION_QUEUES_COL_ID),
                  pg_reply_bytes(reply, row, PARTITION_QUEUES_COL_QUEUE));
    if (places_permit(l, &queue))
        l->go(l->ctx, queue);
}

// ---- leases ----

void permission_check_lease(struct http_req *req, const uint8_t key[16],
                            void (*go)(void *ctx, span queue), void *ctx)
{
    struct api *api = http_req_app(req);

    if (!access_rules_of(req)) {
        go(ctx, SPAN_NONE);
        return;
    }
    struct lookup *l = arena_new(http_req_arena(req), struct lookup);
    *l = (struct lookup){.req = req, .go = go, .ctx = ctx};
    l->op.done = on_lease_places;
    l->op.statement = &pg_stmt_lease_queues;
    l->op.first = true;
    pg_param_uuid(&l->op.params, key);
    broker_custom(api->broker, &l->op);
}

static void on_lease_places(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct lookup *l = container_of(op, struct lookup, op);

    pg_params_free(&op->params);
    if (status != 0) {
        api_reply_failed(l->req, status, &op->op.why);
        return;
    }
    for (unsigned row = 0; row < pg_reply_rows(reply); row++)
        if (!permission_check(l->req, MAY_POP,
                              pg_reply_bytes(reply, row, LEASE_QUEUES_COL_QUEUE),
                              pg_reply_bytes(reply, row, LEASE_QUEUES_COL_GRP)))
            return;
    l->go(l->ctx, SPAN_NONE);
}
