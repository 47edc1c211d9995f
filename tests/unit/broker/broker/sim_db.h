// sim_db.h: a PostgreSQL for simulations: push, pop and ack, implemented simply in
// memory.
//
// One queue "q" with lanes p1..pN, one group "g".  It answers calls of the scripted pool
// (fake_pg.h); the test chooses which call is next and what becomes of its answer.
#ifndef QUEEN_TESTS_BROKER_SIM_DB_H
#define QUEEN_TESTS_BROKER_SIM_DB_H

#include "fake_pg.h"

enum { SIM_LANES = 3, SIM_LEASE_US = 2 * 1000 * 1000 };

enum sim_fate {
    SIM_ANSWERED,
    SIM_LOST_ANSWER, // done, but the connection broke before the answer came
    SIM_LOST_CALL,   // the connection broke before anything was done
    SIM_ROLLED_BACK, // PostgreSQL reports a failure that is retried
    SIM_REFUSED,     // the call did not leave, because the database was away
};

void sim_reset(void);
void sim_serve(struct pg_call *call, enum sim_fate fate);

// Another server stores a message; the feed reports it.
void sim_push_elsewhere(unsigned lane, const uint8_t key[16]);

// A transaction that does not end has pushed to the lane: its row, or its name if nobody has
// created it yet, is locked until it ends.
void sim_lock(unsigned lane, bool locked);
bool sim_is_locked(unsigned lane);

// The lane gets another number, as if it had been deleted and created again; its messages stay.
// Calls with the old number find it gone.
void sim_renumber(unsigned lane);

// The contents of the database.
int64_t sim_find(unsigned lane, const uint8_t key[16]); // its sequence number, 0: not there
unsigned sim_count(unsigned lane, const uint8_t key[16]);
int64_t sim_cursor(unsigned lane);
int64_t sim_last(unsigned lane); // the last sequence number
// Has an acknowledgement under this lease been done?
bool sim_was_settled(const uint8_t lease[16]);

#endif
