// worker.h: one thread, one loop, and all it owns: a broker, HTTP connections, a mailbox.
//
//      worker_new ──► worker_start ──► worker_drain ──► worker_hang_up ──► worker_stop ──►
//      worker_free └ acceptor's thread             └ calls on_drained  └ on_hung_up      └
//      on_stopped
//
// The acceptor calls all functions.  Their requests go through the worker's mailbox and are
// executed on its thread.  The three reports come back through the acceptor's mailbox.
// The brokers of a house serve one another, so every worker must have reported one step
// before any worker is sent the next.
#ifndef QUEEN_SERVER_WORKER_H
#define QUEEN_SERVER_WORKER_H

#include <stdint.h>
#include <uv.h>

#include "api/api.h"
#include "auth/auth.h"
#include "base/attrs.h"
#include "base/err.h"
#include "broker/broker.h"
#include "http/server.h"
#include "net/mailbox.h"

struct worker;
struct ssl_ctx_st;

struct worker_events {             // on the acceptor's thread
    void (*on_drained)(void *ctx); // every request was answered
    void (*on_hung_up)(void *ctx); // no connection is left
    void (*on_stopped)(void *ctx); // the thread has nothing left to do: worker_free() joins it
};

struct worker_conf {
    unsigned index;
    struct house *house;          // borrowed
    struct mailbox *reports;      // the acceptor's; borrowed
    struct broker_conf broker;    // copied
    struct http_server_conf http; // copied; app and observe are set by the worker
    struct api_shared *shared;    // borrowed
    struct auth *auth;            // borrowed
    uint32_t default_timeout_ms, default_batch;
    uint32_t max_items;    // of a request
    uint32_t max_failures; // acknowledgements other than completed in a request; 0: any number
    span default_subscription_mode;
    struct worker_events on;
    void *ctx;
};

MUST_USE int worker_new(struct worker **w, const struct worker_conf *conf, struct fault *f);
MUST_USE int worker_start(struct worker *w, struct fault *f);
struct api *worker_api(struct worker *w); // borrowed; its counters may be read by any thread
// Takes fd over.
void worker_adopt(struct worker *w, int fd, struct ssl_ctx_st *tls); // tls: given, or NULL
uint64_t worker_closed(const struct worker *w); // connections that have ended
void worker_log(const struct worker *w);        // one line of state
void worker_resume(struct worker *w);           // the database can be used; once
// Why it cannot be used yet, for /health; copied.
void worker_explain(struct worker *w, const char *reason);
void worker_drain(struct worker *w);
void worker_hang_up(struct worker *w);
void worker_stop(struct worker *w);
void worker_free(struct worker *w); // after on_stopped

#endif
