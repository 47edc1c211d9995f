// naive_slots.h: the rules of tenant/slots.h once more, as plainly as possible: arrays, scans.
//
// What it decides is written to a log, one line per decision, for comparison.
#ifndef QUEEN_TEST_NAIVE_SLOTS_H
#define QUEEN_TEST_NAIVE_SLOTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "tenant/slots.h"

enum { NAIVE_TENANTS = 12, NAIVE_SLOTS = 64, NAIVE_WANTS = 256 };

struct naive {
    unsigned max;
    struct naive_slot {
        int id; // 0: free
        int tenant;
        bool attached, acting;
        enum slot_state state;
        unsigned refs;
        uint64_t idle_since, idle_turn;
    } slot[NAIVE_SLOTS];
    struct naive_want {
        int id, tenant;
        uint64_t deadline, turn;
    } want[NAIVE_WANTS]; // in order of asking
    unsigned n_wants;
    int queue[NAIVE_TENANTS];
    unsigned n_queue;
    int last_id;
    uint64_t turn;
    struct buf *log;
};

void naive_get(struct naive *n, int tenant, int want, bool check, uint64_t deadline);
void naive_put(struct naive *n, int slot, uint64_t now);
void naive_cancel(struct naive *n, int want);
void naive_opened(struct naive *n, int slot, int status, uint64_t now);
void naive_checked(struct naive *n, int slot, bool healthy, uint64_t now);
void naive_closed(struct naive *n, int slot);
void naive_retire(struct naive *n, int tenant);
void naive_refuse(struct naive *n, int tenant, int status);
void naive_tick(struct naive *n, uint64_t now, uint64_t idle);

#endif
