// spool_int.h: shared by the files of this folder.
//
// Files are in the order in which they were begun; the last may be the one being written.
// Fields that are neither marked "locked" nor atomic belong to the spool's thread (or, before
// it runs, to spool_open).
#ifndef QUEEN_SPOOL_SPOOL_INT_H
#define QUEEN_SPOOL_SPOOL_INT_H

#include "spool/spool.h"

#include <pthread.h>
#include <stdatomic.h>

enum {
    SPOOL_BUCKETS = 1 << 16,
    SPOOL_WINDOW_BYTES = 8 << 20,
    SPOOL_NAME_BYTES = 80,
};

struct spool_file {
    TAILQ_ENTRY(spool_file) link;
    uint64_t size, start; // start: where reading goes on
    uint64_t n_records;   // from there to the end
    char name[SPOOL_NAME_BYTES];
};

STAILQ_HEAD(spool_writes, spool_write);

struct spool {
    struct spool_conf conf;
    char *dir;
    int dir_fd, failed_fd, lock_fd;

    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    struct spool_writes writes; // locked
    struct spool_read *read;    // locked: wanted
    bool stopping;              // locked

    TAILQ_HEAD(, spool_file) files;
    TAILQ_HEAD(, spool_file) kept; // read to their ends, but some records are not stored
    bool keeping;                  // result of the last read
    struct spool_file *current;    // being written, or NULL
    int fd;                        // of current
    uint64_t written;              // bytes of current, synced or not
    struct buf out;
    uint64_t last_us;    // of the last write
    uint8_t last_id[16]; // of the newest file's name

    struct spool_file *reading; // read_fd is open for this one
    int read_fd;

    _Atomic uint64_t pending, bytes, n_files, appended, replayed, refused;
    _Atomic uint64_t failed_files, failed_bytes, failed_qos0;
    _Atomic bool healthy;
    uint64_t logged_us, n_unlogged; // errors are logged once a second; how many were not
    uint64_t probed_us;             // when the disk was last tried without a write to store
    _Atomic uint32_t n_stored[SPOOL_BUCKETS]; // records per hash of a partition
};

// ---- spool.c ----
// Counts records in or out; by is +1 or -1.
void spool_count(struct spool *s, const struct spool_record *records, unsigned n, int by);

// ---- files.c ----
int files_open(struct spool *s, struct fault *f); // lock the directory, find its files
void files_name(struct spool *s,
                char out[SPOOL_NAME_BYTES]); // of a new file, behind all others
struct spool_file *files_add(struct spool *s, const char *name);
void files_remove(struct spool *s, struct spool_file *file); // from the list, not from disk
int files_read(int fd, uint64_t offset, size_t n, struct buf *out);
// Parses the beginning of bytes, which end where the file ends unless `more` follow.
enum files_step { STEP_RECORD, STEP_END, STEP_MORE, STEP_SKIP, STEP_REST };
enum files_step files_step(span bytes, uint64_t more, struct spool_record *r, uint64_t *size);
// Into the folder "failed": the bytes as a file of its own, and why.
int files_set_aside(struct spool *s, span bytes, bool with_header, const char *reason);

// ---- writer.c ----
void writer_store(struct spool *s, struct spool_writes *writes);
void writer_complete(struct spool *s); // the current file, if there is one
void writer_complete_idle(struct spool *s);
void writer_probe(struct spool *s); // after a failure: does the disk work again?

// ---- reader.c ----
void reader_next(struct spool *s, struct spool_read *r);

#endif
