// client.h: connections to Queen servers, and requests of any kind.
//
//     struct queen_error err;
//     struct queen_client *c =
//         queen_client_new(&(struct queen_options){.url = "http://localhost:6632"}, &err);
//     struct queen_response *r =
//         queen_request(c, &(struct queen_request){.path = "/health"}, &err);
//     ...
//     queen_response_free(r);
//     queen_client_free(c);
//
// A client works in one of two modes:
//
// - Without a loop it runs its own thread. Functions that end in _start may be called from any
//   thread; their callbacks run on the client's thread. All other functions block the caller
//   and may be called from any thread except the client's.
// - On a libuv loop of the caller everything runs there: use only the _start functions, and
// only
//   on the loop's thread. The blocking functions fail with QUEEN_E_MISUSE.
//
// A callback is called exactly once, never from inside the function that started the work, and
// may start more work. The library keeps no state outside of its handles, prints nothing,
// installs no signal handlers and raises no SIGPIPE. It aborts the process if memory for its
// own small structures is exhausted. If memory for data whose size a server chooses is
// exhausted, the call fails with QUEEN_E_MEMORY.
//
// Ownership is described with these words: *borrowed* (for the duration of the call unless
// stated otherwise), *copied*, *taken* (the library frees it), *given* (the caller frees it).
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
    QUEEN_AFFINITY,    // a call with a key goes to the server that the hash ring assigns to the
                       // key
    QUEEN_ROUND_ROBIN, // calls go to the servers in turn
};

// 0 and NULL select the default. Copied.
struct queen_options {
    const char *url; // http://host:port or https://host:port; several separated by commas
    struct uv_loop_s *loop; // borrowed until closed; NULL: the client runs its own thread
    enum queen_strategy strategy;
    unsigned request_timeout_ms; // 30000; a long poll uses its own timeout plus 5 s
    unsigned connect_timeout_ms; // 5000, including name lookup and TLS
    unsigned attempts;           // 3 in total with one server; with several, each is tried once
    unsigned retry_delay_ms;     // 1000; doubles with each attempt
    unsigned unhealthy_ms;       // 5000: how long a server is avoided after a failure
    unsigned max_connections;    // 256 per server; further requests wait for a free one. A
                                 // quarter is kept free of long polls
    size_t max_response_bytes;   // 256 MB
    const char *token;           // bearer token
    const char *token_file;      // or a file that contains it; read again when it changes
    const char *ca_file;         // PEM file of trusted authorities; default: the system's
    // SHA-256 of the server's certificate, 64 hexadecimal digits, colons allowed: only this one
    // is accepted, whoever signed it; NULL: the authorities decide
    const char *fingerprint;
    bool insecure;          // accept any certificate; for experiments only
    bool compress;          // gzip: accept it in answers, and compress bodies above 4 KB
    const char *user_agent; // "libqueenclient/<version>"
};

// Given: queen_client_free(), or queen_client_close() with a loop. NULL: err holds the
// reason. No connection is opened before the first request.
struct queen_client *queen_client_new(const struct queen_options *o, struct queen_error *err);

// Fails pending calls with QUEEN_E_CLOSED, stops the thread and frees the client. Free its
// producers, consumers and processors first. Must not be called on the client's thread.
void queen_client_free(struct queen_client *c);

// The same for a client on the caller's loop; closed (may be NULL) is called last.
void queen_client_close(struct queen_client *c, void (*closed)(void *ctx), void *ctx);

// ---- requests of any kind ----

struct queen_header {
    const char *name, *value;
};

struct queen_request {
    const char *method; // "GET" when NULL
    const char *path;   // with query; escape its parts with queen_escape()
    const char *body;   // NULL: none
    size_t body_len;
    // Sent in addition to the client's headers; a header of the same name replaces the
    // client's. Host, Connection, Content-Length and Transfer-Encoding are refused.
    const struct queen_header *headers;
    size_t n_headers;
    const char *key;         // for QUEEN_AFFINITY; NULL: servers in turn
    unsigned timeout_ms;     // 0: request_timeout_ms of the client
    unsigned attempts;       // 0: those of the client
    bool once;               // must not be sent twice: retried only if nothing was sent
    const char *traceparent; // W3C Trace Context, sent as a header; NULL: none
};

// An answer of any status. Its contents are valid until queen_response_free().
struct queen_response {
    int status;
    const char *body; // NUL-terminated; already decompressed
    size_t body_len;
    const struct queen_header *headers; // names in lower case
    size_t n_headers;
};

// The value, or NULL. name must be in lower case.
const char *queen_response_header(const struct queen_response *r, const char *name);
void queen_response_free(struct queen_response *r); // r may be NULL

// Blocks. Given: the answer. For a status of 400 or above, err describes the failure as well;
// below 400 err->code is QUEEN_OK. NULL: no answer was received, err holds the reason.
struct queen_response *queen_request(struct queen_client *c, const struct queen_request *req,
                                     struct queen_error *err);

// r is given, or NULL if no answer was received; err as above, borrowed.
typedef void (*queen_response_cb)(struct queen_response *r, const struct queen_error *err,
                                  void *ctx);
// req is copied.
void queen_request_start(struct queen_client *c, const struct queen_request *req,
                         queen_response_cb done, void *ctx);

// Percent-encodes everything except letters, digits and -._~, for a part of a path or query.
// Given: free().
char *queen_escape(const char *text);

// Writes a new UUIDv7 as text, like the ids the library assigns to messages without a
// transaction id.
void queen_new_id(char out[37]);

#ifdef __cplusplus
}
#endif
#endif
