// /api/v1/segments/attributes, /api/v1/tenants/:tenant/segments/count and /preview: counts and
// lists the customers of a filter.  segment_explain.c explains one customer, saved.c handles
// saved segments.
#include "audience/compile.h"
#include "base/clock.h"
#include "platform/audience.h"
#include "platform/segment_request.h"
#include "json/write.h"

// ---- the catalogue ----

static void put_operators(struct buf *out, const struct attribute *a)
{
    bool first = true;

    for (size_t i = 0; i < operator_count; i++) {
        const struct operator_kind *o = &operator_catalogue[i];
        if (!operator_takes(o, a->type))
            continue;
        buf_printf(out, "%s\"%s\"", first ? "" : ",", o->name);
        first = false;
    }
}

static const char *model_name(enum attribute_model model)
{
    return model == MODEL_ATTRIBUTES     ? "\"customer_attributes\""
           : model == MODEL_TRANSACTIONS ? "\"customer_transactions\""
                                         : "null";
}

static void attributes_handle(struct http_req *req)
{
    static const char *const operands[] = {"none", "one", "two", "list", "days"};
    struct buf out = {0};

    buf_put_lit(&out, "{\"attributes\":[");
    for (size_t i = 0; i < attribute_count; i++) {
        const struct attribute *a = &attribute_catalogue[i];
        buf_printf(&out,
                   "%s{\"name\":\"%s\",\"label\":\"%s\",\"table\":\"%s\",\"type\":\"%s\","
                   "\"readModel\":%s,\"withinDays\":%s,\"mysql\":%s,\"operators\":[",
                   i > 0 ? "," : "", a->name, a->label, a->table, attribute_type_name(a->type),
                   model_name(a->model), a->days ? "true" : "false",
                   a->write_mysql && a->write_mysql[0] == '\0' ? "false" : "true");
        put_operators(&out, a);
        buf_put_lit(&out, "]}");
    }
    buf_put_lit(&out, "],\"operators\":[");
    for (size_t i = 0; i < operator_count; i++) {
        const struct operator_kind *o = &operator_catalogue[i];
        buf_printf(&out, "%s{\"name\":\"%s\",\"label\":\"%s\",\"value\":\"%s\"}",
                   i > 0 ? "," : "", o->name, o->label, operands[o->operand]);
    }
    const struct filter_limits *l = &filter_default_limits;
    buf_printf(&out,
               "],\"limits\":{\"depth\":%u,\"filters\":%u,\"list\":%u,\"textBytes\":%u,"
               "\"cost\":%u}}",
               l->depth, l->leaves, l->list, l->text_bytes, l->cost);
    http_reply_json(req, 200, &out);
}

// ---- count ----

static void reply_count(struct segment_request *s, const struct audience_counted *v,
                        bool cached)
{
    uint64_t age_us = cached ? clock_mono_us() - v->at_us : 0;
    struct buf out = {0};

    buf_printf(&out, "{\"count\":%lld,", (long long)v->count);
    segment_put_source(&out, &v->source, age_us);
    buf_printf(&out, ",\"cached\":%s,\"ageMs\":%llu,\"tookMs\":%.3f}",
               cached ? "true" : "false", (unsigned long long)(age_us / 1000),
               (double)(clock_mono_us() - http_req_started_us(s->req)) / 1000);
    http_reply_json(s->req, 200, &out);
}

static void segments_compose_count(struct audience_query *q, struct compiled *c)
{
    compile_count(c, q->filter, &q->facts);
}

static bool find_count(struct segment_request *s, struct audience_counted *v)
{
    struct platform *p = http_req_app(s->req);
    uint64_t tenant = tenant_identity(p->pools, s->tenant);
    struct buf key = {0};

    if (s->max_age_ms <= 0 || tenant == 0)
        return false;
    audience_cache_key(&key, tenant, s->path, s->filter_text);
    bool found = audience_cache_find(p->audience->counts, buf_span(&key),
                                     (uint64_t)s->max_age_ms * 1000, v);
    buf_free(&key);
    return found;
}

static void on_segments_counted(struct audience_query *q, int status, const struct fault *why)
{
    struct segment_request *s = q->owner;
    struct platform *p = http_req_app(s->req);
    struct buf key = {0};

    if (status != 0) {
        platform_reply_failed(s->req, status, why);
        return;
    }
    http_req_note_db(s->req, q->took_us);
    struct audience_counted v = {
        .count = query_i64(q, 0, COUNT_N), .source = q->source, .at_us = clock_mono_us()};
    audience_cache_key(&key, q->identity, s->path, s->filter_text);
    audience_cache_add(p->audience->counts, buf_span(&key), &v);
    buf_free(&key);
    reply_count(s, &v, false);
}

static void segments_count_handle(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct segment_request *s = segment_request_read(req);
    struct audience_counted v;

    if (s == NULL)
        return;
    if (find_count(s, &v)) {
        counter_add(&p->audience->cached, 1);
        reply_count(s, &v, true);
        return;
    }
    s->query.compose = segments_compose_count;
    s->query.returns = "1l";
    s->query.answered = on_segments_counted;
    audience_query(&s->query);
}

// ---- preview ----

static void compose_page(struct audience_query *q, struct compiled *c)
{
    struct segment_request *s = q->owner;

    compile_page(c, q->filter, &q->facts, s->after, s->limit + 1);
}

static void on_page(struct audience_query *q, int status, const struct fault *why)
{
    static const char *const fields[PAGE_COLUMNS] = {
        "id", "customer", "firstName", "lastName", "email", "phone", "city"};
    struct segment_request *s = q->owner;
    struct buf out = {0};

    if (status != 0) {
        platform_reply_failed(s->req, status, why);
        return;
    }
    unsigned n = query_rows(q);
    bool more = n > s->limit;
    n = more ? (unsigned)s->limit : n;
    buf_put_lit(&out, "{\"customers\":[");
    for (unsigned row = 0; row < n; row++) {
        buf_printf(&out, "%s{\"id\":%lld", row > 0 ? "," : "",
                   (long long)query_i64(q, row, PAGE_ID));
        for (unsigned col = PAGE_UUID; col < PAGE_COLUMNS; col++) {
            buf_printf(&out, ",\"%s\":", fields[col]);
            js_put_text_or_null(&out, query_text(q, row, col));
        }
        buf_putc(&out, '}');
    }
    buf_put_lit(&out, "],\"next\":");
    if (more)
        buf_printf(&out, "%lld,", (long long)query_i64(q, n - 1, PAGE_ID));
    else
        buf_put_lit(&out, "null,");
    segment_put_source(&out, &q->source, 0);
    buf_printf(&out, ",\"tookMs\":%.3f}",
               (double)(clock_mono_us() - http_req_started_us(s->req)) / 1000);
    http_req_note_db(s->req, q->took_us);
    http_reply_json(s->req, 200, &out);
}

static void preview_handle(struct http_req *req)
{
    struct segment_request *s = segment_request_read(req);

    if (s == NULL)
        return;
    s->query.compose = compose_page;
    s->query.returns = "ltTTTTT";
    s->query.answered = on_page;
    audience_query(&s->query);
}

const struct http_route platform_segment_attributes = {.verb = HTTP_GET,
                                                       .path = "/api/v1/segments/attributes",
                                                       .access = ACCESS_READ_ONLY,
                                                       .target = TARGET_FREE,
                                                       .op = "segment_attributes",
                                                       .handle = attributes_handle};
const struct http_route platform_segment_count = {.verb = HTTP_POST,
                                                  .path =
                                                      "/api/v1/tenants/:tenant/segments/count",
                                                  .unaudited = true,
                                                  .access = ACCESS_READ_ONLY,
                                                  .target = TARGET_TENANT,
                                                  .need = MAY_READ,
                                                  .op = "segment_count",
                                                  .handle = segments_count_handle};
const struct http_route platform_segment_preview = {
    .verb = HTTP_POST,
    .path = "/api/v1/tenants/:tenant/segments/preview",
    .unaudited = true,
    .access = ACCESS_READ_ONLY,
    .target = TARGET_TENANT,
    .need = MAY_READ,
    .op = "segment_preview",
    .handle = preview_handle};
