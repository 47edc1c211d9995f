// parser.h: parses one HTTP request at a time.
//
//     http_parser_start ──► feed ──► HEAD ──► feed ... ──► DONE
//                             └──► BAD (msg->bad_status, bad_text)
//
// The grammar is that of llhttp, compiled strict. This file adds the limits and refuses
// requests that llhttp accepts: folded header lines, a missing or repeated Host, transfer
// codings other than "chunked". A parser is only needed while a request is being received, so
// idle connections own none. llhttp.h is included only by parser.c: its HTTP_GET is not the
// HTTP_GET of route.h.
#ifndef QUEEN_HTTP_PARSER_H
#define QUEEN_HTTP_PARSER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"
#include "http/rare.h"

struct http_parser;

// Same order as enum http_verb; any other method is OTHER.
enum http_msg_verb {
    MSG_GET,
    MSG_POST,
    MSG_PUT,
    MSG_DELETE,
    MSG_OPTIONS,
    MSG_HEAD,
    MSG_PATCH,
    MSG_OTHER
};

// Filled by the parser. The caller owns the struct and both buffers.
struct http_msg {
    struct buf head; // target, then the header entries; read with the functions below
    struct buf body;
    uint32_t target_len;
    uint32_t host_at, host_len; // value of Host in head; 0, 0: none
    enum http_msg_verb verb;
    uint64_t content_length; // 0 when chunked
    uint8_t rare;            // enum http_rare
    bool chunked;
    bool http10;
    bool keep_alive;
    bool expects;   // Expect: 100-continue
    bool drop_body; // set by the caller after HEAD: discard the body

    int bad_status; // after BAD: the HTTP status to answer with
    const char *bad_text;
};

struct http_parser_limits {
    size_t max_head; // bytes of request line and headers; also of a chunked body's trailer
    size_t max_body;
};

enum http_feed {
    HTTP_FEED_MORE, // all bytes used, the request is not complete
    HTTP_FEED_HEAD, // the head is complete; call feed again, even with no bytes left
    HTTP_FEED_DONE, // the request is complete; the following bytes belong to the next one
    HTTP_FEED_BAD,  // invalid or unsupported request; the connection must be closed
};

struct http_parser *http_parser_new(struct http_parser_limits limits);
void http_parser_free(struct http_parser *p);

// Begins a request. msg is borrowed until DONE, BAD or the next start; its buffers must be
// empty.
void http_parser_start(struct http_parser *p, struct http_msg *msg);

// The bytes may already be in place at the end of msg->body; they are then not copied.
enum http_feed http_parser_feed(struct http_parser *p, const char *data, size_t len,
                                size_t *used);

span http_msg_target(const struct http_msg *msg);
span http_msg_host(const struct http_msg *msg); // SPAN_NONE: none
// Iterates over the headers: *at starts at 0; false after the last.
bool http_msg_next_header(const struct http_msg *msg, size_t *at, span *name, span *value);

#endif
