// segment_request.c: reads the requests of the endpoints for segments.
#include "platform/segment_request.h"
#include "platform/audience.h"

#include "base/id.h"
#include "base/str.h"
#include "platform/members.h"
#include "json/scan.h"

enum { DEFAULT_LIMIT = 50, MAX_LIMIT = 1000 };

enum { F_FILTER, F_PATH, F_MAX_AGE, F_LIMIT, F_AFTER, F_CUSTOMER, N_FIELDS };
static const char *const names[] = {"filter", "path",     "maxAgeMs", "limit",
                                    "after",  "customer", NULL};

bool segment_request_tenant(struct http_req *req, span *tenant)
{
    if (http_req_param(req, 0, tenant) && tenant->len > 0)
        return true;
    http_reply_errf(req, QE_BAD_PARAM, "tenant in the path is malformed");
    return false;
}

static bool read_number(struct segment_request *s, span raw, unsigned field, int64_t least,
                        int64_t most, int64_t *out)
{
    if (raw.ptr == NULL || js_type_of(raw) == JS_NULL)
        return true;
    if (js_int(raw, out) && *out >= least && *out <= most)
        return true;
    http_reply_errf(s->req, QE_BAD_PARAM, "%s must be a whole number from %lld to %lld",
                    names[field], (long long)least, (long long)most);
    return false;
}

static bool read_path(struct segment_request *s, span raw)
{
    if (raw.ptr == NULL || js_type_of(raw) == JS_NULL)
        return true;
    span text = js_type_of(raw) == JS_STRING ? js_text(raw, http_req_arena(s->req)) : SPAN_NONE;
    for (int path = PATH_LIVE; path <= PATH_FALLBACK; path++)
        if (span_eq(text, span_of(audience_path_name((enum audience_path)path)))) {
            s->path = text;
            s->query.choose = true;
            s->query.source.path = (enum audience_path)path;
            return true;
        }
    http_reply_errf(s->req, QE_BAD_PARAM, "path must be live, views or fallback");
    return false;
}

static bool read_customer(struct segment_request *s, span raw)
{
    if (raw.ptr == NULL)
        return true;
    span text = js_type_of(raw) == JS_STRING ? js_text(raw, http_req_arena(s->req)) : SPAN_NONE;
    s->has_customer = id_parse_uuid(text, s->customer);
    if (!s->has_customer)
        http_reply_errf(s->req, QE_BAD_PARAM, "customer must be a UUID");
    return s->has_customer;
}

bool segment_request_filter(struct segment_request *s, span text)
{
    struct fault why;

    if (text.ptr == NULL) {
        http_reply_errf(s->req, QE_BAD_PARAM,
                        "filter must be given; {\"all\": true} matches every customer");
        return false;
    }
    s->filter_text = text;
    if (filter_read(s->filter_text, http_req_arena(s->req), &filter_default_limits, &s->filter,
                    &s->query.facts, &why) != 0) {
        http_reply_fault(s->req, &why);
        return false;
    }
    s->query.filter = s->filter;
    return true;
}

struct segment_request *segment_request_read(struct http_req *req)
{
    struct platform *p = http_req_app(req);
    struct segment_request *s = arena_new(http_req_arena(req), struct segment_request);
    span raw[N_FIELDS] = {{0}};

    s->req = req;
    s->limit = DEFAULT_LIMIT;
    s->max_age_ms = p->conf->segment_cache_ms;
    if (!segment_request_tenant(req, &s->tenant) || !members_read(req, names, raw) ||
        !segment_request_filter(s, raw[F_FILTER]) || !read_path(s, raw[F_PATH]) ||
        !read_number(s, raw[F_MAX_AGE], F_MAX_AGE, 0, 3600000, &s->max_age_ms) ||
        !read_number(s, raw[F_LIMIT], F_LIMIT, 1, MAX_LIMIT, &s->limit) ||
        !read_number(s, raw[F_AFTER], F_AFTER, 0, INT64_MAX, &s->after) ||
        !read_customer(s, raw[F_CUSTOMER]))
        return NULL;
    s->query.pools = p->pools;
    s->query.stats = &p->audience->queries;
    s->query.tenant = s->tenant;
    s->query.timeout_ms = (unsigned)p->conf->segment_timeout_ms;
    s->query.owner = s;
    return s;
}

void segment_put_source(struct buf *out, const struct audience_source *s, uint64_t age_us)
{
    char ts[STR_TS_MS];

    long long stale_ms = s->stale_ms + (long long)(age_us / 1000);

    str_format_ts_ms(s->as_of_us, ts);
    buf_printf(out, "\"path\":\"%s\",\"staleMs\":%lld,\"asOf\":\"%.*s\"",
               audience_path_name(s->path), stale_ms, STR_TS_MS, ts);
}
