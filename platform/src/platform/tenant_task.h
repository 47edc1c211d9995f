// tenant_task.h: endpoints that call one SQL function of the tenant's database.
//
//       JSON object ──► statement($1) ──► status, body ──► the reply
//
// For PostgreSQL tenants; other tenants get an error.
#ifndef QUEEN_PLATFORM_TENANT_TASK_H
#define QUEEN_PLATFORM_TENANT_TASK_H

#include "pg/pool.h"
#include "platform/platform_int.h"
#include "tenant/pools.h"

// In the request's arena.
struct tenant_task {
    struct http_req *req;
    span tenant;
    const struct pg_statement *statement;
    // Called with the result of the function; body is borrowed for the call.  It replies to the
    // request, immediately or later.  NULL: the result is the reply.
    void (*done)(struct tenant_task *t, int http_status, span body);
    // Called instead if the function could not be executed; it replies.  NULL: the reply is the
    // error.
    void (*failed)(struct tenant_task *t, int status, const struct fault *why);
    void *owner;

    struct tenant_want want; // private from here on
    struct tenant_ref *ref;
    struct pg_params params;
    struct pg_call call;
};

// args: a JSON object; copied.
void tenant_task_start(struct tenant_task *t, span args);

// Appends a parameter of the path or the query to an object: ,"name":"value".  An absent query
// parameter is omitted.  Returns false after replying with an error.
bool tenant_task_put_path(struct http_req *req, struct buf *out, unsigned i, const char *name);
void tenant_task_put_query(struct http_req *req, struct buf *out, const char *name);
// The same for a whole number.
bool tenant_task_put_count(struct http_req *req, struct buf *out, const char *name,
                           int64_t most);

#endif
