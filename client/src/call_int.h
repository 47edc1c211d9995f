// call_int.h: a call, and its bytes.
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

    // the request, ours
    char *method, *path, *key, *traceparent;
    struct call_header *headers;
    size_t n_headers;
    struct buf body;
    bool has_body, is_packed, once;
    unsigned timeout_ms, attempts;
    queen_response_cb done;
    void *ctx;

    // the attempt
    uv_timer_t timer; // patience with an attempt, or the pause before one
    bool pausing, ended, hung_up;
    unsigned server, n_failed;
    uint64_t tried; // a bit for each server
    struct pool_wait wait;
    struct link *link; // NULL: none

    // the outcome so far
    struct queen_response *response;
    struct queen_error err;
};

// Can this text be the value of a header?  NULL can.
bool request_is_line(const char *text);
// No part of the head can end a line, or say where the body ends.
bool request_is_sound(const struct call *call);
bool request_has_header(const struct call *call, const char *name); // of the caller's
// The request as the call's server wants it.
void request_write(struct call *call, struct buf *out);

#endif
