// naive_grants.h: the rules of tenant/grants.h once more, as plainly as possible: arrays,
// scans.
//
// Its decisions are written to a log, one line per decision, for comparison.
#ifndef QUEEN_TEST_NAIVE_GRANTS_H
#define QUEEN_TEST_NAIVE_GRANTS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "tenant/grants.h"

enum { NAIVE_TENANTS = 12, NAIVE_GRANTS = 64, NAIVE_WANTS = 256 };

struct naive {
    unsigned max;
    struct naive_grant {
        int id; // 0: free
        int tenant;
        bool attached, acting;
        enum grant_state state;
        unsigned refs;
        uint64_t idle_since, idle_turn;
    } grant[NAIVE_GRANTS];
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
void naive_put(struct naive *n, int grant, uint64_t now);
void naive_cancel(struct naive *n, int want);
void naive_opened(struct naive *n, int grant, int status, uint64_t now);
void naive_checked(struct naive *n, int grant, bool healthy, uint64_t now);
void naive_closed(struct naive *n, int grant);
void naive_retire(struct naive *n, int tenant);
void naive_refuse(struct naive *n, int tenant, int status);
void naive_tick(struct naive *n, uint64_t now, uint64_t idle);

#endif
