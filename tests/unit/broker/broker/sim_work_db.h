// sim_work_db.h: a scripted database with one work queue, for test_sim_work.c.
#ifndef QUEEN_TESTS_SIM_WORK_DB_H
#define QUEEN_TESTS_SIM_WORK_DB_H

#include "rig.h"

enum { LANES = 3, GROUPS = 2, MAX_MESSAGES = 400 };
enum {
    LEASE_US = 2 * 1000 * 1000,
    MAX_IN_FLIGHT = 7,
    KEY_MAX_IN_FLIGHT = 4,
    LOOK_US = 100 * 1000
};

struct delivery { // of a message, for a group
    enum { NEW, HELD, RETURNED, DONE } state;
    uint8_t lease[16]; // the last one
    uint64_t until_us; // HELD; RETURNED: not available before
    int failed;
};

struct work_lane {
    uint8_t keys[MAX_MESSAGES][16];
    struct delivery of[GROUPS][MAX_MESSAGES]; // message i has the sequence number i + 1
    unsigned n;
    unsigned generation; // grows when the partition is deleted and created again
    int64_t changed;
};
extern struct work_lane lanes[LANES + 1]; // from 1
extern const char *const group_names[GROUPS];

// Limits of each group: MAX_IN_FLIGHT messages, and KEY_MAX_IN_FLIGHT of a key ("p1" has two
// priorities).
enum { LIMIT_QUEUE = 1, LIMIT_KEYS = 2 };
void work_reset(unsigned limits);
uint64_t roll(uint64_t below); // of the test
const char *name_of(unsigned lane);
void push_elsewhere(unsigned lane, unsigned n); // by another server
void delete_group(unsigned group);              // its leases end, and it begins again
void renumber(unsigned lane);
struct delivery *find_delivery(unsigned lane, unsigned group, const void *key);
bool is_held(const struct delivery *d);
bool is_pending(unsigned lane, unsigned group);
bool is_stored(unsigned lane, const void *key);

enum fate { ANSWERED, LOST_ANSWER, LOST_CALL, ROLLED_BACK };
void serve(struct pg_call *call, enum fate fate);

#endif
