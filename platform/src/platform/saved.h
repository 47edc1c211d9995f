// saved.h: what the endpoints about saved segments share.
#ifndef QUEEN_PLATFORM_SAVED_H
#define QUEEN_PLATFORM_SAVED_H

#include "platform/tenant_task.h"
#include "platform/trigger.h"

// A task for the tenant of the path; NULL: answered.
struct tenant_task *saved_task(struct http_req *req, const struct pg_statement *statement);
// Starts it with {"segment": ...} from the path and what the query says; NULL is fine.
void saved_task_start(struct tenant_task *t);

// What a function answered, kept until the broker has answered too: for trigger_cb.
struct followed;
struct followed *followed_new(struct tenant_task *t, int status, span body);
void followed_on_broker(void *followed, const struct queen_error *why);

// Has the broker tell us to look at a segment every so often.
void segment_watch_start(struct platform *p, span tenant, span id, int64_t every_s,
                         trigger_cb done, void *ctx);
// Ends that, then answers with what the function said.
void segment_watch_end(struct tenant_task *t, int status, span body, const char *id_member);

#endif
