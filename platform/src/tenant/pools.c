// pools.c: applies the rules (grants.h, breaker.h) to real connections (tenant_db.h).
#include "tenant/pools_int.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"

enum { TICK_MS = 50, MAX_PAUSES = 30 };
// A directory read covers the changes of the last directory_window_s.  It covers all rows if
// the last successful read is older than half of that (the process was stopped, or the control
// database was unavailable), and every ALL_EVERY reads, because of slow commits and clock
// changes.
enum { ALL_EVERY = 30 };
enum {
    WANT_IN_DIRECTORY = 2
}; // tenant_want.state: waits for the directory; grants.c uses 0 and 1

// The steps of a request, in order.
static void query_directory(struct tenant *t, struct tenant_want *w);
static void on_pools_found(struct directory_find *d, int status, const struct tenant_row *row);
static void get_pool(struct tenant *t, struct tenant_want *w);
static void act_open(void *ctx, struct grant *grant);
static void on_opened(struct tenant_db *l, int status);
static void act_check(void *ctx, struct grant *grant);
static void on_pools_checked(struct tenant_db *l, int status);
static void act_finish(void *ctx, struct tenant_want *w, int status, struct grant *grant);
static void act_close(void *ctx, struct grant *grant);
static void on_db_closed(void *ctx);
// The timer and changes by other processes.
static void on_pools_tick(uv_timer_t *tick);
static void read_changes(struct tenant_pools *p, uint64_t now);
static void on_pools_changed(struct directory_changes *d, const struct tenant_row *row,
                             bool gone);
static void on_changes_read(struct directory_changes *d, int status);
static void on_pools_tick_closed(uv_handle_t *tick);

static const struct grants_acts acts = {act_open, act_check, act_close, act_finish};

struct tenant_pools *tenant_pools_open(uv_loop_t *loop, const struct tenant_pools_conf *conf)
{
    struct tenant_pools *p = mem_new(struct tenant_pools);

    p->loop = loop;
    p->conf = *conf;
    p->db = (struct tenant_db_conf){.home = conf->home,
                                    .auth = conf->auth,
                                    .max_conns = conf->max_conns,
                                    .connect_timeout_ms = conf->connect_timeout_ms,
                                    .conn_idle_ms = conf->conn_idle_ms,
                                    .statement_timeout_ms = conf->statement_timeout_ms};
    p->breaker = (struct breaker_conf){.failures = conf->breaker_failures,
                                       .pause_us = conf->probe_ms * 1000ull,
                                       .max_pause_us = conf->probe_ms * 1000ull * MAX_PAUSES};
    p->grants = grants_new(conf->max_pools, &acts, p);
    p->last_read_us = clock_mono_us(); // no tenant is cached yet
    p->next_read_us = p->last_read_us + conf->directory_ms * 1000ull;
    TAILQ_INIT(&p->down);
    uv_timer_init(loop, &p->tick);
    p->tick.data = p;
    uv_timer_start(&p->tick, on_pools_tick, TICK_MS, TICK_MS);
    return p;
}

static struct tenant *find_tenant(struct tenant_pools *p, span name)
{
    struct tenant *t;

    HASH_FIND(hh, p->tenants, name.ptr, name.len, t);
    return t;
}

static struct tenant *find_or_add_tenant(struct tenant_pools *p, span name)
{
    struct tenant *t = find_tenant(p, name);

    if (t)
        return t;
    t = mem_new(struct tenant);
    t->pools = p;
    memcpy(t->row.name, name.ptr, name.len);
    TAILQ_INIT(&t->in_directory);
    tenant_entry_init(&t->entry, p->grants, t);
    HASH_ADD_KEYPTR(hh, p->tenants, t->row.name, name.len, t);
    return t;
}

static void set_down(struct tenant *t, bool down)
{
    if (down == t->down)
        return;
    t->down = down;
    if (down)
        TAILQ_INSERT_TAIL(&t->pools->down, t, downs);
    else
        TAILQ_REMOVE(&t->pools->down, t, downs);
}

static void close_breaker(struct tenant *t)
{
    t->breaker = (struct breaker){.n_opened = t->breaker.n_opened};
    set_down(t, false);
}

static void free_tenant(struct tenant *t)
{
    struct tenant_pools *p = t->pools;

    set_down(t, false);
    HASH_DEL(p->tenants, t);
    tenant_row_deinit(&t->row);
    free(t);
}

// Frees a tenant that is not in the directory.  Names come from clients and must not
// accumulate.
void tenant_free_if_unknown(struct tenant *t)
{
    if (!t->known && !t->finding && !t->probe && t->n_refs == 0 && grants_is_unused(&t->entry))
        free_tenant(t);
}

static void refuse_want(struct tenant_want *w, span name, int code, const char *why)
{
    struct fault f;

    fault_set(&f, code, "tenant " SPAN_FMT ": %s", SPAN_ARG(name),
              why && why[0] ? why : err_text(code));
    w->got(w, code, NULL, &f);
}

void tenant_get(struct tenant_pools *p, span name, struct tenant_want *w)
{
    unsigned ms = w->timeout_ms > 0 ? w->timeout_ms : p->conf.wait_ms;

    w->pools = p;
    w->entry = NULL;
    w->state = 0;
    w->asked_us = clock_mono_us();
    w->deadline_us = w->asked_us + ms * 1000ull;
    if (p->closing) {
        refuse_want(w, name, QE_STOPPING, NULL);
        return;
    }
    if (!tenant_is_name(name)) {
        refuse_want(w, (span){name.ptr, name.len < 64 ? name.len : 64}, QE_TENANT_UNKNOWN,
                    NULL);
        return;
    }
    struct tenant *t = find_or_add_tenant(p, name);
    if (t->known)
        get_pool(t, w);
    else
        query_directory(t, w);
}

static void query_directory(struct tenant *t, struct tenant_want *w)
{
    w->state = WANT_IN_DIRECTORY;
    w->entry = &t->entry;
    TAILQ_INSERT_TAIL(&t->in_directory, w, link);
    if (t->finding)
        return;
    t->finding = true;
    t->pools->n_finding++;
    t->find.found = on_pools_found;
    directory_find(t->pools->conf.control, &t->find, span_of(t->row.name));
}

// Serves all requests that wait for the directory.  Requests that arrive meanwhile use the new
// row.
static void on_pools_found(struct directory_find *d, int status, const struct tenant_row *row)
{
    struct tenant *t = container_of(d, struct tenant, find);
    struct tenant_pools *p = t->pools;
    struct tenant_want *w;

    t->finding = false;
    if (row) {
        tenant_row_deinit(&t->row);
        tenant_row_copy(&t->row, row);
        t->known = true;
        t->identity = ++p->last_identity;
        t->read_number = p->read_number;
    }
    while ((w = TAILQ_FIRST(&t->in_directory)) != NULL) {
        TAILQ_REMOVE(&t->in_directory, w, link);
        w->state = 0;
        if (t->known)
            get_pool(t, w);
        else
            refuse_want(w, span_of(t->row.name), status != 0 ? status : QE_TENANT_UNKNOWN,
                        status != 0 ? "the tenant directory is unavailable" : NULL);
    }
    tenant_free_if_unknown(t);
    p->n_finding--;
    pools_close_if_done(p);
}

static void get_pool(struct tenant *t, struct tenant_want *w)
{
    struct tenant_pools *p = t->pools;
    struct grant *grant = t->entry.grant;

    if (!breaker_is_closed(&t->breaker)) {
        p->stats.refused++;
        refuse_want(w, span_of(t->row.name), QE_TENANT_DOWN, t->fault.text);
        return;
    }
    // A pool in use is not checked: its users report failures.
    bool must_check = false;
    if (grant && grant->refs == 0 && grant->state == GRANT_READY) {
        struct tenant_pool *r = grant->owner;
        must_check = !tenant_db_is_up(r->db) ||
                     clock_mono_us() >=
                         tenant_db_last_reply_us(r->db) + p->conf.health_after_ms * 1000ull;
    }
    grants_get(p->grants, &t->entry, w, must_check);
}

void tenant_want_cancel(struct tenant_want *w)
{
    if (w->state == WANT_IN_DIRECTORY) {
        struct tenant *t = container_of(w->entry, struct tenant, entry);
        TAILQ_REMOVE(&t->in_directory, w, link);
        w->state = 0;
    } else {
        grants_cancel(w->pools->grants, w);
    }
}

// ---- actions ----

static void act_open(void *ctx, struct grant *grant)
{
    struct tenant_pools *p = ctx;
    struct tenant_pool *r = mem_new(struct tenant_pool);

    r->tenant = grant->entry->owner;
    r->tenant->n_refs++;
    r->grant = grant;
    r->identity = r->tenant->identity;
    r->added_us = r->tenant->row.added_us;
    grant->owner = r;
    r->db = tenant_db_open(p->loop, &p->db, &r->tenant->row, on_opened, r);
}

static void on_opened(struct tenant_db *l, int status)
{
    struct tenant_pool *r = tenant_db_owner(l);
    struct tenant *t = r->tenant;

    if (status == 0) {
        log_debug("tenant.opened", "tenant=%s", t->row.name);
        breaker_good(&t->breaker);
    } else {
        log_warn("tenant.open_failed", "tenant=%s error=\"%s\"", t->row.name,
                 tenant_db_fault(l)->text);
        tenant_trip(t, tenant_db_fault(l), true);
    }
    // Report an unreadable credential as such; any other error means that the database is down.
    grants_opened(t->pools->grants, r->grant,
                  status == 0 || status == QE_CONF ? status : QE_TENANT_DOWN, clock_mono_us());
}

static void act_check(void *ctx, struct grant *grant)
{
    struct tenant_pool *r = grant->owner;

    (void)ctx;
    tenant_db_check(r->db, on_pools_checked);
}

static void on_pools_checked(struct tenant_db *l, int status)
{
    struct tenant_pool *r = tenant_db_owner(l);

    if (status != 0)
        log_warn("tenant.unhealthy", "tenant=%s error=\"%s\"", r->tenant->row.name,
                 tenant_db_fault(l)->text);
    grants_checked(r->tenant->pools->grants, r->grant, status == 0, clock_mono_us());
}

static void act_finish(void *ctx, struct tenant_want *w, int status, struct grant *grant)
{
    struct tenant_pools *p = ctx;
    const struct tenant *t = w->entry->owner;

    if (status == 0) {
        histogram_add(w->missed ? &p->stats.miss_us : &p->stats.hit_us,
                      clock_mono_us() - w->asked_us);
        struct tenant_ref *ref = mem_new(struct tenant_ref);
        ref->pool = grant->owner;
        w->got(w, 0, ref, NULL);
        return;
    }
    p->stats.timeouts += status == QE_BUSY;
    if (status == QE_BUSY && t->entry.grant)
        // It has a pool, which is being opened or checked.
        refuse_want(w, span_of(t->row.name), QE_TENANT_DOWN, "the database does not answer");
    else
        refuse_want(w, span_of(t->row.name), status,
                    status == QE_BUSY ? "timed out waiting for a connection pool; try again"
                                      : t->fault.text);
}

static void act_close(void *ctx, struct grant *grant)
{
    struct tenant_pool *r = grant->owner;

    (void)ctx;
    log_debug("tenant.closed", "tenant=%s", r->tenant->row.name);
    tenant_db_close(r->db, on_db_closed, r);
}

static void on_db_closed(void *ctx)
{
    struct tenant_pool *r = ctx;
    struct tenant_pools *p = r->tenant->pools;

    grants_closed(p->grants, r->grant);
    r->tenant->n_refs--;
    tenant_free_if_unknown(r->tenant);
    free(r);
    pools_close_if_done(p);
}

// ---- users of a pool ----

void tenant_put(struct tenant_ref *r)
{
    struct tenant_pool *pool = r->pool;

    if (!r->failed)
        breaker_good(&pool->tenant->breaker);
    free(r);
    grants_put(pool->tenant->pools->grants, pool->grant, clock_mono_us());
}

void tenant_ref_failed(struct tenant_ref *r, int status)
{
    struct fault why;

    if (status != QE_PG_AWAY && status != QE_PG_GONE)
        return;
    r->failed = true;
    const char *dial = tenant_db_error(r->pool->db);
    fault_set(&why, status, "%s", dial[0] ? dial : err_text(status));
    tenant_trip(r->pool->tenant, &why, status == QE_PG_AWAY);
}

void tenant_trip(struct tenant *t, const struct fault *why, bool hard)
{
    struct tenant_pools *p = t->pools;

    t->fault = *why;
    if (why->code == QE_CONF || !breaker_bad(&t->breaker, &p->breaker, hard, clock_mono_us()))
        return;
    p->stats.breakers_opened++;
    set_down(t, true);
    log_error("tenant.down", "tenant=%s error=\"%s\"", t->row.name, why->text);
    // The open pool is useless, so waiting requests fail now.  A pool that is being opened
    // fails by itself.
    if (t->entry.grant && t->entry.grant->state != GRANT_OPENING) {
        grants_refuse(p->grants, &t->entry, QE_TENANT_DOWN);
        grants_retire(p->grants, &t->entry, GRANTS_UNHEALTHY);
    }
}

void tenant_recovered(struct tenant *t) { set_down(t, false); }

enum tenant_kind tenant_ref_kind(const struct tenant_ref *r)
{
    return tenant_db_kind(r->pool->db);
}
span tenant_ref_name(const struct tenant_ref *r) { return span_of(r->pool->tenant->row.name); }
int64_t tenant_ref_added_us(const struct tenant_ref *r) { return r->pool->added_us; }
uint64_t tenant_ref_identity(const struct tenant_ref *r) { return r->pool->identity; }
struct pg_pool *tenant_ref_pg(const struct tenant_ref *r) { return tenant_db_pg(r->pool->db); }
struct my_pool *tenant_ref_my(const struct tenant_ref *r) { return tenant_db_my(r->pool->db); }

uint64_t tenant_identity(struct tenant_pools *p, span name)
{
    const struct tenant *t = find_tenant(p, name);

    return t && t->known ? t->identity : 0;
}

// ---- changes ----

// The cached row is outdated: retire the pool, send waiting requests to the directory, and
// close a breaker that opened for the old row.  Frees an unused tenant.
static void refresh_tenant(struct tenant *t)
{
    struct tenant_pools *p = t->pools;
    struct tenant_want *w;

    t->known = false;
    close_breaker(t);
    while ((w = TAILQ_FIRST(&t->entry.wants)) != NULL) {
        grants_cancel(p->grants, w);
        query_directory(t, w);
    }
    grants_retire(p->grants, &t->entry, GRANTS_OUTDATED);
    tenant_free_if_unknown(t);
}

void tenant_changed(struct tenant_pools *p, span name)
{
    struct tenant *t = find_tenant(p, name);

    if (t)
        refresh_tenant(t);
}

static void on_pools_changed(struct directory_changes *d, const struct tenant_row *row,
                             bool gone)
{
    struct tenant_pools *p = container_of(d, struct tenant_pools, changes);
    struct tenant *t = find_tenant(p, span_of(row->name));

    if (!t || !t->known || p->closing)
        return;
    t->read_number = p->read_number;
    if (gone || !tenant_row_eq(row, &t->row))
        refresh_tenant(t);
}

// Refreshes tenants whose rows have disappeared.
static void refresh_unseen_tenants(struct tenant_pools *p)
{
    struct tenant *t, *next;

    HASH_ITER (hh, p->tenants, t, next)
        if (t->known && t->read_number != p->read_number)
            refresh_tenant(t);
}

static void on_changes_read(struct directory_changes *d, int status)
{
    struct tenant_pools *p = container_of(d, struct tenant_pools, changes);

    p->reading = false;
    if (status != 0) {
        log_debug("tenant.directory_failed", "error=%s", err_name(status));
    } else {
        if (p->reading_all && !p->closing)
            refresh_unseen_tenants(p);
        p->last_read_us = p->read_us;
    }
    p->next_read_us = clock_mono_us() + p->conf.directory_ms * 1000ull;
    pools_close_if_done(p);
}

static void on_pools_tick(uv_timer_t *tick)
{
    struct tenant_pools *p = tick->data;
    uint64_t now = clock_mono_us();

    grants_tick(p->grants, now, p->conf.idle_ms * 1000ull);
    tenant_probe_due(p, now);
    if (!p->reading && now >= p->next_read_us)
        read_changes(p, now);
}

static void read_changes(struct tenant_pools *p, uint64_t now)
{
    p->reading = true;
    p->read_number++;
    p->read_us = now;
    p->reading_all = now > p->last_read_us + p->conf.directory_window_s * 500000ull ||
                     p->read_number % ALL_EVERY == 0;
    p->changes.changed = on_pools_changed;
    p->changes.done = on_changes_read;
    directory_changes(p->conf.control, &p->changes,
                      p->reading_all ? 0 : p->conf.directory_window_s);
}

// ---- close ----

void tenant_pools_close(struct tenant_pools *p, void (*closed)(void *ctx), void *ctx)
{
    p->closing = true;
    p->closed = closed;
    p->closed_ctx = ctx;
    uv_timer_stop(&p->tick);
    grants_stop(p->grants);
    pools_close_if_done(p);
}

void pools_close_if_done(struct tenant_pools *p)
{
    if (!p->closing || p->reading || p->n_finding > 0 || p->n_probes > 0 ||
        !grants_is_empty(p->grants) || uv_is_closing((uv_handle_t *)&p->tick))
        return;
    uv_close((uv_handle_t *)&p->tick, on_pools_tick_closed);
}

static void on_pools_tick_closed(uv_handle_t *tick)
{
    struct tenant_pools *p = tick->data;
    struct tenant *t, *next;

    HASH_ITER (hh, p->tenants, t, next)
        free_tenant(t);
    grants_free(p->grants);
    void (*closed)(void *) = p->closed;
    void *ctx = p->closed_ctx;
    free(p);
    closed(ctx);
}
