// tracing.c: decides which requests are recorded, and fills in their spans.
#include "api/tracing.h"

#include <stdlib.h>

#include "api/api_int.h"
#include "api/trace_context.h"
#include "base/clock.h"
#include "base/mem.h"
#include "trace/sink.h"

struct traced_route {
    const struct http_route *route;
    const char *operation, *category; // as in the conventions of OpenTelemetry
};

static const struct traced_route *find_traced(const struct http_route *route)
{
    static const struct traced_route traced[] = {
        {&api_push, "push", "send"},
        {&api_push_queue, "push", "send"},
        {&api_push_partition, "push", "send"},
        {&api_pop, "pop", "receive"},
        {&api_pop_queue, "pop", "receive"},
        {&api_pop_partition, "pop", "receive"},
        {&api_ack, "ack", "settle"},
        {&api_ack_batch, "ack", "settle"},
        {&api_transaction, "transaction", "send"},
        {&api_extend, "extend", "settle"},
        {&api_cycle, "cycle", "settle"},
    };

    for (unsigned i = 0; i < countof(traced); i++)
        if (traced[i].route == route)
            return &traced[i];
    return NULL;
}

// Of the request's header; false: there is none, or a malformed one.
static bool read_parent(struct http_req *req, struct trace_place *parent, bool *sampled)
{
    if (!http_req_has(req, RARE_TRACEPARENT))
        return false;
    span text = http_req_header(req, SPAN("traceparent"));
    if (!trace_parent_is_valid(text))
        return false;
    trace_place_read(text, parent, sampled);
    return true;
}

static struct trace_span *start(struct http_req *req, const struct trace_place *parent)
{
    struct trace_span *s = trace_span_new();

    if (parent)
        trace_span_continue(s, parent);
    http_req_set_trace(req, s);
    return s;
}

void tracing_begin(void *app, struct http_req *req)
{
    const struct api *api = app;
    struct trace_place parent;
    bool sampled;

    if (!find_traced(http_req_route(req)))
        return;
    if (read_parent(req, &parent, &sampled)) {
        if (sampled)
            start(req, &parent);
    } else if (collector_samples(trace_sink_collector(api->traces))) {
        start(req, NULL);
    }
}

static const char *verb_name(enum http_verb verb)
{
    return verb == HTTP_GET ? "GET" : verb == HTTP_POST ? "POST" : "_OTHER";
}

void tracing_end(void *app, struct http_req *req, int status)
{
    struct api *api = app;
    struct trace_span *s = http_req_trace(req);
    const struct http_route *route = http_req_route(req);
    const struct traced_route *traced = find_traced(route);

    s->operation = traced->operation;
    s->category = traced->category;
    s->route = route->path;
    s->method = verb_name(http_req_verb(req));
    s->status = status;
    s->end_us = clock_wall_us();
    s->start_us = s->end_us - (clock_mono_us() - http_req_started_us(req));
    trace_sink_add(api->traces, s);
    trace_span_free(s);
}

void tracing_note(struct http_req *req, span queue, span partition, span group, unsigned n)
{
    struct trace_span *s = http_req_trace(req);

    if (!s)
        return;
    trace_name_set(&s->queue, queue);
    trace_name_set(&s->partition, partition);
    trace_name_set(&s->group, span_eq(group, API_QUEUE_MODE) ? SPAN_NONE : group);
    s->n_messages = n;
}

void tracing_note_items(struct http_req *req, const struct push_item *items, unsigned n)
{
    if (!http_req_trace(req))
        return;
    bool same_queue = true, same_partition = true;
    for (unsigned i = 1; i < n; i++) {
        same_queue &= span_eq(items[i].queue, items[0].queue);
        same_partition &= span_eq(items[i].partition, items[0].partition);
    }
    tracing_note(req, n > 0 && same_queue ? items[0].queue : SPAN_NONE,
                 n > 0 && same_queue && same_partition ? items[0].partition : SPAN_NONE,
                 SPAN_NONE, n);
}

// The text of a member, without its quotes; the members are of an object that was checked when
// the message was stored.
static span find_member(span object, span name)
{
    struct js j = js_read(object);
    span key, found = SPAN_NONE;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        if (span_eq(key, name))
            found = raw;
    }
    return found;
}

void tracing_link(struct trace_links **links, span meta)
{
    struct trace_place place;
    bool sampled;

    span raw = find_member(meta, SPAN("traceparent"));
    if (raw.len == 0) // an event may have it among its attributes
        raw = find_member(find_member(meta, SPAN("cloudEvent")), SPAN("traceparent"));
    if (raw.len < 2 || raw.ptr[0] != '"')
        return;
    span text = {raw.ptr + 1, raw.len - 2};
    if (!trace_parent_is_valid(text))
        return;
    trace_place_read(text, &place, &sampled);
    if (!*links)
        *links = mem_new(struct trace_links);
    trace_links_add(*links, &place, sampled);
}

void tracing_take_links(struct http_req *req, struct trace_links **links)
{
    struct trace_span *s = http_req_trace(req);
    struct trace_links *given = *links;
    struct trace_place parent;
    bool sampled;

    *links = NULL;
    if (!given)
        return;
    // A consumer that decided against its trace is not overruled.
    if (!s && given->sampled && !read_parent(req, &parent, &sampled))
        s = start(req, NULL);
    if (s)
        s->links = given;
    else
        free(given);
}
