// client.h: talking to Queen servers.
//
//      struct queen_error err;
//      struct queen_client *c = queen_client_new(&(struct queen_options){.url =
//      "http://localhost:6632"}, &err); struct queen_response *r = queen_request(c, &(struct
//      queen_request){.method = "GET", .path = "/health"}, &err);
//      ...
//      queen_response_free(r);
//      queen_client_free(c);
//
// A client is used in one of two ways:
//
// - Without a loop it runs on a thread of its own.  Functions that end in _start may be called
//   from any thread and call back on the client's thread; all others block the calling thread
//   and may be called from any thread but the client's.
// - With a libuv loop of the caller it does everything there: only the _start functions, only
// on
//   the loop's thread.  The blocking ones fail with QUEEN_E_MISUSE.
//
// A callback is called exactly once, never from inside the function that started the work, and
// may start more.  The library keeps no state outside of its handles, prints nothing, installs
// no signal handlers and raises no SIGPIPE.  When memory for its own small structures is gone
// it aborts; what a server chooses the size of fails with QUEEN_E_MEMORY.
//
// Who owns what is said with these words: *borrowed* (for the call unless said otherwise),
// *copied*, *taken* (the library frees), *given* (the caller frees).
#ifndef QUEEN_CLIENT_H
#define QUEEN_CLIENT_H

#include <stdbool.h>
#include <stddef.h>

#include <queen/error.h>
#include <queen/version.h>

#ifdef __cplusplus
extern "C" {
#endif

struct queen_client;
struct uv_loop_s; // uv_loop_t

enum queen_strategy {
    QUEEN_AFFINITY,    // calls with a key go to the server that the hash ring says
    QUEEN_ROUND_ROBIN, // all calls go to the servers in turn
};

// 0 and NULL mean the default.  Copied.
struct queen_options {
    const char *url; // http://host:port or https://host:port; several with commas between
    struct uv_loop_s *loop; // borrowed until closed; NULL: a thread of its own
    enum queen_strategy strategy;
    unsigned request_timeout_ms; // 30000; a long poll gets its own time-out and 5 s more
    unsigned connect_timeout_ms; // 5000, name look-up and TLS included
    unsigned attempts;           // 3 in all with one server; with several, each is tried once
    unsigned retry_delay_ms;     // 1000; doubles with each attempt
    unsigned unhealthy_ms;       // 5000: how long a server that failed is left alone
    unsigned max_connections;    // 256 to each server; further requests wait for one
    size_t max_response_bytes;   // 256 MB
    const char *token;           // bearer token
    const char *token_file;      // or a file that holds it; read again when it changes
    const char *ca_file;         // PEM of the authorities to trust; default: the system's
    bool insecure;               // accept any certificate: for trying things out only
    bool compress;               // gzip: ask for it in answers, send bodies above 4 KB so
    const char *user_agent;      // "libqueenclient/<version>"
};

// Given: queen_client_free(), or queen_client_close() with a loop.  NULL: err says why; nobody
// has been asked anything yet, servers are met with the first request.
struct queen_client *queen_client_new(const struct queen_options *o, struct queen_error *err);

// Ends what is under way with QUEEN_E_CLOSED, stops the thread, frees.  Producers, consumers
// and processors of the client are freed before it.  Not on the client's thread.
void queen_client_free(struct queen_client *c);

// The same for a client on the caller's loop; closed (may be NULL) is called last.
void queen_client_close(struct queen_client *c, void (*closed)(void *ctx), void *ctx);

// ---- any request ----

struct queen_header {
    const char *name, *value;
};

struct queen_request {
    const char *method; // "GET" when NULL
    const char *path;   // with query; parts escaped with queen_escape()
    const char *body;   // NULL: none
    size_t body_len;
    // Besides those of the client; one of the same name replaces the client's.  Host,
    // Connection, Content-Length and Transfer-Encoding are refused.
    const struct queen_header *headers;
    size_t n_headers;
    const char *key;         // for QUEEN_AFFINITY; NULL: servers in turn
    unsigned timeout_ms;     // 0: request_timeout_ms of the client
    unsigned attempts;       // 0: those of the client
    bool once;               // must not be sent twice: retried only while nothing was sent
    const char *traceparent; // W3C Trace Context, sent as a header; NULL: none
};

// An answer, of whatever status.  Everything in it lives until queen_response_free().
struct queen_response {
    int status;
    const char *body; // NUL-terminated for convenience; unpacked if it was gzip
    size_t body_len;
    const struct queen_header *headers; // names in lower case
    size_t n_headers;
};

// The value, or NULL.  name in lower case.
const char *queen_response_header(const struct queen_response *r, const char *name);
void queen_response_free(struct queen_response *r); // NULL is fine

// Blocks.  Given: the answer, also one of status 4xx or 5xx, which are failures in err at the
// same time (err->code is QUEEN_OK below 400).  NULL: there is no answer, err says why.
struct queen_response *queen_request(struct queen_client *c, const struct queen_request *req,
                                     struct queen_error *err);

// r is given to the callback (it frees), NULL when there is no answer; err as above, borrowed.
typedef void (*queen_response_cb)(struct queen_response *r, const struct queen_error *err,
                                  void *ctx);
// req is copied.
void queen_request_start(struct queen_client *c, const struct queen_request *req,
                         queen_response_cb done, void *ctx);

// text with everything but letters, digits and -._~ as %XX, for a part of a path or a query.
// Given: free().
char *queen_escape(const char *text);

// A new UUIDv7 as text, as the library makes for messages without a transaction id.
void queen_new_id(char out[37]);

#ifdef __cplusplus
}
#endif
#endif
