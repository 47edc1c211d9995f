// transfer.h: copying the schema into another PostgreSQL, by pg_dump and psql.
//
//      IDLE ──► DUMPING ──► RESTORING ──► COMPLETE
//                  └────────────┴───────► ERROR        reset: back to IDLE
//
// One per process.  A thread of its own watches the two programs, so every function here may be
// called from any thread; none blocks for long.  The restore is one transaction: the target
// does not change until the copy is complete.
#ifndef QUEEN_PG_TRANSFER_H
#define QUEEN_PG_TRANSFER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/err.h"

struct pg_transfer;

enum transfer_phase {
    TRANSFER_IDLE,
    TRANSFER_DUMPING,
    TRANSFER_RESTORING,
    TRANSFER_COMPLETE,
    TRANSFER_ERROR
};
enum { TRANSFER_OUTPUT = 2048 };

struct pg_transfer_status {
    enum transfer_phase phase;
    double seconds;
    char error[256];                   // "" unless ERROR
    char dump_output[TRANSFER_OUTPUT]; // the end of the output of the programs
    char restore_output[TRANSFER_OUTPUT];
};

struct pg_transfer_conf {
    const char *source;  // conninfo of ours; copied
    const char *targets; // allowed targets (targets.h); "": the endpoints are off; borrowed
    unsigned stall_ms;   // psql may read nothing for this long while pg_dump runs
};
struct pg_transfer *pg_transfer_new(const struct pg_transfer_conf *conf);
// Ends what runs.  No other call may be under way.
void pg_transfer_free(struct pg_transfer *t);

// tables: names whose rows stay behind, as pg_dump's --exclude-table-data wants them.
// QE_BUSY: one is running.  QE_NOT_SUPPORTED: the programs are not installed.
MUST_USE int pg_transfer_start(struct pg_transfer *t, const char *target,
                               const char *const *tables, unsigned n_tables, struct fault *f);
MUST_USE int pg_transfer_reset(struct pg_transfer *t); // QE_BUSY: one is running
void pg_transfer_status(struct pg_transfer *t, struct pg_transfer_status *out);
const char *pg_transfer_source(const struct pg_transfer *t);
const char *pg_transfer_targets(const struct pg_transfer *t);

#endif
