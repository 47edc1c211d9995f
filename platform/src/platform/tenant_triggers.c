// tenant_triggers.c: removes and restores the recurring triggers of a tenant.
//
//       end:     list of schedules, page by page ──► those of the tenant are deleted, one by
//       one restore: subscriptions and campaigns of its database ──► a schedule for each
#include "platform/tenant_triggers.h"

#include <stdlib.h>

#include "base/id.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "platform/members.h"
#include "platform/saved.h"
#include "tenant/sql.gen.h"
#include "json/scan.h"

enum { PAGE = 1000, LIST_MS = 5000 };

struct recurring {
    span name;               // end
    span id, cron, timezone; // restore
    int64_t every_s;
    bool watches;
};

struct tenant_triggers {
    struct platform *p;
    span tenant;
    tenant_triggers_cb done;
    void *ctx;
    struct arena arena;
    struct recurring *each;
    unsigned n, next, n_listed;
    struct tenant_want want;
    struct tenant_ref *ref;
    struct pg_call call;
};

static void list_schedules(struct tenant_triggers *t);
static void on_schedules(struct queen_response *r, const struct queen_error *err, void *ctx);
static void end_next(struct tenant_triggers *t);
static void on_restore_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                              const struct fault *why);
static void on_recurring(struct pg_call *call, int status, const struct pg_reply *reply);
static void restore_next(struct tenant_triggers *t);
static void on_next_done(void *ctx, const struct queen_error *why);

static struct tenant_triggers *triggers_new(struct platform *p, span tenant,
                                            tenant_triggers_cb done, void *ctx)
{
    struct tenant_triggers *t = mem_new(struct tenant_triggers);

    t->p = p;
    t->tenant = tenant;
    t->done = done;
    t->ctx = ctx;
    arena_init(&t->arena);
    return t;
}

static void triggers_finish(struct tenant_triggers *t, const struct fault *why)
{
    tenant_triggers_cb done = t->done;
    void *ctx = t->ctx;

    if (t->ref)
        tenant_put(t->ref);
    arena_deinit(&t->arena);
    free(t->each);
    free(t);
    done(ctx, why);
}

static void fail_at_broker(struct tenant_triggers *t, const char *text)
{
    struct fault f;

    fault_set(&f, QE_PG_AWAY, "the broker did not accept a trigger: %s", text);
    triggers_finish(t, &f);
}

static struct recurring *add_recurring(struct tenant_triggers *t)
{
    t->each = mem_realloc(t->each, (t->n + 1) * sizeof *t->each);
    t->each[t->n] = (struct recurring){0};
    return &t->each[t->n++];
}

// ---- end ----

void tenant_triggers_end(struct platform *p, span tenant, tenant_triggers_cb done, void *ctx)
{
    list_schedules(triggers_new(p, tenant, done, ctx));
}

static void list_schedules(struct tenant_triggers *t)
{
    char *queue = queen_escape(t->p->conf->trigger_queue);
    struct buf path = {0};

    buf_printf(&path, "/api/v1/schedules?queue=%s&limit=%d&offset=%u", queue, PAGE,
               t->n_listed);
    buf_putc(&path, '\0');
    free(queue);
    queen_request_start(
        t->p->broker,
        &(struct queen_request){.path = path.ptr, .attempts = 1, .timeout_ms = LIST_MS},
        on_schedules, t);
    buf_free(&path);
}

// "segment:<tenant>:<id>" or "campaign:<tenant>:<id>"
static bool is_of_tenant(span name, span tenant)
{
    span noun, owner, id;
    uint8_t uuid[16];

    return str_split(&name, ':', &noun) && str_split(&name, ':', &owner) && name.ptr &&
           str_split(&name, ':', &id) && !name.ptr && span_eq(owner, tenant) &&
           (span_eq(noun, SPAN("segment")) || span_eq(noun, SPAN("campaign"))) &&
           id_parse_uuid(id, uuid);
}

// Returns the number of schedules in the reply.
static unsigned read_schedules(struct tenant_triggers *t, span body)
{
    struct js j = js_read(member_of(body, "schedules", &t->arena));
    unsigned n = 0;

    for (js_enter_array(&j); js_next_item(&j); n++) {
        span name = member_of(js_skip(&j), "name", &t->arena);
        if (is_of_tenant(name, t->tenant))
            add_recurring(t)->name = arena_copy(&t->arena, name);
    }
    return n;
}

static void on_schedules(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct tenant_triggers *t = ctx;

    if (err->code != QUEEN_OK) {
        queen_response_free(r);
        fail_at_broker(t, err->text);
        return;
    }
    unsigned n = read_schedules(t, (span){r->body, r->body_len});
    queen_response_free(r);
    t->n_listed += n;
    if (n == PAGE)
        list_schedules(t);
    else
        end_next(t);
}

static void end_next(struct tenant_triggers *t)
{
    if (t->next == t->n)
        triggers_finish(t, NULL);
    else
        trigger_end(t->p, t->each[t->next++].name, on_next_done, t);
}

// ---- restore ----

void tenant_triggers_restore(struct platform *p, span tenant, tenant_triggers_cb done,
                             void *ctx)
{
    struct tenant_triggers *t = triggers_new(p, tenant, done, ctx);

    t->want = (struct tenant_want){.got = on_restore_tenant, .owner = t};
    tenant_get(p->pools, tenant, &t->want);
}

static void on_restore_tenant(struct tenant_want *w, int status, struct tenant_ref *ref,
                              const struct fault *why)
{
    struct tenant_triggers *t = w->owner;

    if (status != 0) {
        triggers_finish(t, why);
        return;
    }
    t->ref = ref;
    t->call = (struct pg_call){
        .statement = &pg_stmt_tenant_recurring_triggers, .done = on_recurring, .owner = t};
    pg_pool_exec(tenant_ref_pg(ref), &t->call);
}

static void on_recurring(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct tenant_triggers *t = call->owner;
    struct fault f;
    uint8_t uuid[16];

    if (status != 0) {
        tenant_ref_failed(t->ref, status);
        fault_set(&f, status, "%s", pg_reply_message(reply));
        triggers_finish(t, &f);
        return;
    }
    for (unsigned i = 0; i < pg_reply_rows(reply); i++) {
        span id = pg_reply_bytes(reply, i, TENANT_RECURRING_TRIGGERS_COL_ID);
        if (!id_parse_uuid(id, uuid)) // somebody else's table
            continue;
        struct recurring *r = add_recurring(t);
        r->id = arena_copy(&t->arena, id);
        r->every_s = pg_reply_i64(reply, i, TENANT_RECURRING_TRIGGERS_COL_EVERY_S);
        r->watches = !pg_reply_is_null(reply, i, TENANT_RECURRING_TRIGGERS_COL_EVERY_S);
        r->cron =
            arena_copy(&t->arena, pg_reply_bytes(reply, i, TENANT_RECURRING_TRIGGERS_COL_CRON));
        r->timezone = arena_copy(
            &t->arena, pg_reply_bytes(reply, i, TENANT_RECURRING_TRIGGERS_COL_TIMEZONE));
    }
    tenant_put(t->ref);
    t->ref = NULL;
    restore_next(t);
}

static void restore_next(struct tenant_triggers *t)
{
    struct buf name = {0}, payload = {0};

    if (t->next == t->n) {
        triggers_finish(t, NULL);
        return;
    }
    const struct recurring *r = &t->each[t->next++];
    if (r->watches) {
        segment_watch_start(t->p, t->tenant, r->id, r->every_s, on_next_done, t);
        return;
    }
    trigger_put_name(&name, "campaign", t->tenant, r->id);
    trigger_put_payload(&payload, "campaign", t->tenant, r->id);
    trigger_repeat(t->p, buf_span(&name), r->cron, r->timezone, t->tenant, buf_span(&payload),
                   on_next_done, t);
    buf_free(&name);
    buf_free(&payload);
}

// A trigger that the broker refuses does not keep the tenant from being added: the owner of the
// database may have changed it.
static void on_next_done(void *ctx, const struct queen_error *why)
{
    struct tenant_triggers *t = ctx;

    if (why && !trigger_is_refused(why)) {
        fail_at_broker(t, why->text);
        return;
    }
    if (why)
        log_warn("trigger.refused", "tenant=" SPAN_FMT " why=\"%s\"", SPAN_ARG(t->tenant),
                 why->text);
    if (t->each[t->next - 1].name.ptr)
        end_next(t);
    else
        restore_next(t);
}
