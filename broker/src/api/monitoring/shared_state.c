// shared_state.c: state of the notifications between servers of one database.
//
//      GET /api/v1/system/shared-state, and two /internal names for it
//      POST /internal/api/notify      parked pops of a queue look again, here and at the other
//      servers
#include "api/api_int.h"
#include "http/prom_text.h"
#include "peer/peers.h"
#include "json/write.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"

typedef unsigned long long ull;

struct cache_figures {
    uint64_t size, hits, misses;
};

// Every pushed message looks its partition up; unknown ones are queried.
static struct cache_figures cache_figures(const struct api_shared *shared)
{
    struct cache_figures c = {0};
    uint64_t pushed = 0;

    for (unsigned i = 0; i < shared->n_workers; i++) {
        const struct broker_stats *s = broker_stats(shared->workers[i]->broker);
        c.size += atomic_load_explicit(&s->queues, memory_order_relaxed);
        pushed += counter_get(&s->items[OP_PUSH]);
        c.misses += counter_get(&s->lanes_asked);
    }
    c.hits = pushed > c.misses ? pushed - c.misses : 0;
    return c;
}

// "host:port" of HTTP, for a server that speaks with no other.
static void put_own_id(const struct api_shared *shared, struct buf *out)
{
    char host[256] = "localhost", id[300];

    gethostname(host, sizeof host - 1);
    snprintf(id, sizeof id, "%s:%u", host, shared->port);
    js_put_text(out, span_of(id));
}

static void put_peer(struct buf *out, const struct peer_view *p)
{
    char id[PEER_HOST + 8];

    snprintf(id, sizeof id, "%s:%u", p->host, p->port);
    buf_put_lit(out, "{\"hostname\":");
    js_put_text(out, span_of(p->host));
    buf_put_lit(out, ",\"config_server_id\":");
    js_put_text(out, span_of(id));
    buf_printf(out, ",\"port\":%u,\"resolved\":%s,\"is_self\":%s", p->port,
               p->resolved ? "true" : "false", p->is_self ? "true" : "false");
    if (p->resolved) {
        buf_put_lit(out, ",\"resolved_ip\":");
        js_put_text(out, span_of(p->address));
    }
    if (p->learned[0] != '\0') {
        buf_put_lit(out, ",\"learned_server_id\":");
        js_put_text(out, span_of(p->learned));
    }
    buf_putc(out, '}');
}

static void put_transport(struct buf *out, const struct peers_view *v)
{
    unsigned n_learned = 0;

    buf_put_lit(out, ",\"transport\":{\"server_id\":");
    js_put_text(out, span_of(v->server_id));
    buf_put_lit(out, ",\"session_id\":");
    js_put_text(out, span_of(v->session));
    buf_printf(out, ",\"port\":%u,\"peer_count\":%u,\"peers\":[", v->port, v->n_peers);
    for (unsigned i = 0; i < v->n_peers; i++) {
        if (i > 0)
            buf_putc(out, ',');
        put_peer(out, &v->peer[i]);
    }
    buf_put_lit(out, "],\"learned_identities\":{");
    for (unsigned i = 0; i < v->n_peers; i++) {
        if (v->peer[i].learned[0] == '\0')
            continue;
        if (n_learned++ > 0)
            buf_putc(out, ',');
        js_put_text(out, span_of(v->peer[i].learned));
        buf_putc(out, ':');
        js_put_text(out, span_of(v->peer[i].address));
    }
    buf_printf(
        out,
        "},\"learned_identities_count\":%u,\"messages_sent\":%llu,\"messages_received\":%llu,"
        "\"messages_dropped\":%llu,\"signature_failures\":%llu,\"sequence_rejections\":%llu,"
        "\"stale_rejections\":%llu}",
        n_learned, (ull)v->sent, (ull)v->received, (ull)v->dropped, (ull)v->bad_signatures,
        (ull)v->bad_sequences, (ull)v->stale);
}

void shared_state_put(const struct api_shared *shared, struct buf *out)
{
    struct peers_view *v = mem_new(struct peers_view); // too large for a stack
    struct cache_figures cache = cache_figures(shared);
    unsigned flags = house_maintenance(shared->house);
    bool on = shared->peers != NULL;

    if (on)
        peers_view(shared->peers, v);
    buf_printf(out, "{\"enabled\":%s,\"running\":%s,\"server_id\":", on ? "true" : "false",
               on ? "true" : "false");
    if (on)
        js_put_text(out, span_of(v->server_id));
    else
        put_own_id(shared, out);
    if (on)
        put_transport(out, v);
    buf_printf(out,
               ",\"queue_config_cache\":{\"size\":%llu,\"hits\":%llu,\"misses\":%llu,"
               "\"hit_rate\":",
               (ull)cache.size, (ull)cache.hits, (ull)cache.misses);
    uint64_t asked = cache.hits + cache.misses;
    uint64_t rate = asked == 0 ? 0 : cache.hits * 10000 / asked;
    js_put_number(out, (double)rate / 10000);
    buf_printf(out,
               "},\"server_health\":{\"servers_tracked\":%u,\"servers_alive\":%u,"
               "\"servers_dead\":%u,\"heartbeats_received\":%llu,\"restarts_detected\":%llu},"
               "\"maintenance_mode\":%s,\"pop_maintenance_mode\":%s}",
               v->n_tracked, v->n_alive, v->n_tracked - v->n_alive, (ull)v->heartbeats,
               (ull)v->restarts, flags & MAINTENANCE_PUSH ? "true" : "false",
               flags & MAINTENANCE_POP ? "true" : "false");
    free(v);
}

static void shared_state_get(struct http_req *req)
{
    const struct api *api = http_req_app(req);
    struct buf out = {0};

    shared_state_put(api->shared, &out);
    http_reply_json(req, 200, &out);
}

void shared_state_expose(const struct api_shared *shared, struct buf *out)
{
    struct peers_view *v = mem_new(struct peers_view);

    prom_single(out, "queen_shared_state_enabled", "gauge", "1 if servers tell each other",
                shared->peers != NULL);
    if (shared->peers) {
        struct cache_figures cache = cache_figures(shared);
        peers_view(shared->peers, v);
        prom_single(out, "queen_qc_cache_size", "gauge", "queues known by name", cache.size);
        prom_single(out, "queen_qc_cache_hits_total", "counter",
                    "messages whose partition was known", cache.hits);
        prom_single(out, "queen_qc_cache_misses_total", "counter",
                    "partitions that had to be asked for", cache.misses);
        prom_single(out, "queen_peers_alive", "gauge", "other servers heard of lately",
                    v->n_alive);
        prom_single(out, "queen_peers_restarts_total", "counter",
                    "restarts of other servers that were noticed", v->restarts);
    }
    prom_family(out, "queen_transport_messages_total", "counter",
                "messages between servers, by direction");
    prom_u64(out, "queen_transport_messages_total", "dir=\"sent\"", v->sent);
    prom_u64(out, "queen_transport_messages_total", "dir=\"received\"", v->received);
    prom_u64(out, "queen_transport_messages_total", "dir=\"dropped\"",
             v->dropped + v->bad_signatures + v->bad_sequences);
    free(v);
}

static void notify_post(struct http_req *req)
{
    enum { QUEUE, PARTITION, FIELDS };
    static const span names[FIELDS] = {{"queue", 5}, {"partition", 9}};
    struct api *api = http_req_app(req);
    struct body b = body_open(req, "");
    span raw[FIELDS];

    body_read_fields(&b, names, FIELDS, raw);
    span queue = body_name(&b, raw[QUEUE], "queue");
    body_name(&b, raw[PARTITION], "partition");
    if (b.j.rc == 0 && !queue.ptr)
        body_bad(&b, "queue must be a string");
    if (body_finish(&b) != 0) {
        http_reply_fault(req, &b.fault);
        return;
    }
    broker_notify(api->broker, queue);
    http_reply_json_span(req, 200, SPAN("{\"status\":\"ok\"}"));
}

#define SHARED_STATE(path_, op_)                                                \
    {                                                                           \
        .verb = HTTP_GET, .path = (path_), .access = ACCESS_ADMIN, .op = (op_), \
        .handle = shared_state_get, .unknown = UNKNOWN_IGNORED                  \
    }

const struct http_route api_shared_state =
    SHARED_STATE("/api/v1/system/shared-state", "shared_state");
const struct http_route api_shared_state_stats =
    SHARED_STATE("/internal/api/shared-state/stats", "shared_state_stats");
const struct http_route api_inter_instance_stats =
    SHARED_STATE("/internal/api/inter-instance/stats", "inter_instance_stats");
const struct http_route api_notify = {
    .verb = HTTP_POST,
    .path = "/internal/api/notify",
    .unaudited = true,
    .access = ACCESS_ADMIN,
    .op = "notify",
    .handle = notify_post,
    .unknown = UNKNOWN_IGNORED,
};
