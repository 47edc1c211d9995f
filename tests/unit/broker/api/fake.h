// fake.h: a request and a broker for the endpoints' tests; the linker is the seam.
//
// A test makes a request, calls the endpoint's handle, looks at the operation that reached the
// broker, answers it with op->done(), and looks at the reply.
#ifndef QUEEN_TESTS_API_FAKE_H
#define QUEEN_TESTS_API_FAKE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "api/api_int.h"
#include "broker/broker.h"
#include "http/req.h"

struct fake_reply {
    unsigned times;
    int status;
    char text[1 << 18]; // body, or the error's sentence; cut, NUL-terminated
    size_t len;         // of the whole body
    char type[64];
};

// The operation that reached the broker since the request was made; NULL: none.
struct fake_given {
    struct push_op *push;
    struct pop_op *pop, *cancelled;
    struct ack_op *ack;
    struct tx_op *tx;
    struct cycle_op *cycle;
    struct renew_op *renew;
    struct custom_op *custom;
    unsigned n_given_back;
    uint8_t given_back[16];
    span changed;
};

extern struct fake_reply fake_reply;
extern struct fake_given fake_given;
extern span fake_subject; // who sends the requests
extern struct api fake_api;
extern struct api_shared fake_shared;
extern struct broker_stats fake_stats;
extern struct pg_pool_stats fake_pg_stats;
extern bool fake_is_up;
extern bool fake_trusts; // answers are not checked (benchmark)

// One request at a time; the one before is freed.  Strings are borrowed.
struct http_req *fake_request(const char *body);
struct http_req *fake_request_span(span body);
struct http_req *fake_get(const char *query, const char *param0, const char *param1);
struct http_req *fake_post(const char *param0, const char *body);
void fake_set_route(const struct http_route *route);
void fake_set_verb(enum http_verb verb);
void fake_set_header(enum http_rare rare, const char *name, const char *value); // borrowed
void fake_hang_up(void); // runs the on_gone hook

int fake_setup(void **state);
int fake_teardown(void **state);
void fake_uuid(uint8_t id[16], uint8_t fill); // 16 times fill

enum { FAKE_VALUES = 4 };

// A result of configure or of a report: filled by the test before it calls done.
struct pg_reply {
    unsigned rows;
    uint8_t uuid[2][16];
    const char *options, *message;
    // of a report: its rows, {piece, payload} each
    int status;
    const char *const (*pieces)[2];
    bool sealed;
    // of a list: for each row its shape and values, which are JSON already
    const char *const (*values)[FAKE_VALUES];
};

#define SEND(route, text) (route).handle(fake_request(text))
#define assert_refused(part)                                               \
    do {                                                                   \
        assert_int_equal(fake_reply.times, 1);                             \
        assert_int_equal(fake_reply.status, 400);                          \
        if (!strstr(fake_reply.text, part))                                \
            fail_msg("\"%s\" does not say \"%s\"", fake_reply.text, part); \
    } while (0)
#define assert_span(s, literal)                                     \
    do {                                                            \
        assert_int_equal((s).len, sizeof(literal) - 1);             \
        assert_memory_equal((s).ptr, literal, sizeof(literal) - 1); \
    } while (0)

#endif
