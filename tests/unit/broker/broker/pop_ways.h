// pop_ways.h: brings a pop into each of its states (pop_states.c).
#ifndef QUEEN_TESTS_BROKER_POP_WAYS_H
#define QUEEN_TESTS_BROKER_POP_WAYS_H

#include "rig.h"

extern struct pop p, other; // queue q, group g; the tests are about p
#define STATE(name) assert_int_equal(p.op.state, name)

void make_looking(unsigned timeout_ms); // 0: p does not wait
void make_discovering(unsigned timeout_ms);
void make_seated(void); // it waits for the discovery of other, which finds nothing
void make_parked(void);
void make_claiming(unsigned timeout_ms, unsigned n_lanes);
void start_on_lane(unsigned timeout_ms); // of partition p1: discovering
void make_claiming_on_lane(unsigned timeout_ms);
void make_claiming_retries(unsigned timeout_ms); // the same pop, of the retry lane of p1
void make_noting(void);

void answer(const char *name, int status); // the call of this statement
void answer_feed(void);
struct group *group(void);
// Takes p out of its list, as while other pops of the list are being placed.
void unseat(enum pop_event why, struct pop_list *unplaced);
void cancel(void); // a call that names p is in flight: it leaves
void assert_ended(int status);
// The database is away, and p waits.  If it fails later, that is for another reason.
void assert_waits_on(void);

// Whether act(state, event) ends the process, as a mistake in the broker does.
bool aborts(void (*act)(unsigned state, unsigned event), unsigned state, unsigned event);

#endif
