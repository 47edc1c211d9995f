// processor.c: reads owners, claims, renews and releases partitions, reconnects.
#include <stdlib.h>
#include <string.h>

#include "balance.h"
#include "base/id.h"
#include "base/mem.h"
#include "processor_int.h"

enum {
    SLACK_MS = 100,        // of a read: it may be late
    MIN_RENEWAL_MS = 1000, // a shorter timeout would fail on a busy server
};

static void processor_look(struct queen_processor *p);
static void on_listed(struct queen_response *r, const struct queen_error *err, void *ctx);
static struct assignment **meet_assignments(struct queen_processor *p,
                                            const struct owner_list *list);
static void mind_records(struct queen_processor *p, const struct owner_list *list,
                         struct assignment **assignments);
static void claim_and_ask(struct queen_processor *p, const struct owner_list *list,
                          struct assignment **assignments);
static void on_claimed(struct queen_response *r, const struct queen_error *err, void *ctx);
static void processor_renew(struct queen_processor *p);
static void on_processor_renewed(struct queen_response *r, const struct queen_error *err,
                                 void *ctx);

void processor_report(struct queen_processor *p, const struct queen_error *err)
{
    if (p->conf.on_error)
        p->conf.on_error(err, p->conf.ctx);
}

void processor_failed(struct queen_processor *p, const struct queen_error *err)
{
    if (p->stopping && err->code == QUEEN_E_CLOSED)
        return;
    processor_report(p, err);
    reconnect_error(&p->reconnect, p->now_ms());
}

static void post_within(struct queen_processor *p, const char *action, struct buf *body,
                        unsigned timeout_ms, queen_response_cb done, void *ctx)
{
    struct buf path = {0};

    buf_put(&path, span_of(p->path));
    buf_putc(&path, '/');
    buf_put(&path, span_of(action));
    buf_putc(&path, '\0');
    p->n_calls++;
    call_begin(call_new(p->client,
                        &(struct queen_request){.method = "POST",
                                                .path = path.ptr,
                                                .body = body->ptr,
                                                .body_len = body->len,
                                                .timeout_ms = timeout_ms},
                        done, ctx));
    buf_free(&path);
    buf_free(body);
}

void processor_post(struct queen_processor *p, const char *action, struct buf *body,
                    queen_response_cb done, void *ctx)
{
    post_within(p, action, body, 0, done, ctx);
}

void processor_tick(struct queen_processor *p)
{
    uint64_t now = p->now_ms();

    for (unsigned i = 0; i < p->n_assignments; i++)
        assignment_tick(p->assignments[i], now);
    if (p->stopping)
        return;
    reconnect_tick(&p->reconnect, now);
    if (p->reconnect.state == RECONNECT_HEALTHY && now >= p->look_due_ms && !p->looking &&
        !p->claiming)
        processor_look(p);
    if (now >= p->renew_due_ms)
        processor_renew(p);
}

// ---- reading owners ----

// One read of the owners; a rebuild invalidates the one in flight.
struct look {
    struct queen_processor *processor;
    unsigned rebuild;
};

static void processor_look(struct queen_processor *p)
{
    struct look *l = mem_new(struct look);

    *l = (struct look){p, p->n_rebuilds};
    p->looking = true;
    p->look_due_ms = p->now_ms() + p->conf.look_ms;
    p->n_calls++;
    call_begin(call_new(p->client, &(struct queen_request){.path = p->path}, on_listed, l));
}

static void on_listed(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct look *l = ctx;
    struct queen_processor *p = l->processor;
    struct queen_error why = *err;
    struct owner_list list;
    struct arena a;
    bool is_void = l->rebuild != p->n_rebuilds;

    free(l);
    p->n_calls--;
    p->looking = p->looking && is_void; // the valid one is still in flight
    arena_init(&a);
    bool ok = r && why.code == 0 && owners_read(r, &a, &list, &why) == 0;
    if (is_void && !p->stopping) {
        // its contents are outdated
    } else if (p->stopping) {
        processor_stop_if_done(p);
    } else if (ok) {
        reconnect_done(&p->reconnect, true, p->now_ms());
        struct assignment **assignments = meet_assignments(p, &list);
        mind_records(p, &list, assignments);
        claim_and_ask(p, &list, assignments);
        free(assignments);
    } else {
        processor_failed(p, &why);
        reconnect_done(&p->reconnect, false, p->now_ms());
    }
    arena_deinit(&a);
    queen_response_free(r);
}

static struct assignment *find_assignment(struct queen_processor *p, const char *name)
{
    for (unsigned i = 0; i < p->n_assignments; i++)
        if (strcmp(p->assignments[i]->name, name) == 0)
            return p->assignments[i];
    return NULL;
}

static struct assignment *add_assignment(struct queen_processor *p, const char *name)
{
    struct assignment *s = mem_new(struct assignment);

    s->processor = p;
    s->name = mem_strndup(name, strlen(name));
    p->assignments =
        mem_realloc(p->assignments, (p->n_assignments + 1) * sizeof *p->assignments);
    p->assignments[p->n_assignments++] = s;
    return s;
}

// The assignment of each record; free() it. A queue may be deleted and created again, with any
// number of partitions. As long as it is the same one, assignments and records are in the same
// order.
static struct assignment **meet_assignments(struct queen_processor *p,
                                            const struct owner_list *list)
{
    struct assignment **assignments = mem_new_array(struct assignment *, list->n);

    for (unsigned i = 0; i < list->n; i++) {
        const char *name = list->records[i].partition;
        bool same = i < p->n_assignments && strcmp(p->assignments[i]->name, name) == 0;
        assignments[i] = same ? p->assignments[i] : find_assignment(p, name);
        if (!assignments[i])
            assignments[i] = add_assignment(p, name);
    }
    return assignments;
}

static bool is_mine(const struct queen_processor *p, const struct owner_record *r)
{
    return r->owner && strcmp(r->owner, p->owner) == 0;
}

static bool was_made_again(const struct assignment *s, const struct owner_record *r)
{
    return s->partition_id && r->partition_id && strcmp(s->partition_id, r->partition_id) != 0;
}

// Compares the records with the partitions that we own.
static void mind_records(struct queen_processor *p, const struct owner_list *list,
                         struct assignment **assignments)
{
    bool starving = false;

    for (unsigned i = 0; i < p->n_assignments; i++)
        p->assignments[i]->is_listed = false;
    for (unsigned i = 0; i < list->n; i++) {
        struct assignment *s = assignments[i];
        const struct owner_record *r = &list->records[i];
        s->is_listed = true;
        if (!assignment_is_open(s))
            continue;
        // A record older than our claim is outdated; one of a later epoch means that we lost
        // it.
        if (was_made_again(s, r) || r->epoch > s->epoch ||
            (r->epoch == s->epoch && !is_mine(p, r)))
            assignment_close(s, QUEEN_CLOSED_LOST);
        else if (r->epoch == s->epoch && r->wanted_by)
            assignment_close(s, QUEEN_CLOSED_GIVEN);
        starving = starving || (r->lag > 0 && s->state == ASSIGN_POPPING);
    }
    for (unsigned i = 0; i < p->n_assignments; i++)
        if (!p->assignments[i]->is_listed)
            assignment_close(p->assignments[i], QUEEN_CLOSED_LOST);
    reconnect_look(&p->reconnect, starving, p->now_ms());
}

// A claim or renewal in flight. The claims are valid from the time it was sent. After a rebuild
// an earlier one may still be in flight, so the time is not the processor's.
struct request_at {
    struct queen_processor *processor;
    uint64_t sent_ms;
};

static void add_claim(const struct assignment *s, struct buf *body, int64_t epoch, unsigned *n)
{
    if ((*n)++ == 0)
        owners_begin(body, s->processor->owner);
    owners_add(body, s->name, epoch, NULL, false);
}

static void send_claims(struct queen_processor *p, struct buf *body, unsigned n, bool steal)
{
    if (n == 0) {
        buf_free(body);
        return;
    }
    owners_end(body, p->conf.expiry_s, steal, p->conf.checkpoints != QUEEN_CHECKPOINT_BATCH);
    struct request_at *claim = mem_new(struct request_at);
    *claim = (struct request_at){p, p->now_ms()};
    p->claiming = true;
    processor_post(p, "claim", body, on_claimed, claim);
}

static void on_asked(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct queen_processor *p = ctx;

    p->n_calls--;
    if (err->code != 0)
        processor_failed(p, err);
    queen_response_free(r);
    processor_stop_if_done(p);
}

// Requests one partition from its owner.
static void processor_request(struct queen_processor *p, const struct assignment *s,
                              int64_t epoch)
{
    struct buf body = {0};

    owners_begin(&body, p->owner);
    owners_add(&body, s->name, epoch, NULL, false);
    owners_end(&body, 0, false, false);
    processor_post(p, "ask", &body, on_asked, p);
}

static void look_by(struct queen_processor *p, uint64_t due_ms)
{
    if (due_ms < p->look_due_ms)
        p->look_due_ms = due_ms;
}

static void claim_and_ask(struct queen_processor *p, const struct owner_list *list,
                          struct assignment **assignments)
{
    struct balance_record *records = mem_new_array(struct balance_record, list->n);
    struct balance_plan plan = {.claim = mem_new_array(unsigned, list->n)};
    struct buf body = {0}, stolen = {0};
    unsigned n = 0, n_stolen = 0;
    uint64_t now = p->now_ms();
    int64_t patience_ms = (int64_t)p->conf.look_ms + SLACK_MS;

    for (unsigned i = 0; i < list->n; i++) {
        const struct owner_record *r = &list->records[i];
        struct assignment *s = assignments[i];
        // By then the processor it was reserved for has read the owners, or is dead.
        if (r->free_ms >= 0 && r->free_ms < patience_ms)
            look_by(p, now + (uint64_t)(patience_ms - r->free_ms));
        records[i].owner = r->owner;
        records[i].expired = r->expired;
        records[i].wanted_by = r->wanted_by;
        if (!r->wanted_by || strcmp(r->wanted_by, p->owner) != 0)
            s->asked_ms = 0;
        else if (s->asked_ms == 0)
            s->asked_ms = now;
        records[i].left_over = r->free_ms >= patience_ms;
        // Claim again a partition that the record assigns to us but that is closed here (a
        // rebuild), unless we have just released it. Steal a partition if its owner renews but
        // has not released it within one expiry of being asked.
        if (is_mine(p, r) && !r->expired && s->state == ASSIGN_CLOSED && p->n_releasing == 0)
            add_claim(s, &body, r->epoch, &n);
        else if (s->asked_ms > 0 && now - s->asked_ms > p->conf.expiry_s * 1000ull &&
                 n_stolen == 0)
            add_claim(s, &stolen, r->epoch, &n_stolen);
    }
    balance_plan(records, list->n, p->owner, p->conf.greedy,
                 (unsigned)id_random_u64() % (list->n + 1), &plan);
    for (unsigned k = 0; k < plan.n_claim; k++)
        if (assignments[plan.claim[k]]->state == ASSIGN_CLOSED)
            add_claim(assignments[plan.claim[k]], &body, list->records[plan.claim[k]].epoch,
                      &n);
    if (plan.ask >= 0)
        processor_request(p, assignments[plan.ask], list->records[plan.ask].epoch);
    send_claims(p, n > 0 ? &body : &stolen, n > 0 ? n : n_stolen, n == 0);
    buf_free(&body);
    buf_free(&stolen);
    free(records);
    free(plan.claim);
}

static void on_claimed(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct request_at *claim = ctx;
    struct queen_processor *p = claim->processor;
    struct owner_result *results;
    struct queen_error why = *err;
    struct arena a;
    unsigned n;

    p->n_calls--;
    p->claiming = false;
    arena_init(&a);
    if (r && why.code == 0 && owners_read_results(r, &a, &results, &n, &why) == 0) {
        uint64_t until = claim->sent_ms + p->conf.expiry_s * 1000ull;
        for (unsigned i = 0; i < n; i++) {
            struct assignment *s = find_assignment(p, results[i].partition);
            if (results[i].error)
                p->look_due_ms = 0; // another processor was faster; others may be free
            else if (s && s->state == ASSIGN_CLOSED)
                assignment_open(s, &results[i], until);
        }
        if (p->stopping)
            for (unsigned i = 0; i < p->n_assignments; i++)
                assignment_close(p->assignments[i], QUEEN_CLOSED_STOPPED);
    } else {
        processor_failed(p, &why);
    }
    free(claim);
    arena_deinit(&a);
    queen_response_free(r);
    processor_stop_if_done(p);
}

// ---- renewing ----

static void on_extended(const struct queen_error *err, void *ctx)
{
    struct queen_processor *p = ctx;

    // A lost lease is noticed when the batch is acknowledged.
    (void)err;
    p->n_calls--;
    processor_stop_if_done(p);
}

// A renewal that gets no answer must leave time for another before the claims expire.
static unsigned renewal_timeout_ms(const struct queen_processor *p)
{
    uint64_t third_ms = p->conf.expiry_s * 1000ull / 3;

    if (third_ms >= p->client->conf.request_timeout_ms)
        return p->client->conf.request_timeout_ms;
    return third_ms > MIN_RENEWAL_MS ? (unsigned)third_ms : MIN_RENEWAL_MS;
}

static void processor_renew(struct queen_processor *p)
{
    struct buf body = {0};
    unsigned n = 0;

    if (p->renewing) // if it fails, the next one begins at once
        return;
    p->renew_due_ms = p->now_ms() + p->conf.expiry_s * 1000ull / 3;
    for (unsigned i = 0; i < p->n_assignments; i++) {
        struct assignment *s = p->assignments[i];
        s->renewing = s->state != ASSIGN_CLOSED && !(s->closing && s->why == QUEEN_CLOSED_LOST);
        if (!s->renewing)
            continue;
        add_claim(s, &body, s->epoch, &n);
        if (s->job) { // a handler may take longer than the queue's leases
            p->n_calls++;
            queen_extend_start(p->client, s->job->batch->lease_id, p->conf.expiry_s,
                               on_extended, p);
        }
    }
    if (n == 0)
        return;
    struct request_at *renewal = mem_new(struct request_at);
    *renewal = (struct request_at){p, p->now_ms()};
    owners_end(&body, p->conf.expiry_s, false, false);
    p->renewing = true;
    post_within(p, "renew", &body, renewal_timeout_ms(p), on_processor_renewed, renewal);
}

static bool is_among(const char *name, const char **names, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

static void on_processor_renewed(struct queen_response *r, const struct queen_error *err,
                                 void *ctx)
{
    struct request_at *renewal = ctx;
    struct queen_processor *p = renewal->processor;
    struct queen_error why = *err;
    const char **lost;
    struct arena a;
    unsigned n;

    p->n_calls--;
    p->renewing = false;
    arena_init(&a);
    if (r && why.code == 0 && owners_read_lost(r, &a, &lost, &n, &why) == 0) {
        for (unsigned i = 0; i < p->n_assignments; i++) {
            struct assignment *s = p->assignments[i];
            if (!s->renewing) // closed since then, and perhaps opened again
                continue;
            if (is_among(s->name, lost, n))
                assignment_close(s, QUEEN_CLOSED_LOST);
            else // counted from the request, not from its response
                s->valid_until_ms = renewal->sent_ms + p->conf.expiry_s * 1000ull;
        }
    } else {
        processor_failed(p, &why);
    }
    free(renewal);
    arena_deinit(&a);
    queen_response_free(r);
    processor_stop_if_done(p);
}

// ---- releasing ----

static void on_released(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct queen_processor *p = ctx;

    p->n_calls--;
    if (err->code != 0)
        processor_report(p, err); // the claims expire instead
    queen_response_free(r);
    p->n_releasing--;
    processor_stop_if_done(p);
}

void processor_release(struct queen_processor *p, struct assignment *only)
{
    struct buf body = {0};
    unsigned n = 0;

    for (unsigned i = 0; i < p->n_assignments; i++) {
        const struct assignment *s = p->assignments[i];
        if (only ? s == only : s->epoch > 0 && s->why != QUEEN_CLOSED_LOST)
            add_claim(s, &body, s->epoch, &n);
    }
    if (n == 0)
        return;
    owners_end(&body, 0, false, false);
    p->n_releasing++;
    processor_post(p, "release", &body, on_released, p);
}

// ---- reconnecting: a rebuild first tears down, then subscribes ----

static void tear_down(void *ctx)
{
    struct queen_processor *p = ctx;

    p->n_rebuilds++;
    for (unsigned i = 0; i < p->n_assignments; i++) {
        struct assignment *s = p->assignments[i];
        assignment_close(s, QUEEN_CLOSED_REBUILT);
        if (s->pop) // close at once: the connection may be broken
            call_cancel(s->pop);
    }
    client_drop_conns(p->client);
}

// The next list shows whether it works; partitions that are still ours are claimed again.
static void subscribe(void *ctx)
{
    struct queen_processor *p = ctx;

    processor_look(p);
}

void processor_heal_init(struct queen_processor *p)
{
    reconnect_init(&p->reconnect, &reconnect_defaults,
                   (struct reconnect_ops){tear_down, subscribe, p}, p->now_ms());
}
