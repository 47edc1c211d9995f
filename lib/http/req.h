// req.h: one request, from its last byte in to its last byte out.
//
//     parsed ──► handle() ──► ... ──► http_reply_*() ──► written ──► freed
//
// A handler answers exactly once, at once or later, always on the loop's thread. Until then
// the request, its arena and its body stay valid. Requests of one connection are handled as
// they arrive (pipelining), and answers are sent in order. If the client disconnects before
// the answer, the on_gone hook is called once, so that the work can be dropped. The handler
// must still answer; that then only frees the request.
#ifndef QUEEN_HTTP_REQ_H
#define QUEEN_HTTP_REQ_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/queue.h>
#include <uv.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "http/rare.h"
#include "http/route.h"

struct http_req;

struct arena *http_req_arena(struct http_req *req);
uv_loop_t *http_req_loop(struct http_req *req);
void *http_req_app(struct http_req *req); // http_server_conf.app
enum http_verb http_req_verb(const struct http_req *req);
const struct http_route *http_req_route(const struct http_req *req);
span http_req_path(const struct http_req *req); // raw, without the query
span http_req_body(const struct http_req *req); // whole body, contiguous
bool http_req_has(const struct http_req *req, enum http_rare header);
// case-insensitive; SPAN_NONE: absent
span http_req_header(const struct http_req *req, span name);
// Iterates over the headers: *at starts at 0; false after the last.
bool http_req_next_header(const struct http_req *req, size_t *at, span *name, span *value);
span http_req_query_text(const struct http_req *req);     // raw, behind the '?'
const uint8_t *http_req_ip(const struct http_req *req);   // 16 bytes; all zero: unknown
uint64_t http_req_started_us(const struct http_req *req); // monotonic, when the head was read

// The sender as identified by the guard; SPAN_NONE: anonymous.
span http_req_subject(const struct http_req *req);
// The names in the client's verified certificate, separated by NUL; SPAN_NONE: no certificate.
span http_req_client_names(struct http_req *req);
// A web page of another origin has sent it, by the headers of the browser (site.h).
bool http_req_is_foreign(const struct http_req *req);
// For guards: calls the handler.
void http_req_admit(struct http_req *req);

// A sender, for guards: shared by its requests of one loop. The guard embeds it in its own
// struct and holds one reference, each request another until it is freed.
LIST_HEAD(http_req_list, http_req);
struct http_identity {
    span subject; // SPAN_NONE: none
    unsigned n_refs;
    struct http_req_list requests;            // of the sender, from their heads on
    void (*unused)(struct http_identity *id); // the last reference is gone
    // Called with the bytes of each body and its answer; NULL: not.
    void (*spent)(struct http_identity *id, size_t bytes);
};
// Counts the connection of the request in *counter, which stays valid until it is closed, and
// no longer in that of an earlier call. False: the counter has reached max; the connection is
// closed after its answers.
bool http_req_count_connection(struct http_req *req, _Atomic unsigned *counter, unsigned max);
// Identifies the sender of the request; a later call replaces an earlier one.
void http_req_set_identity(struct http_req *req, struct http_identity *id);
struct http_identity *http_req_identity(const struct http_req *req); // NULL: anonymous
void http_identity_unref(struct http_identity *id);
// The sender has lost its access: requests that are arriving are checked again, and those that
// wait (with an on_gone hook) lose their connections, as if their clients had disconnected.
// Other requests are short and get their answers.
void http_identity_expel(struct http_identity *id);

// Path parameter i in pattern order, percent-decoded (borrowed from the arena).
// false: malformed escape or invalid UTF-8.
bool http_req_param(struct http_req *req, unsigned i, span *value);
// First occurrence of a query parameter that the route declares, decoded ('+' is a space).  An
// empty value counts as absent.  SPAN_NONE: absent.  A malformed escape is taken literally.
span http_req_query(struct http_req *req, span name);
// The contract's rules for numbers and booleans in queries.
int64_t http_req_query_int(struct http_req *req, span name, int64_t fallback);
bool http_req_query_bool(struct http_req *req, span name, bool fallback);

// The request's id in logs and answers: the client's X-Request-Id, or a generated one.
span http_req_id(struct http_req *req);
// Adds time spent in the database, for Server-Timing.
void http_req_note_db(struct http_req *req, uint64_t us);

// What http_server_conf.begin has noted of the request; NULL: nothing.
struct trace_span;
struct trace_span *http_req_trace(const struct http_req *req);
void http_req_set_trace(struct http_req *req, struct trace_span *trace);

// The hook is called at most once, when the peer disconnects before the answer. It is not
// called after the answer, and never from inside this function: if the peer has already
// disconnected, the hook runs later in this turn. A peer that closes only its sending half
// while a request with a hook is pending counts as disconnected, because the two cases cannot
// be distinguished. Without a hook such a peer gets its answer.
void http_req_on_gone(struct http_req *req, void (*gone)(struct http_req *req, void *ctx),
                      void *ctx);
bool http_req_is_gone(const struct http_req *req);
// The same, but checks the socket: the peer may have closed it before the loop has noticed.
// One system call; for answers that must not be lost (messages under a lease).
bool http_req_has_hung_up(const struct http_req *req);

// ---- answers ---- Headers set by all of these: Content-Type, Content-Length, Date, CORS;
// X-Request-Id for errors and for clients that sent one, which also get Server-Timing. Large
// answers are compressed for clients that accept gzip. The buf variant takes body over (no
// copy; *body is empty afterwards), the span variant copies it. HEAD requests are answered
// like GET, without the body.

void http_reply_json(struct http_req *req, int status, struct buf *body);
void http_reply_json_span(struct http_req *req, int status, span body);
// body stays valid for ever: nothing is copied.
void http_reply_json_constant(struct http_req *req, int status, span body);
void http_reply_text(struct http_req *req, int status, span content_type, struct buf *body);
// body and packed, the same compressed with gzip, stay valid for ever: nothing is copied.
void http_reply_constant(struct http_req *req, int status, span content_type, span body,
                         span packed);
void http_reply_empty(struct http_req *req, int status); // 204: no body, no Content-Type
// {"error": text}; status, name and default text follow from the code. Adds "Retry-After: 1"
// for 429 and 503.
void http_reply_err(struct http_req *req, int code);
void http_reply_fault(struct http_req *req, const struct fault *f);
void http_reply_errf(struct http_req *req, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
// The value of Retry-After in an answer of 429 or 503, instead of 1.
void http_reply_retry_after(struct http_req *req, unsigned seconds);
// Adds a header to the answer. name and value are copied; control characters in them become
// spaces.
void http_reply_header(struct http_req *req, span name, span value);

#endif
