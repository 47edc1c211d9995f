// POST /api/v1/tenants/:tenant/segments/:segment/count: counts a saved segment and adds the
// count to its history.
//
//       the segment ──► count ──► record it ──► the reply
#include "base/clock.h"
#include "base/id.h"
#include "platform/audience.h"
#include "platform/members.h"
#include "platform/saved.h"
#include "platform/segment_request.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

struct counting {
    struct segment_request *s;
    span id;
    uint8_t segment[16];
    int64_t count;
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_params params;
    struct pg_call call;
};

static void saved_count_compose_count(struct audience_query *q, struct compiled *c)
{
    compile_count(c, q->filter, &q->facts);
}

static void reply_counted(struct counting *c)
{
    struct buf out = {0};

    buf_put_lit(&out, "{\"segment\":");
    js_put_text(&out, c->id);
    buf_printf(&out, ",\"count\":%lld,", (long long)c->count);
    segment_put_source(&out, &c->s->query.source, 0);
    buf_printf(&out, ",\"cached\":false,\"ageMs\":0,\"tookMs\":%.3f}",
               (double)(clock_mono_us() - http_req_started_us(c->s->req)) / 1000);
    http_reply_json(c->s->req, 200, &out);
}

static void on_saved_count_noted(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct counting *c = call->owner;
    struct tenant_ref *ref = c->ref;
    struct fault why;

    pg_params_free(&c->params);
    if (status != 0) {
        fault_set(&why, status, "%s", pg_reply_message(reply));
        tenant_ref_failed(ref, status);
        platform_reply_failed(c->s->req, status, &why);
    } else {
        reply_counted(c);
    }
    tenant_put(ref);
}

static void on_saved_count_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                                  const struct fault *why)
{
    struct counting *c = w->owner;

    if (status != 0) {
        platform_reply_failed(c->s->req, status, why);
        return;
    }
    if (tenant_ref_kind(ref) != TENANT_PG) { // another tenant of this name since the count
        tenant_put(ref);
        http_reply_err(c->s->req, QE_NOT_SUPPORTED);
        return;
    }
    c->ref = ref;
    pg_param_uuid(&c->params, c->segment);
    pg_param_i64(&c->params, c->count);
    pg_param_text(&c->params, span_of(audience_path_name(c->s->query.source.path)));
    c->call = (struct pg_call){.statement = &pg_stmt_tenant_note_count,
                               .params = &c->params,
                               .done = on_saved_count_noted,
                               .owner = c};
    pg_pool_exec(tenant_ref_pg(ref), &c->call);
}

static void on_saved_count_counted(struct audience_query *q, int status,
                                   const struct fault *why)
{
    struct counting *c = q->owner;

    if (status != 0) {
        platform_reply_failed(c->s->req, status, why);
        return;
    }
    c->count = query_i64(q, 0, COUNT_N);
    c->want = (struct tenant_want){.got = on_saved_count_tenant, .owner = c};
    tenant_get(q->pools, q->tenant, &c->want);
}

static void on_saved_count_segment(struct tenant_task *t, int status, span body)
{
    struct counting *c = t->owner;
    struct platform *p = http_req_app(t->req);
    struct arena *a = http_req_arena(t->req);

    if (status >= 300) {
        http_reply_json_span(t->req, status, body);
        return;
    }
    span text =
        arena_copy(a, member_of(body, "filter", a)); // body is valid only during this call
    c->id = arena_copy(a, member_of(body, "id", a));
    if (!id_parse_uuid(c->id, c->segment)) { // a tenant may own its database
        http_reply_err(t->req, QE_PG_SHAPE);
        return;
    }
    if (!segment_request_filter(c->s, text))
        return;
    c->s->query.pools = p->pools;
    c->s->query.stats = &p->audience->queries;
    c->s->query.tenant = t->tenant;
    c->s->query.timeout_ms = (unsigned)p->conf->segment_timeout_ms;
    c->s->query.compose = saved_count_compose_count;
    c->s->query.returns = "1l";
    c->s->query.answered = on_saved_count_counted;
    c->s->query.owner = c;
    audience_query(&c->s->query);
}

static void saved_count_count_handle(struct http_req *req)
{
    if (!members_read_none(req))
        return;
    struct tenant_task *t = saved_task(req, &pg_stmt_tenant_get_segment);
    struct counting *c = arena_new(http_req_arena(req), struct counting);

    c->s = arena_new(http_req_arena(req), struct segment_request);
    c->s->req = req;
    if (t != NULL) {
        t->owner = c;
        t->done = on_saved_count_segment;
    }
    saved_task_start(t);
}

#define SEGMENTS "/api/v1/tenants/:tenant/segments"
const struct http_route platform_count_saved = {.verb = HTTP_POST,
                                                .path = SEGMENTS "/:segment/count",
                                                .unaudited = true,
                                                .access = ACCESS_READ_WRITE,
                                                .target = TARGET_TENANT,
                                                .need = MAY_CONFIGURE,
                                                .op = "count_saved_segment",
                                                .handle = saved_count_count_handle};
