// err.h: one number for every way to fail.
//
// A function that can fail returns int: 0, or a negative code. Codes of libuv (UV_ECONNRESET,
// ...) are passed through; ours start at -20001. A code determines its HTTP status and its
// stable name for clients, so no caller ever chooses a status by hand.
#ifndef QUEEN_BASE_ERR_H
#define QUEEN_BASE_ERR_H

#include "base/attrs.h"

#define ERR_MAP(X)                                                                             \
    X(QE_BAD_JSON, -20001, 400, "bad_json", "Invalid JSON")                                    \
    X(QE_BAD_REQUEST, -20002, 400, "bad_request", "the request is malformed")                  \
    X(QE_BAD_PARAM, -20003, 400, "bad_param", "invalid parameter")                             \
    X(QE_NOT_FOUND, -20004, 404, "not_found", "not found")                                     \
    X(QE_METHOD, -20005, 405, "method_not_allowed", "method not allowed for this path")        \
    X(QE_TOO_LARGE, -20006, 413, "too_large", "the body is larger than this server accepts")   \
    X(QE_HEADERS_TOO_LARGE, -20007, 431, "headers_too_large", "the header block is too large") \
    X(QE_TIMEOUT, -20008, 408, "timeout", "the request did not arrive in time")                \
    X(QE_URI_TOO_LONG, -20009, 414, "uri_too_long", "the address is too long")                 \
    X(QE_BUSY, -20010, 429, "busy", "too many requests are pending; try again")                \
    X(QE_QUEUE_FULL, -20011, 429, "queue_full", "the queue is full")                           \
    X(QE_NO_MEMORY, -20012, 503, "no_memory", "not enough memory for this request")            \
    X(QE_STOPPING, -20013, 503, "stopping", "the server is stopping; try again")               \
    X(QE_INTERNAL, -20014, 500, "internal", "unexpected failure")                              \
    X(QE_CONF, -20015, 500, "bad_configuration", "invalid setting")                            \
    X(QE_UNSUPPORTED, -20017, 415, "unsupported_media", "unsupported media type")              \
    X(QE_NOT_ACCEPTABLE, -20018, 406, "not_acceptable",                                        \
      "the requested response type is not available")                                          \
    X(QE_FORBIDDEN_PATH, -20019, 403, "forbidden_path",                                        \
      "the path is outside of its root directory")                                             \
    X(QE_UNAUTHORIZED, -20020, 401, "unauthorized", "a valid token is required")               \
    X(QE_FORBIDDEN, -20021, 403, "forbidden", "the token does not permit this request")        \
    X(QE_KEYS_AWAY, -20022, 503, "keys_unavailable",                                           \
      "the keys that verify tokens cannot be fetched")                                         \
    X(QE_WRONG_PARTITION, -20023, 400, "wrong_partition",                                      \
      "the queue has a fixed set of partitions and this is not one of them; name one of them " \
      "or send a partitionKey")                                                                \
    X(QE_CONFLICT, -20024, 409, "conflict", "modified concurrently")                           \
    X(QE_NO_KEY, -20025, 503, "no_encryption_key",                                             \
      "the queue has encryptionEnabled, but this broker has no QUEEN_ENCRYPTION_KEY")          \
    X(QE_NOT_SUPPORTED, -20016, 501, "not_supported", "not supported")                         \
    /* the PostgreSQL side */                                                                  \
    X(QE_PG_DATA, -20101, 400, "rejected_data", "the database rejected the data")              \
    X(QE_PG_SHAPE, -20102, 500, "unexpected_result", "unexpected result from the database")    \
    X(QE_PG_GONE, -20103, 503, "database_connection_lost", "the database connection was lost") \
    X(QE_PG_AWAY, -20104, 503, "database_unavailable", "the database cannot be reached")       \
    X(QE_PG_RETRY, -20105, 503, "database_busy", "the database is busy; try again")            \
    X(QE_PG_FAILED, -20106, 500, "database_error", "the database failed")                      \
    X(QE_PG_FULL, -20107, 503, "database_full", "the database has no space left")              \
    X(QE_PG_READ_ONLY, -20108, 503, "database_read_only", "the database is read-only")         \
    /* tenants of the platform */                                                              \
    X(QE_TENANT_UNKNOWN, -20401, 404, "tenant_unknown", "there is no such tenant")             \
    X(QE_TENANT_DOWN, -20402, 503, "tenant_down",                                              \
      "the tenant's database is unavailable; the server keeps retrying")                       \
    X(QE_BROKER_AWAY, -20403, 503, "broker_unavailable", "the broker cannot be reached")       \
    /* the file buffer */                                                                      \
    X(QE_BUFFER_FULL, -20301, 503, "buffer_full", "the file buffer is full; try again later")  \
    X(QE_BUFFER_FAILED, -20302, 500, "buffer_failed", "the file buffer cannot be written")     \
    /* the segment codec */                                                                    \
    X(QE_BAD_SEGMENT, -20201, 500, "bad_segment", "a stored segment is corrupt")

enum {
#define X(sym, code, http, name, text) sym = (code),
    ERR_MAP(X)
#undef X
};

const char *err_name(int code); // "bad_json"; for libuv's codes libuv's name
const char *err_text(int code); // one sentence
int err_http_status(int code);  // 503 for libuv's codes, 500 for unknown ones

// Where a person needs details (start-up, settings, SQL, invalid items) the callee also fills a
// fault. The caller may put context in front of the text, once.
struct fault {
    int code;
    char text[256];
    char sqlstate[6]; // of PostgreSQL, if it is at fault; "": none
};

// Writes the text and returns code, so that `return fault_set(f, ...)` works. f may be NULL.
// The text is always valid UTF-8, whatever the arguments are, because it is stored in databases
// and sent as JSON.
int fault_set(struct fault *f, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void fault_prefix(struct fault *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

// A bug in this program: prints the place and aborts.
void bug_at(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4) NORETURN;
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

#endif
