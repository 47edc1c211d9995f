// probe.h: short calls to a database that we do not control, on a thread of their own.
//
// The target may be slow, broken or hostile. A probe ends at its deadline, when the server
// stops, or when the target has sent more than PROBE_MAX_BYTES. libuv's threads are not used:
// four slow targets would block every DNS lookup and every compressed body of the process.
#ifndef QUEEN_TRANSFER_PROBE_H
#define QUEEN_TRANSFER_PROBE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"

enum {
    PROBE_MAX_BYTES = 1 << 20, // from one target
    PROBE_MAX_COUNTS = 32,
    PROBE_MAX_RUNNING = 2, // per process
};

struct probe_count {
    char name[64];
    int64_t n; // -1: no such table
};

struct probe {
    const char *target, *source;  // conninfo, borrowed; source NULL: only the version is wanted
    unsigned timeout_ms;          // for both databases together
    const _Atomic bool *stopping; // borrowed
    void (*done)(struct probe *p); // on the loop, exactly once
    // out
    int rc;
    struct fault fault;
    char version[64];
    struct probe_count here[PROBE_MAX_COUNTS], there[PROBE_MAX_COUNTS];
    unsigned n_here, n_there;
    // its own
    uv_thread_t thread;
    bool has_thread;
    uv_async_t finished;
    uint64_t until_us;
};

// QE_BUSY: PROBE_MAX_RUNNING are running. On success done is called later.
MUST_USE int probe_start(struct probe *p, uv_loop_t *loop);

#endif
