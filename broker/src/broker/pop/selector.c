// Pops by namespace and task: they watch many queues, the most urgent first.
//
// All selectors of a house live at broker 0, which follows the queues they match even where it
// is not the home; the other brokers report lanes that become ready (notify.c).  The list of
// queues is read again for every pop, and about once a second while pops are parked.
#include "broker/broker_int.h"

#include <stdlib.h>

#include "auth/rules.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

enum { REFRESH_US = 1000 * 1000 };

// A selector follows a group: it may take what is ready there.
struct follow {
    LIST_ENTRY(follow) of_group;
    struct selector *selector;
    struct group *group;
    unsigned rank; // by priority of the queue; lower first
    bool matched;  // by the latest list
};

struct selector {
    LIST_ENTRY(selector) link;
    struct broker *broker;
    char *namespace_, *task, *group; // namespace_ and task: NULL is any
    struct access_rules *rules;      // it sees only queues that they permit; NULL: all
    struct follow **follows;         // by rank
    unsigned n_follows, cap_follows;
    struct pop_list seats;
    struct pop_list asking,
        asked; // want a fresh list of queues; wait for the one that is coming
    unsigned n_discovering;
    bool flying;
    struct due refresh;
    unsigned n_pops; // that name it
    uint64_t used_us;
};

static struct selector *selector_find(struct broker *b, const struct pop_op *pop);
static void selector_query(struct selector *s);
static void on_queues(struct pg_call *pg, int status, const struct pg_reply *reply);
static void follow_queues(struct selector *s, span queue, unsigned rank);
static void on_selector_read(struct pg_call *pg, int status, const struct pg_reply *reply);
static void refreshed(struct selector *s, int status);
static void on_refresh(struct due *d);

static bool is_same_selector(const char *kept, span given)
{
    return kept ? given.ptr && span_eq(span_of(kept), given) : !given.ptr;
}

static bool same_rules(const struct access_rules *a, const struct access_rules *b)
{
    if (a == b || !a || !b)
        return a == b;
    return span_eq(access_rules_text(a), access_rules_text(b));
}

static char *selector_keep(span s) { return s.ptr ? mem_strndup(s.ptr, s.len) : NULL; }

static struct selector *selector_find(struct broker *b, const struct pop_op *pop)
{
    struct selector *s;

    LIST_FOREACH (s, &b->selectors, link)
        if (is_same_selector(s->namespace_, pop->namespace_) &&
            is_same_selector(s->task, pop->task) && is_same_selector(s->group, pop->group) &&
            same_rules(s->rules, pop->rules)) {
            LIST_REMOVE(s, link); // used last, found first
            LIST_INSERT_HEAD(&b->selectors, s, link);
            return s;
        }
    s = mem_new(struct selector);
    s->broker = b;
    s->namespace_ = selector_keep(pop->namespace_);
    s->task = selector_keep(pop->task);
    s->group = selector_keep(pop->group);
    s->rules = access_rules_ref(pop->rules);
    TAILQ_INIT(&s->seats);
    TAILQ_INIT(&s->asking);
    TAILQ_INIT(&s->asked);
    LIST_INSERT_HEAD(&b->selectors, s, link);
    // Never decremented: from now on broker 0 is notified of everything, so that its state
    // stays correct.
    atomic_fetch_add_explicit(&b->house->n_selectors, 1, memory_order_relaxed);
    return s;
}

struct selector *selector_bind(struct broker *b, struct pop_op *pop)
{
    struct selector *s = selector_find(b, pop);

    s->n_pops += pop->by == NULL;
    pop->by = s;
    return s;
}

struct pop_list *selector_seats(struct selector *s) { return &s->seats; }

bool selector_take(struct selector *s, struct pop_op *pop)
{
    struct consumer **last = &pop->targets;

    pop->n_targets = 0;
    for (unsigned i = 0; i < s->n_follows && pop->n_targets < pop->partitions; i++)
        last = pop_take_ready(s->broker, pop, s->follows[i]->group, last);
    return pop->n_targets > 0;
}

void selector_ask(struct selector *s, struct pop_op *pop)
{
    TAILQ_INSERT_TAIL(&s->asking, pop, seat);
    if (!s->flying)
        selector_query(s);
}

void selector_refresh(struct selector *s)
{
    if (!TAILQ_EMPTY(&s->seats) && !due_is_set(&s->refresh))
        due_set(&s->broker->due, &s->refresh, clock_mono_us() + REFRESH_US, on_refresh);
}

void selectors_serve(struct broker *b, struct group *g)
{
    struct follow *f;
    struct pop_op *pop;

    if (b->pops_stopped)
        return;
    LIST_FOREACH (f, &g->selectors, of_group)
        while (g->n_ready > 0 && (pop = TAILQ_FIRST(&f->selector->seats))) {
            if (!selector_take(f->selector, pop))
                break;
            pop_handle(b, pop, POP_ON_TAKE, 0);
        }
}

// ---- the list of queues ----

static void selector_query(struct selector *s)
{
    struct call *c = call_new(s->broker, &pg_stmt_select_queues, s);

    TAILQ_CONCAT(&s->asked, &s->asking, seat);
    s->flying = true;
    if (s->namespace_)
        pg_param_text(&c->params, span_of(s->namespace_));
    else
        pg_param_null(&c->params, PG_TEXT);
    if (s->task)
        pg_param_text(&c->params, span_of(s->task));
    else
        pg_param_null(&c->params, PG_TEXT);
    call_send(c, on_queues);
}

static int by_rank(const void *a, const void *b)
{
    const struct follow *const *x = a, *const *y = b;

    return (*x)->rank < (*y)->rank ? -1 : (*x)->rank > (*y)->rank;
}

static void on_queues(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct selector *s = c->what;

    if (status == 0) {
        for (unsigned i = 0; i < s->n_follows; i++)
            s->follows[i]->matched = false;
        for (unsigned row = 0; row < pg_reply_rows(reply); row++) {
            span queue = pg_reply_bytes(reply, row, SELECT_QUEUES_COL_NAME);
            if (!s->rules || access_rules_permit(s->rules, MAY_POP, queue, span_of(s->group)))
                follow_queues(s, queue, row);
        }
        unsigned kept = 0;
        for (unsigned i = 0; i < s->n_follows; i++) {
            struct follow *f = s->follows[i];
            if (f->matched) {
                s->follows[kept++] = f;
            } else {
                LIST_REMOVE(f, of_group);
                free(f);
            }
        }
        s->n_follows = kept;
        if (kept > 0)
            qsort(s->follows, kept, sizeof *s->follows, by_rank);
    }
    call_free(c);
    if (s->n_discovering == 0)
        refreshed(s, status);
}

static void follow_queues(struct selector *s, span queue, unsigned rank)
{
    struct broker *b = s->broker;
    struct group *g = group_get(b, queue_get(b, queue), span_of(s->group));
    struct follow *f;

    LIST_FOREACH (f, &g->selectors, of_group)
        if (f->selector == s)
            break;
    if (!f) {
        f = mem_new(struct follow);
        f->selector = s;
        f->group = g;
        LIST_INSERT_HEAD(&g->selectors, f, of_group);
        if (s->n_follows == s->cap_follows) {
            s->cap_follows = s->cap_follows > 0 ? s->cap_follows * 2 : 8;
            s->follows = mem_realloc(s->follows, s->cap_follows * sizeof *s->follows);
        }
        s->follows[s->n_follows++] = f;
    }
    f->rank = rank;
    f->matched = true;
    if (g->state != GROUP_UNKNOWN)
        return;

    // First contact of the group with the queue, on behalf of the first pop.
    const struct pop_op *pop = TAILQ_FIRST(&s->asked);
    group_handle(g, GROUP_ASKED);
    s->n_discovering++;
    struct call *c = group_discover_call(
        b, g, s,
        &(struct discover_ask){.namespace_ = span_of(s->namespace_),
                               .task = span_of(s->task),
                               .sub_mode = pop ? pop->sub_mode : SPAN_NONE,
                               .sub_from = pop ? pop->sub_from : SPAN_NONE});
    c->group = g;
    call_send(c, on_selector_read);
}

static void on_selector_read(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct selector *s = c->what;
    struct group *g = c->group;

    if (status != 0)
        group_handle(g, GROUP_FAILED);
    if (status == 0 && !group_learn(s->broker, g, reply, true))
        status = call_unexpected(c, "a partition without a number, id or name");
    if (status != 0 && status != QE_PG_DATA) // that is the client's mistake
        call_failed(c, status, reply);
    if (status != 0)
        log_debug("selector.discover_failed", "status=%s detail=\"%s\"", err_name(status),
                  pg_reply_message(reply));
    group_discovered(s->broker, g); // pops of this queue alone may have waited too
    call_free(c);
    if (--s->n_discovering == 0)
        refreshed(s, status);
}

static void refreshed(struct selector *s, int status)
{
    struct broker *b = s->broker;
    struct pop_list pops = TAILQ_HEAD_INITIALIZER(pops);
    struct pop_op *pop;

    s->flying = false;
    TAILQ_CONCAT(&pops, &s->asked, seat);
    while ((pop = TAILQ_FIRST(&pops))) {
        TAILQ_REMOVE(&pops, pop, seat);
        if (status == 0 || (pop->wait && status != QE_PG_DATA)) {
            pop_handle(b, pop, POP_ON_DISCOVERED, 0);
        } else {
            int code = status == QE_PG_DATA ? QE_BAD_PARAM : status;
            fault_set(&pop->op.why, code, "%s",
                      code == QE_BAD_PARAM ? "subscriptionFrom is not a timestamp"
                                           : err_text(code));
            pop_handle(b, pop, POP_ON_FAILED, code);
        }
    }
    if (!TAILQ_EMPTY(&s->asking))
        selector_query(s);
    broker_wake(b);
}

static void on_refresh(struct due *d)
{
    struct selector *s = container_of(d, struct selector, refresh);

    if (TAILQ_EMPTY(&s->seats) || s->broker->closing)
        return;
    if (!s->flying)
        selector_query(s);
    due_set(&s->broker->due, &s->refresh, clock_mono_us() + REFRESH_US, on_refresh);
}

bool selector_is_asking(const struct pop_op *pop)
{
    for (unsigned i = 0; i < pop->by->n_follows; i++)
        if (pop->by->follows[i]->group->n_asking > 0)
            return true;
    return false;
}

void selectors_settle(struct broker *b, struct group *g)
{
    struct follow *f;

    LIST_FOREACH (f, &g->selectors, of_group)
        pops_handle(b, &f->selector->seats, POP_ON_ANSWERED);
}

void selectors_page_read(struct broker *b, struct group *g)
{
    struct follow *f;

    LIST_FOREACH (f, &g->selectors, of_group)
        pops_handle(b, &f->selector->seats, POP_ON_PAGE);
}

void selectors_place_again(struct broker *b)
{
    struct pop_list unplaced = TAILQ_HEAD_INITIALIZER(unplaced);
    struct selector *s;

    LIST_FOREACH (s, &b->selectors, link)
        pops_unseat(b, &s->seats, POP_ON_FORGET, &unplaced);
    pops_place(b, &unplaced);
}

void selectors_drain(struct broker *b)
{
    struct selector *s;

    LIST_FOREACH (s, &b->selectors, link)
        pops_handle(b, &s->seats, POP_ON_DRAIN);
}

void selector_end_pop(struct pop_op *pop)
{
    pop->by->n_pops--;
    pop->by->used_us = clock_mono_us();
    pop->by = NULL;
}

static void selector_free(struct broker *b, struct selector *s)
{
    LIST_REMOVE(s, link);
    due_cancel(&b->due, &s->refresh); // consumers will still move in the heap
    for (unsigned i = 0; i < s->n_follows; i++) {
        LIST_REMOVE(s->follows[i], of_group);
        free(s->follows[i]);
    }
    free(s->follows);
    access_rules_unref(s->rules);
    free(s->namespace_);
    free(s->task);
    free(s->group);
    free(s);
}

void selectors_forget(struct broker *b, uint64_t before_us)
{
    struct selector *s, *next;

    for (s = LIST_FIRST(&b->selectors); s; s = next) {
        next = LIST_NEXT(s, link);
        if (s->n_pops == 0 && s->used_us < before_us && !s->flying && s->n_discovering == 0)
            selector_free(b, s);
    }
}

void selectors_free(struct broker *b)
{
    while (!LIST_EMPTY(&b->selectors))
        selector_free(b, LIST_FIRST(&b->selectors));
}
