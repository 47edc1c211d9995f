// saved.h: the functions that the endpoints for saved segments share.
#ifndef QUEEN_PLATFORM_SAVED_H
#define QUEEN_PLATFORM_SAVED_H

#include "platform/tenant_task.h"
#include "platform/trigger.h"

// Creates a task for the tenant of the path.  Returns NULL after replying with an error.
struct tenant_task *saved_task(struct http_req *req, const struct pg_statement *statement);
// Starts it with {"segment": ...} from the path and the query parameters.  t may be NULL.
void saved_task_start(struct tenant_task *t);

// The reply of a SQL function, kept until the broker has replied too; for trigger_cb.
struct pending_reply;
struct pending_reply *pending_reply_new(struct tenant_task *t, int status, span body);
void pending_reply_on_broker(void *pending, const struct queen_error *why);

// Schedules regular checks of a segment at the broker.
void segment_watch_start(struct platform *p, span tenant, span id, int64_t every_s,
                         trigger_cb done, void *ctx);
// Ends them, then replies with the result of the function.
void segment_watch_end(struct tenant_task *t, int status, span body, const char *id_member);

#endif
