// rig.h: one broker on a loop that is turned by hand, a frozen clock, and operations that
// record their results.
#ifndef QUEEN_TESTS_BROKER_RIG_H
#define QUEEN_TESTS_BROKER_RIG_H

#include "broker/broker_int.h"
#include "fake_pg.h"

extern struct broker *broker;
extern struct broker_conf rig_conf; // change it before rig_open()
extern struct spool *rig_spool;     // likewise: the file buffer, NULL for none

int rig_setup(void **state);    // default settings, frozen clock
void rig_open(void);            // the broker, with the database up
int rig_teardown(void **state); // everything must be finished and freed
void turn(void);                // the loop looks at everything once
void wait_ms(unsigned ms);      // moves the clock, then turns

const uint8_t *uuid(unsigned n); // 16 bytes that mean n
enum { CREATED_US = 1700000000 };

// ---- pushes ----

struct push {
    struct push_op op;
    struct push_item items[32];
    unsigned times;
    int status;
};
// txid NULL: none given.  Items are keyed by their txid, or by a fresh UUIDv7.
void push_item(struct push *p, const char *queue, const char *partition, const char *txid);
void push_start(struct push *p);
// Numbers for the requested lanes: 1 for "p1", 2 for "p2", ...
void answer_lanes(void);
void row_stored(int64_t lane); // its next segment
// All segments of the oldest push are stored.
void answer_stored(void);

// ---- pops ----

struct pop {
    struct pop_op op;
    unsigned times;
    int status;
    unsigned rendered, n_claims;
    char partitions[64]; // of its claims, separated by spaces
    bool has_lease;
};
void pop_start(struct pop *p, const char *queue, unsigned timeout_ms); // 0: does not wait
void pop_give(struct pop *p); // as pop_start, the fields having been filled
void pop_fill(struct pop *p, const char *queue, unsigned timeout_ms);

// The feed's first look: nothing new.
void answer_changes(void);
// Likewise, for a pop that found nothing, if it looks at all: not if somebody just did.
void answer_look(void);
// The queue's lanes 1..n, consumers 101.., all with something.
void answer_discover(unsigned n);
// Rows of a claim: one message of lane `lane` in lease for a minute; nothing there.
void row_claimed(int target, int lane, bool more, int64_t lease_us);
void row_status(int target, int status, int64_t wait_us);
// The consumer and the lease of target i of a call "claim" or "claim_careful".
int64_t target_of(const struct pg_call *claim, unsigned i);
const void *lease_of(const struct pg_call *claim, unsigned i);

enum { CLAIMED, BUSY, TAKEN, EMPTY, NOT_YET, GONE, NOT_NEEDED, WANTS_CARE }; // of a claim
enum { MINUTE_US = 60 * 1000 * 1000 };
void answer_claim(void);         // the oldest, with the rows so far
void answer_careful_claim(void); // likewise
// The oldest claim is of this lane and gets one message of it.
void claim_of_lane(int lane, bool more, int64_t lease_us);
// The first pop of a broker: the feed is opened, the group discovered with n lanes.
void pop_first(struct pop *p, const char *queue, unsigned timeout_ms, unsigned n_lanes);
// A message for queue "q" is pushed and stored.
void push_to(const char *partition, struct push *p);
// The number of the requested consumer.
void answer_number(int consumer);

#endif
