// producer.h: many messages, few requests.
//
//      queen_producer_send ──► buffer ──► request ──► told of each message
//                                 ▲          │
//                                 └── again ─┘  (server away: for as long as it takes)
//
// A message that was accepted is never dropped: it is stored, or on_result says why not.  Its
// transaction id is made when it is accepted, so sending it again stores it once.  With one
// request in flight (the default) messages are stored in the order in which they were accepted.
#ifndef QUEEN_PRODUCER_H
#define QUEEN_PRODUCER_H

#include <queen/message.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queen_producer;

// Of each message, in order of the answers, on the client's thread.  Both are borrowed: result
// is NULL when there is none, err->code is 0 when the message is stored.  tag is what was given
// with the message.
typedef void (*queen_result_cb)(const struct queen_push_result *result,
                                const struct queen_error *err, void *tag, void *ctx);

// 0 means the default.
struct queen_producer_options {
    unsigned batch_count;   // 100: send when so many wait ...
    size_t batch_bytes;     // 1 MB: ... or so many bytes ...
    unsigned linger_ms;     // 1000: ... or the first has waited so long; no request is larger
    size_t max_count;       // 10000 messages may wait or be under way
    size_t max_bytes;       // 64 MB of them
    bool refuse;            // when full: QUEEN_E_FULL instead of waiting (always on a loop)
    unsigned max_in_flight; // 1; with more, batches may overtake one another
    unsigned close_timeout_ms; // 30000: how long closing waits for servers
    queen_result_cb on_result; // may be NULL
    void *ctx;
};

// Given: queen_producer_free(), or queen_producer_close() on a loop.  The client is borrowed.
struct queen_producer *queen_producer_new(struct queen_client *c,
                                          const struct queen_producer_options *o,
                                          struct queen_error *err);

// Accepts a message (copied).  Any thread; on a client with a loop the loop's.  0, or
// QUEEN_E_FULL, QUEEN_E_ARGUMENT, QUEEN_E_CLOSED.
int queen_producer_send(struct queen_producer *p, const struct queen_message *m, void *tag,
                        struct queen_error *err);

// Sends at once and waits until all that was accepted before is settled.  Blocks.
// QUEEN_E_TIMEOUT: not all within timeout_ms (0: no limit).
int queen_producer_flush(struct queen_producer *p, unsigned timeout_ms,
                         struct queen_error *err);
void queen_producer_flush_start(struct queen_producer *p, queen_done_cb done, void *ctx);

struct queen_producer_stats {
    uint64_t accepted, stored, failed; // stored: duplicates and buffered ones, too
    size_t waiting;                    // accepted and neither
};
void queen_producer_stats(struct queen_producer *p, struct queen_producer_stats *out);

// Flushes, for close_timeout_ms at most; what is left then is told QUEEN_E_CLOSED.  Blocks.
void queen_producer_free(struct queen_producer *p);
void queen_producer_close(struct queen_producer *p, void (*closed)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
