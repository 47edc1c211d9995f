// spool.h: the file buffer: push items that wait on this machine's disk for the database.
//
//      spool_append ──► written, synced (many requests together) ──► item of the caller's
//      mailbox spool_next   ──► the next window of records, in the order they were appended ──►
//      likewise
//
// One per process, shared by all its brokers.  Disk work is done by a thread of its own,
// because an fdatasync may take seconds on a bad day.  A write and a read live in the caller's
// memory, with everything they point to, and belong to the spool until their mail is delivered.
// Records of a partition come out in the order in which spool_append() was called for them.
// The directory belongs to one process: it is locked.
#ifndef QUEEN_SPOOL_SPOOL_H
#define QUEEN_SPOOL_SPOOL_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <sys/types.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/mailbox.h"
#include "spool/format.h"

struct spool;
struct spool_file;

// System calls that may fail; tests replace them.
struct spool_disk {
    ssize_t (*write)(int fd, const void *bytes, size_t n);
    int (*sync)(int fd);
};

struct spool_conf {
    const char *dir;               // copied; made if it is not there
    unsigned events_per_file;      // records after which a file is complete
    unsigned idle_ms;              // a file without new records for this long is complete
    uint64_t max_bytes;            // of all files that wait; QE_BUFFER_FULL beyond
    const struct spool_disk *disk; // NULL: the real one
    bool by_hand;                  // tests: no thread, spool_turn() does its work
};

// Blocks: reads the files of an earlier process, cuts torn tails, counts.  On failure f
// describes the problem with the directory in one line.
MUST_USE int spool_open(struct spool **s, const struct spool_conf *conf, struct fault *f);
void spool_close(struct spool *s); // everything given has been delivered; blocks for the thread
void spool_turn(struct spool *s);  // does the pending work of the thread

struct spool_write {
    struct spool_record *records; // all or none are stored
    unsigned n;
    struct mailbox *to;       // that mail is posted to; status is set then:
    struct mailbox_item mail; // the caller sets deliver and owner
    int status;               // 0: on stable storage; QE_BUFFER_FULL, QE_BUFFER_FAILED
    // the spool's own
    STAILQ_ENTRY(spool_write) link;
    uint64_t bytes;
};
// From any thread.
void spool_append(struct spool *s, struct spool_write *w);

struct spool_aside {
    STAILQ_ENTRY(spool_aside) link;
    char *bytes, *reason;
    size_t len;
};

struct spool_read {
    unsigned max_records;
    // Records that were read before are not stored yet (see left): the files stay until this is
    // false again, so that a new process finds them.
    bool keep;
    // For spool_next(): these records of the window are not stored, the reader has a copy of
    // them and reports later (spool_stored); NULL: all are.  Borrowed for the call.
    const bool *left;
    struct mailbox *to;
    struct mailbox_item mail;
    // out
    int status;
    unsigned n;                   // 0: nothing waits, behind the window before
    struct spool_record *records; // borrowed until the next call with this read
    // the spool's own
    struct buf bytes;
    char **reasons; // of those that are to be set aside
    unsigned cap;
    uint64_t *at, end; // offsets of the records in bytes; where the window ends in the file
    STAILQ_HEAD(, spool_aside) aside; // of spool_bury_left()
    struct spool_file *file;
    bool settled;
};
// Record i will never be stored: it goes to the folder "failed" with the reason.
void spool_bury(struct spool_read *r, unsigned i, const char *reason);
// From one thread at a time.  The records of the window in r, if there is one, are stored or
// buried: they will not be read again.  Then reads the next window.
void spool_next(struct spool *s, struct spool_read *r);
// Frees the window without having dealt with it: its records stay.
void spool_release(struct spool_read *r);

// The bytes of record i, which spool_take_record() reads.
span spool_bytes(const struct spool_read *r, unsigned i);
// A record that was left is stored now.
void spool_stored(struct spool *s, const struct spool_record *record);
// ... or never will be: its bytes go to the folder "failed" with the next spool_next().
void spool_bury_left(struct spool_read *r, span bytes, const char *reason);

// May records of this partition wait?  From any thread, without a lock; now and then yes for
// one that has none.
bool spool_holds(const struct spool *s, span queue, span partition);
uint64_t spool_pending(const struct spool *s); // records that wait

struct spool_stats {
    uint64_t pending, bytes, max_bytes, files;
    uint64_t appended, replayed, refused; // records since the start
    uint64_t failed_files, failed_bytes, failed_qos0;
    bool healthy; // the last write worked
};
void spool_stats(struct spool *s, struct spool_stats *out); // from any thread

#endif
