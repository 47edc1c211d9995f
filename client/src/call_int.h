// call_int.h: the fields of a call, and its encoding.
#ifndef QUEEN_CLIENT_CALL_INT_H
#define QUEEN_CLIENT_CALL_INT_H

#include "base/buf.h"
#include "client_int.h"

struct call_header {
    char *name, *value;
};

struct call {
    struct queen_client *client;
    TAILQ_ENTRY(call) entry;
    struct mailbox_item post;

    // the request (own copies)
    char *method, *path, *key, *traceparent;
    struct call_header *headers;
    size_t n_headers;
    struct buf body;
    bool has_body, is_packed, once;
    unsigned timeout_ms, attempts;
    queen_response_cb done;
    void *ctx;

    // the attempt
    uv_timer_t timer; // timeout of an attempt, or the pause before one
    bool pausing, ended, hung_up;
    unsigned server, n_failed;
    uint64_t tried; // a bit per server
    struct pool_wait wait;
    struct server_conn *conn; // NULL: none

    // the outcome so far
    struct queen_response *response;
    struct queen_error err;
};

// Whether the text is a valid header value; NULL is.
bool request_is_line(const char *text);
// Whether no part of the head can inject a line or change the framing of the body.
bool request_is_sound(const struct call *call);
// among the caller's headers
bool request_has_header(const struct call *call, const char *name);
// Writes the request for the call's server.
void request_write(struct call *call, struct buf *out);

#endif
