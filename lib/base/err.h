// err.h: one number for every way to fail.
//
// A function that can fail returns int: 0, or a negative code.  Codes of libuv
// (UV_ECONNRESET, ...) pass through untouched; ours start at -20001.  A code
// carries its HTTP status and its stable name for clients, so no caller ever
// chooses a status by hand.
#ifndef QUEEN_BASE_ERR_H
#define QUEEN_BASE_ERR_H

#include "base/attrs.h"

#define ERR_MAP(X)                                                                             \
    X(QE_BAD_JSON, -20001, 400, "bad_json", "Invalid JSON")                                    \
    X(QE_BAD_REQUEST, -20002, 400, "bad_request", "the request is malformed")                  \
    X(QE_BAD_PARAM, -20003, 400, "bad_param", "a parameter has a wrong value")                 \
    X(QE_NOT_FOUND, -20004, 404, "not_found", "not found")                                     \
    X(QE_METHOD, -20005, 405, "method_not_allowed", "this path does not take that method")     \
    X(QE_TOO_LARGE, -20006, 413, "too_large", "the body is larger than this server accepts")   \
    X(QE_HEADERS_TOO_LARGE, -20007, 431, "headers_too_large", "the header block is too large") \
    X(QE_TIMEOUT, -20008, 408, "timeout", "the request did not arrive in time")                \
    X(QE_URI_TOO_LONG, -20009, 414, "uri_too_long", "the address is too long")                 \
    X(QE_BUSY, -20010, 429, "busy", "too much is waiting; try again")                          \
    X(QE_QUEUE_FULL, -20011, 429, "queue_full", "the queue is full")                           \
    X(QE_NO_MEMORY, -20012, 503, "no_memory", "not enough memory for this request")            \
    X(QE_STOPPING, -20013, 503, "stopping", "the server is stopping; try again")               \
    X(QE_INTERNAL, -20014, 500, "internal", "unexpected failure")                              \
    X(QE_CONF, -20015, 500, "bad_configuration", "a setting has a wrong value")                \
    X(QE_UNSUPPORTED, -20017, 415, "unsupported_media", "this kind of body is not understood") \
    X(QE_NOT_ACCEPTABLE, -20018, 406, "not_acceptable", "no such kind of answer")              \
    X(QE_FORBIDDEN_PATH, -20019, 403, "forbidden_path", "the path leaves its root")            \
    X(QE_UNAUTHORIZED, -20020, 401, "unauthorized", "a valid token is needed")                 \
    X(QE_FORBIDDEN, -20021, 403, "forbidden", "the token does not allow that")                 \
    X(QE_KEYS_AWAY, -20022, 503, "keys_away", "the keys of tokens cannot be fetched now")      \
    X(QE_WRONG_PARTITION, -20023, 400, "wrong_partition",                                      \
      "the queue has a fixed set of partitions and this is none of them; name one, or give a " \
      "partitionKey")                                                                          \
    X(QE_CONFLICT, -20024, 409, "conflict", "somebody else was first")                         \
    X(QE_NOT_SUPPORTED, -20016, 501, "not_supported", "not supported")                         \
    /* the PostgreSQL side */                                                                  \
    X(QE_PG_DATA, -20101, 400, "rejected_data", "the database rejected the data")              \
    X(QE_PG_SHAPE, -20102, 500, "odd_answer", "a procedure answered oddly")                    \
    X(QE_PG_GONE, -20103, 503, "database_gone", "the database connection was lost")            \
    X(QE_PG_AWAY, -20104, 503, "database_away", "the database cannot be reached")              \
    X(QE_PG_RETRY, -20105, 503, "database_busy", "the database asks to try again")             \
    X(QE_PG_FAILED, -20106, 500, "database_error", "the database failed")                      \
    X(QE_PG_FULL, -20107, 503, "database_full", "the database has no space left")              \
    X(QE_PG_READ_ONLY, -20108, 503, "database_read_only", "the database is read-only")         \
    /* tenants of the platform */                                                              \
    X(QE_TENANT_UNKNOWN, -20401, 404, "tenant_unknown", "there is no such tenant")             \
    X(QE_TENANT_DOWN, -20402, 503, "tenant_down",                                              \
      "the tenant's database is down; it is tried again in the background")                    \
    X(QE_BROKER_AWAY, -20403, 503, "broker_away", "the broker cannot be reached")              \
    /* the file buffer */                                                                      \
    X(QE_BUFFER_FULL, -20301, 503, "buffer_full", "the file buffer is full; try again later")  \
    X(QE_BUFFER_FAILED, -20302, 500, "buffer_failed", "the file buffer cannot be written")     \
    /* the segment codec */                                                                    \
    X(QE_BAD_SEGMENT, -20201, 500, "bad_segment", "a stored segment is damaged")

enum {
#define X(sym, code, http, name, text) sym = (code),
    ERR_MAP(X)
#undef X
};

const char *err_name(int code); // "bad_json"; for libuv's codes its own name
const char *err_text(int code); // one sentence
int err_http_status(int code);  // 503 for libuv's codes, 500 for unknown ones

// Where a person needs the particulars (start-up, settings, SQL, bad items) the callee
// also fills a fault.  The caller may add context in front, once.
struct fault {
    int code;
    char text[256];
};

// Writes the sentence and returns code, so that `return fault_set(f, ...)` works.  f may be
// NULL.  The text is always UTF-8, whatever the arguments are: it goes into databases and JSON.
int fault_set(struct fault *f, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);
void fault_prefix(struct fault *f, const char *fmt, ...) PRINTF_LIKE(2, 3);

// Our own mistake: say where, dump core.
void bug_at(const char *file, int line, const char *fmt, ...) PRINTF_LIKE(3, 4) NORETURN;
#define BUG(...) bug_at(__FILE__, __LINE__, __VA_ARGS__)

#endif
