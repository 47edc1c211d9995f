// pops.h: waiting pops, consumer groups and their claims, as the rest of the broker uses them.
// The files are in pop/, work/ and queue/unused.c.  Only broker_int.h includes
// this.
#ifndef QUEEN_BROKER_POPS_H
#define QUEEN_BROKER_POPS_H

// ---- group_states.c ----
void group_handle(struct group *g, enum group_event event); // changes its state, and no more
void group_unsubscribe(struct group *g);                    // its start point must be recorded
void group_forget(struct group *g); // nothing that was known of it counts any more
static inline bool group_is_known(const struct group *g)
{
    return g->state == GROUP_KNOWN || g->state == GROUP_REDISCOVERING;
}
static inline bool group_is_discovering(const struct group *g)
{
    return g->state >= GROUP_DISCOVERING;
}

// ---- group.c ----
struct group *group_get(struct broker *b, struct queue *q, span name);
struct consumer *consumer_get(struct broker *b, struct group *g, struct lane *lane);
struct consumer *consumer_find_num(struct broker *b, int64_t num);
void consumer_set_num(struct broker *b, struct consumer *c, int64_t num);
void consumer_forget_num(struct broker *b, struct consumer *c);
void consumer_ready(struct broker *b, struct consumer *c, bool first); // into the ready list
void consumer_idle(struct broker *b, struct consumer *c);
void consumer_take(struct broker *b, struct consumer *c, struct pop_op *pop);
// us: from since_us on, when the call left.  Rather too early than too late: the database is
// asked again.
void consumer_leased(struct broker *b, struct consumer *c, uint64_t since_us, uint64_t us,
                     bool by_us);
void consumer_timed(struct broker *b, struct consumer *c, uint64_t since_us, uint64_t us);
void consumer_released(struct broker *b, struct consumer *c,
                       bool maybe_more); // the lease has ended
void consumer_gone(struct broker *b, struct consumer *c);
// The consumer of the same group on the lane's retry lane, when it has something; or NULL.
struct consumer *consumer_retries(const struct consumer *c);
void lane_ready(struct broker *b, struct lane *lane); // something was pushed, or set free
void groups_flush(struct broker *b);
void groups_forget(struct broker *b); // every group is to be discovered again
// Its cursors were moved, its leases ended, or all of it deleted, by others.
void group_changed(struct broker *b, struct group *g);
void group_discover(struct broker *b, struct group *g,
                    struct pop_op *pop); // POP_ON_DISCOVERED comes
// The call behind a discovery, not sent yet.  partition: only that one; after: the page behind
// it.
struct discover_ask {
    span partition, namespace_, task, sub_mode, sub_from, after; // SPAN_NONE: not given
};
struct call *group_discover_call(struct broker *b, const struct group *g, void *what,
                                 const struct discover_ask *ask);
// The rows of discover.  false: they make no sense, and nothing was learnt.
bool group_learn(struct broker *b, struct group *g, const struct pg_reply *reply, bool whole);
bool group_is_page(const struct pg_reply *reply); // false: rows that make no sense
// The rows of such a page.  Returns the partition behind which the next page is missing, or
// SPAN_NONE.
span group_learn_page(struct broker *b, struct group *g, const struct pg_reply *reply);
void group_scan(struct broker *b, struct group *g, span after); // scan.c: the pages after it
void group_discovered(struct broker *b, struct group *g);       // those who waited for it go on
bool group_must_discover(const struct group *g, const struct pop_op *pop);

// ---- unused.c ----
void unused_start(struct broker *b);
void group_begin_pop(struct group *g);
void group_end_pop(struct broker *b, struct group *g);
bool is_beyond_limits(const struct broker *b);
void unused_forget(struct broker *b); // a bounded step; not while groups are being walked

// ---- pop_states.c ----
// status: of the events that may end the pop; its op.why is set before.
void pop_handle(struct broker *b, struct pop_op *pop, enum pop_event event, int status);
void pop_fly_to(struct broker *b, struct pop_op *pop, struct consumer *c); // takes c for it

// ---- pop.c ----
// The event for all of these pops, which stay or leave one by one.
void pops_handle(struct broker *b, struct pop_list *seats, enum pop_event event);
void pops_unseat(struct broker *b, struct pop_list *seats, enum pop_event why,
                 struct pop_list *unplaced); // why: POP_ON_UNSEAT or POP_ON_FORGET
void pops_place(struct broker *b, struct pop_list *unplaced);
// All answers that pops of the group have waited for are there.
void group_answered(struct broker *b, struct group *g);
// Takes ready consumers of g for the pop, as many as it may have.  last: where the next of its
// targets is linked; returns it for those of another group.
struct consumer **pop_take_ready(struct broker *b, struct pop_op *pop, struct group *g,
                                 struct consumer **last);
void group_serve(struct broker *b, struct group *g);
void consumer_serve(struct broker *b, struct consumer *c);
void consumer_serve_retries(struct broker *b, struct consumer *c); // to pops of the partition
// Those that could not look, once one can; all: also pops of partitions thought to be empty.
void pops_place_again(struct broker *b, bool all);
void group_place_again(struct broker *b, struct group *g, bool all);
void pops_drain(struct broker *b);
void pops_resume(struct broker *b,
                 struct queue *only); // all of them, or of one queue, look again

// ---- claim.c ----
void claims_flush(struct broker *b);

// ---- hand_over.c ----
struct segs;
struct claim_flight;
// Claims for pops that wait for messages of these lanes, for the transaction that pushes them;
// NULL: none waits.
struct claim_flight *hand_over_take(struct broker *b, const struct segs *segs);
void hand_over_fill(struct pg_params *p, const struct claim_flight *f);
// The rows of the push, for pg_reply_part_free(); those about claims are read, and the flight
// is freed.  NULL: the rows make no sense, or there are none because of the status.
struct pg_reply *hand_over_end(struct call *c, struct claim_flight *f, int status,
                               const struct pg_reply *reply);
// Until hand_over_told(), lane_ready() leaves the consumers out that this push has served.
void hand_over_told(struct broker *b);

// ---- work/claim_work.c ----
void work_claim(struct broker *b); // one call for the queued pops of work queues

// ---- work/room.c ----
// The limits of the queue allow no more, until then at the latest.
void group_fill(struct broker *b, struct group *g, uint64_t until_us);
void group_widen(struct group *g); // a claim has found messages
void group_has_room(struct broker *b, struct group *g);
bool group_is_full(const struct group *g); // no further claim, except by name of a partition
// Messages of its partition were settled or given back: for itself, and for those that share
// its limits.
void consumer_has_room(struct broker *b, struct consumer *c);

// ---- selector.c ----
// The selector of a pop by namespace or task.  Until its end the pop keeps it from being
// forgotten.
struct selector *selector_bind(struct broker *b, struct pop_op *pop);
void selector_ask(struct selector *s, struct pop_op *pop);  // POP_ON_DISCOVERED comes
bool selector_take(struct selector *s, struct pop_op *pop); // takes consumers for it
struct pop_list *selector_seats(struct selector *s);
void selector_refresh(struct selector *s); // about once a second, while pops are seated
void selectors_serve(struct broker *b, struct group *g);
bool selector_is_asking(const struct pop_op *pop); // see group.n_asking
void selectors_settle(struct broker *b, struct group *g);
void selectors_page_read(struct broker *b, struct group *g);
void selectors_place_again(struct broker *b);
void selectors_drain(struct broker *b);
void selectors_free(struct broker *b);
void selector_end_pop(struct pop_op *pop);
// Those without pops that were last used before then.
void selectors_forget(struct broker *b, uint64_t before_us);

// ---- watermark.c ----
// Writes the watermark of a group that has nothing to consume, if it is time.  Returns whether
// it does.
bool group_note_empty(struct broker *b, struct group *g, uint64_t now);
void watermarks_flush(struct broker *b);

static inline struct pop_op *pop_of(struct op *op)
{
    return container_of(op, struct pop_op, op);
}

#endif
