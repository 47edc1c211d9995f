// consumer_fixture.h: a client and a made-up server with one queue, for tests of consumers.
#ifndef TEST_CONSUMER_FIXTURE_H
#define TEST_CONSUMER_FIXTURE_H

#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "fake_server.h"
#include "queen/consumer.h"
#include "until.h"

enum { LEASES = 64 };

// A queue in the server: each pop gives `batch` messages until there are none.
struct store {
    _Atomic unsigned left, n_pops;
    _Atomic unsigned n_extends[LEASES];
    _Atomic bool lost; // the first lease cannot be extended
    unsigned next, n_leases;
    _Atomic bool hold; // answers to pops
    int pop_status;    // 0: as usual
    char acks[65536];  // the last acknowledgement
    _Atomic unsigned n_acked, n_retried;
    unsigned too_many;           // messages in each answer, more than requested
    const char *more, *ack_more; // further members of each message, of each result
    bool deaf;                   // does not notice that a client has closed its side
};

struct fake_answer serve(const struct fake_request *r, void *ctx);

struct rig {
    struct store store;
    struct fake_server *server;
    struct queen_client *client;
    _Atomic unsigned n_errors, n_handled, n_lingering, n_lost;
    _Atomic bool release;
};

struct rig *open_rig(unsigned messages);

struct queen_consumer_options options(struct rig *g, queen_handler handler);

extern struct queen_error err;
void close_rig(struct rig *g);
void on_error(const struct queen_error *e, void *ctx);
void let_go(_Atomic bool *flag, bool value);
// The client's thread has finished earlier work: a request that no server gets goes
// behind that.
void let_the_client_catch_up(struct rig *g);

#endif
