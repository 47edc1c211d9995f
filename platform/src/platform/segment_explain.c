// POST /api/v1/tenants/:tenant/segments/explain: explains why a customer is or is not in the
// segment.
//
//       best path ──► write model ──► progress of ingestion and models ──► the reply
//
// The first two differ when a view is older than the data.  The reply contains the result of
// each filter for both, which shows where a change is delayed.
#include <stdio.h>

#include "base/clock.h"
#include "platform/segment_request.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

// The results of one path for the customer.
struct verdicts {
    bool known; // the path contains the customer
    bool inside;
    struct {
        bool is_true;
        span value; // JSON; SPAN_NONE: not available
    } leaf[FILTER_MAX_LEAVES];
};

struct explanation {
    struct segment_request *s;
    struct verdicts read, write;
    struct audience_source source;
    // progress
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_params params;
    struct pg_call call;
};

static void explain_compose(struct audience_query *q, struct compiled *c);
static void on_read(struct audience_query *q, int status, const struct fault *why);
static void on_write(struct audience_query *q, int status, const struct fault *why);
static void on_explain_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                              const struct fault *why);
static void on_state(struct pg_call *call, int status, const struct pg_reply *reply);
static void explain_reply(struct explanation *e, span ingestion, span models);

static void explain_handle(struct http_req *req)
{
    struct segment_request *s = segment_request_read(req);

    if (s == NULL)
        return;
    if (!s->has_customer) {
        http_reply_errf(req, QE_BAD_PARAM, "customer must be given");
        return;
    }
    struct explanation *e = arena_new(http_req_arena(req), struct explanation);
    e->s = s;
    s->query.owner = e;
    s->query.compose = explain_compose;
    s->query.answered = on_read;
    audience_query(&s->query);
}

static void explain_compose(struct audience_query *q, struct compiled *c)
{
    const struct explanation *e = q->owner;

    compile_explain(c, q->filter, &q->facts, e->s->customer);
}

static void explain_take(const struct audience_query *q, struct verdicts *v, struct arena *a)
{
    v->known = query_rows(q) > 0;
    if (!v->known)
        return;
    v->inside = query_bool(q, 0, EXPLAIN_INSIDE);
    for (unsigned i = 0; i < q->facts.leaves; i++) {
        span value = query_text(q, 0, EXPLAIN_LEAF_VALUE(i));
        v->leaf[i].is_true = query_bool(q, 0, EXPLAIN_LEAF_TEST(i));
        v->leaf[i].value = value.ptr ? arena_copy(a, value) : SPAN_NONE;
    }
}

static void on_read(struct audience_query *q, int status, const struct fault *why)
{
    struct explanation *e = q->owner;

    if (status != 0) {
        platform_reply_failed(e->s->req, status, why);
        return;
    }
    explain_take(q, &e->read, http_req_arena(e->s->req));
    e->source = q->source;
    if (q->source.path == PATH_FALLBACK) {
        e->write = e->read;
        e->want = (struct tenant_want){.got = on_explain_tenant, .owner = e};
        tenant_get(q->pools, q->tenant, &e->want);
        return;
    }
    struct audience_query *again = arena_new(http_req_arena(e->s->req), struct audience_query);
    *again = (struct audience_query){.pools = q->pools,
                                     .stats = q->stats,
                                     .tenant = q->tenant,
                                     .filter = q->filter,
                                     .facts = q->facts,
                                     .choose = true,
                                     .source.path = PATH_FALLBACK,
                                     .timeout_ms = q->timeout_ms,
                                     .compose = explain_compose,
                                     .answered = on_write,
                                     .owner = e};
    audience_query(again);
}

static void on_write(struct audience_query *q, int status, const struct fault *why)
{
    struct explanation *e = q->owner;

    if (status != 0) {
        platform_reply_failed(e->s->req, status, why);
        return;
    }
    explain_take(q, &e->write, http_req_arena(e->s->req));
    e->want = (struct tenant_want){.got = on_explain_tenant, .owner = e};
    tenant_get(q->pools, q->tenant, &e->want);
}

static void on_explain_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                              const struct fault *why)
{
    struct explanation *e = w->owner;
    const struct platform *p = http_req_app(e->s->req);

    if (status != 0) {
        platform_reply_failed(e->s->req, status, why);
        return;
    }
    if (tenant_ref_kind(ref) != TENANT_PG) {
        tenant_put(ref);
        explain_reply(e, SPAN("null"), SPAN("[]"));
        return;
    }
    e->ref = ref;
    pg_param_text(&e->params, span_of(p->conf->queue));
    e->call = (struct pg_call){.statement = &pg_stmt_tenant_segment_explain_state,
                               .params = &e->params,
                               .done = on_state,
                               .owner = e};
    pg_pool_exec(tenant_ref_pg(ref), &e->call);
}

static void on_state(struct pg_call *call, int status, const struct pg_reply *rows)
{
    struct explanation *e = call->owner;
    struct tenant_ref *ref = e->ref;

    pg_params_free(&e->params);
    if (status != 0) {
        tenant_ref_failed(ref, status);
        platform_reply_failed(e->s->req, status, NULL);
    } else {
        explain_reply(e, pg_reply_bytes(rows, 0, TENANT_SEGMENT_EXPLAIN_STATE_COL_CHECKPOINT),
                      pg_reply_bytes(rows, 0, TENANT_SEGMENT_EXPLAIN_STATE_COL_MODELS));
    }
    tenant_put(ref);
}

// ---- the reply ----

static void put_verdict(struct buf *out, const struct verdicts *v, unsigned leaf)
{
    if (!v->known) {
        buf_put_lit(out, "\"verdict\":null,\"value\":null");
        return;
    }
    buf_printf(out, "\"verdict\":%s,\"value\":", v->leaf[leaf].is_true ? "true" : "false");
    buf_put(out, v->leaf[leaf].value.ptr ? v->leaf[leaf].value : SPAN("null"));
}

struct putting {
    struct explanation *e;
    struct buf *out;
    const struct filter
        *first_false; // first filter that is false in the read model and in the write model
};

static void put_leaf(const struct filter *leaf, void *ctx)
{
    struct putting *put = ctx;
    const struct explanation *e = put->e;

    buf_put_lit(put->out, "{\"at\":");
    js_put_text(put->out, leaf->path);
    buf_put_lit(put->out, ",\"filter\":");
    buf_put(put->out, leaf->source);
    buf_printf(put->out, ",\"label\":\"%s %s\",", leaf->attribute->label, leaf->op->label);
    put_verdict(put->out, &e->read, leaf->number);
    buf_put_lit(put->out, ",\"writeModel\":{");
    put_verdict(put->out, &e->write, leaf->number);
    buf_put_lit(put->out, "}},");
    if (put->first_false == NULL && e->write.known && !e->write.leaf[leaf->number].is_true)
        put->first_false = leaf;
}

// One sentence with the most likely reason.
static void put_because(struct buf *out, const struct putting *put)
{
    const struct explanation *e = put->e;
    const struct filter *leaf = put->first_false;
    struct buf text = {0};

    if (!e->write.known)
        buf_put_lit(&text, "the customer is not in the write model: no event about it has been "
                           "ingested, or it was deleted");
    else if (!e->read.known)
        buf_put_lit(&text,
                    "the read model does not have the customer yet: it is older than the "
                    "customer's first event");
    else if (e->read.inside != e->write.inside)
        buf_printf(&text,
                   "the write model says %s, the read model %s: it is %lld ms behind and will "
                   "agree after its next refresh",
                   e->write.inside ? "yes" : "no", e->read.inside ? "yes" : "no",
                   (long long)e->source.stale_ms);
    else if (e->read.inside)
        buf_put_lit(&text, "it is in the segment");
    else if (leaf)
        buf_printf(&text, "filter" SPAN_FMT " is false: %s %s", SPAN_ARG(leaf->path),
                   leaf->attribute->label, leaf->op->label);
    else
        buf_put_lit(&text, "a negated filter is true for this customer");
    js_put_text(out, buf_span(&text));
    buf_free(&text);
}

static void explain_put_inside(struct buf *out, const struct verdicts *v)
{
    buf_put(out, !v->known ? SPAN("null") : v->inside ? SPAN("true") : SPAN("false"));
}

static void explain_reply(struct explanation *e, span ingestion, span models)
{
    struct buf out = {0};
    struct putting put = {.e = e, .out = &out};

    buf_put_lit(&out, "{\"customer\":\"");
    buf_put_uuid(&out, e->s->customer);
    buf_put_lit(&out, "\",\"inSegment\":");
    explain_put_inside(&out, &e->read);
    buf_put_lit(&out, ",\"inWriteModel\":");
    explain_put_inside(&out, &e->write);
    buf_put_lit(&out, ",\"filters\":[");
    filter_each_leaf(e->s->filter, put_leaf, &put);
    if (out.len > 0 && out.ptr[out.len - 1] == ',')
        out.len--;
    buf_put_lit(&out, "],\"because\":");
    put_because(&out, &put);
    buf_putc(&out, ',');
    segment_put_source(&out, &e->source, 0);
    buf_put_lit(&out, ",\"ingestion\":");
    buf_put(&out, ingestion);
    buf_put_lit(&out, ",\"readModels\":");
    buf_put(&out, models);
    buf_printf(&out, ",\"tookMs\":%.3f}",
               (double)(clock_mono_us() - http_req_started_us(e->s->req)) / 1000);
    http_reply_json(e->s->req, 200, &out);
}

const struct http_route platform_segment_explain = {
    .verb = HTTP_POST,
    .path = "/api/v1/tenants/:tenant/segments/explain",
    .unaudited = true,
    .access = ACCESS_READ_ONLY,
    .target = TARGET_TENANT,
    .need = MAY_READ,
    .op = "segment_explain",
    .handle = explain_handle};
