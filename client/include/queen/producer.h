// producer.h: sends messages in batches, with retries.
//
//     queen_producer_send ──► buffer ──► request ──► on_result for each message
//                                ▲          │
//                                └─ retry ──┘  (server unavailable: without limit)
//
// An accepted message is never lost silently: it is stored, or on_result reports the error. It
// gets its transaction id when it is accepted, so that a retry stores it only once. With one
// request in flight (the default) messages are stored in the order of their acceptance.
#ifndef QUEEN_PRODUCER_H
#define QUEEN_PRODUCER_H

#include <queen/message.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queen_producer;

// Called for each message, in the order of the answers, on the client's thread. Both pointers
// are borrowed. err->code is 0 if the message is stored; result is NULL if there is none. tag
// is the one passed with the message.
typedef void (*queen_result_cb)(const struct queen_push_result *result,
                                const struct queen_error *err, void *tag, void *ctx);

// 0 selects the default.
struct queen_producer_options {
    unsigned batch_count; // 100: send when this many messages wait ...
    size_t batch_bytes;   // 1 MB: ... or this many bytes ...
    unsigned linger_ms;   // 1000: ... or the first has waited this long; no request exceeds the
                          // first two
    size_t max_count;     // 10000: limit of messages waiting or in flight
    size_t max_bytes;     // 64 MB: limit of their bytes
    bool refuse; // when full: fail with QUEEN_E_FULL instead of waiting (always on a loop)
    unsigned max_in_flight;    // 1; with more, batches may overtake one another
    unsigned close_timeout_ms; // 30000: how long closing waits for servers
    queen_result_cb on_result; // may be NULL
    // Called when a request has failed and its messages will be sent again, on the client's
    // thread; may be NULL. err is borrowed.
    void (*on_retry)(const struct queen_error *err, void *ctx);
    void *ctx;
};

// Given: queen_producer_free(), or queen_producer_close() on a loop.  The client is borrowed.
struct queen_producer *queen_producer_new(struct queen_client *c,
                                          const struct queen_producer_options *o,
                                          struct queen_error *err);

// Accepts a message (copied). May be called from any thread; on a client with a loop only from
// the loop's. Returns 0, QUEEN_E_FULL, QUEEN_E_ARGUMENT or QUEEN_E_CLOSED.
int queen_producer_send(struct queen_producer *p, const struct queen_message *m, void *tag,
                        struct queen_error *err);

// Sends at once and blocks until all previously accepted messages are stored or have failed.
// QUEEN_E_TIMEOUT: not finished within timeout_ms (0: no limit).
int queen_producer_flush(struct queen_producer *p, unsigned timeout_ms,
                         struct queen_error *err);
void queen_producer_flush_start(struct queen_producer *p, queen_done_cb done, void *ctx);

struct queen_producer_stats {
    uint64_t accepted, stored, failed; // stored includes duplicates and buffered messages
    size_t waiting;                    // accepted, but neither stored nor failed yet
};
void queen_producer_stats(struct queen_producer *p, struct queen_producer_stats *out);

// Flushes for at most close_timeout_ms; on_result reports QUEEN_E_CLOSED for the remaining
// messages. Blocks.
void queen_producer_free(struct queen_producer *p);
void queen_producer_close(struct queen_producer *p, void (*closed)(void *ctx), void *ctx);

#ifdef __cplusplus
}
#endif
#endif
