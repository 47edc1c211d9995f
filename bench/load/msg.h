// msg.h: the requests of the load generator, and the parts of the answers that it reads.
//
// Every payload is {"bench":"run.producer.partition.number.due","fill":"..."}: one string, so
// that it survives a server that reorders keys or reformats numbers.
#ifndef QUEEN_CLI_BENCH_MSG_H
#define QUEEN_CLI_BENCH_MSG_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/span.h"
#include "bench/load/conf.h"
#include "json/scan.h"

struct ledger;

// Shared by all threads, read-only while they run.
struct bench_text {
    const struct bench_conf *conf; // borrowed
    uint32_t run;                  // distinguishes our messages from those of other runs
    uint64_t origin_us;            // due times are relative to it
    char *fill;                    // padding of payloads
    size_t fill_len;
};

// One message of a push in flight.
struct bench_sent {
    uint32_t partition, number;
    bool accepted;
};

struct bench_push {
    uint32_t producer;
    unsigned n;
    uint64_t due_us;
    bool spread;
};

void bench_text_init(struct bench_text *t, const struct bench_conf *conf);
void bench_text_deinit(struct bench_text *t);

// Each of these replaces the contents of out by a whole HTTP request. sent: room for p.n,
// filled.
void bench_put_push(struct buf *out, const struct bench_text *t, struct ledger *l,
                    struct bench_push p, struct bench_sent *sent);
// consumer chooses the partition or queue where that matters; group -1: queue mode.
void bench_put_pop(struct buf *out, const struct bench_text *t, uint32_t consumer, int group);
void bench_put_ack(struct buf *out, const struct bench_text *t, span acks, int group);
void bench_put_configure(struct buf *out, const struct bench_text *t, uint64_t queue);

// Marks accepted messages and counts the buffered ones. 0 or a code of err.h.
MUST_USE int bench_read_push(span body, struct bench_sent *sent, unsigned n,
                             unsigned *buffered);
// Number of successful entries in an ack/batch answer. 0 or a code of err.h.
MUST_USE int bench_read_acks(span body, unsigned *n_ok);

// Iterates over the messages of a pop's answer.
struct bench_walk {
    struct js js;
};
struct bench_popped {
    bool ours; // the fields up to due_us are set
    uint32_t producer, partition, number;
    uint64_t due_us;
    span transaction_id, partition_id, lease_id; // raw JSON, quotes included
};
struct bench_walk bench_walk_begin(span body);
bool bench_walk_next(struct bench_walk *w, const struct bench_text *t, struct bench_popped *m);
MUST_USE int bench_walk_end(const struct bench_walk *w); // 0 or a code of err.h

void bench_put_ack_entry(struct buf *acks, const struct bench_popped *m);

#endif
