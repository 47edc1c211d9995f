// trigger.h: schedules checks of segments and runs of campaigns at the broker.
//
// A trigger is a message in the queue of triggers (PLATFORM_TRIGGER_QUEUE), in the partition of
// its tenant.  When it is due, the broker delivers it to one platform process.  The retry
// policy of the queue applies if it fails, and the timeline of the message shows its status.
#ifndef QUEEN_PLATFORM_TRIGGER_H
#define QUEEN_PLATFORM_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include <queen/client.h>

#include "base/buf.h"
#include "base/span.h"
#include "platform/platform_int.h"

// Called once, later.  why is NULL on success.  Otherwise the broker has refused the request
// (trigger_is_refused()), or the result is unknown because the broker did not reply.
typedef void (*trigger_cb)(void *ctx, const struct queen_error *why);
bool trigger_is_refused(const struct queen_error *why);

// Creates or changes the recurring trigger of this name.  payload: JSON.
void trigger_repeat(struct platform *p, span name, span cron, span zone, span tenant,
                    span payload, trigger_cb done, void *ctx);
void trigger_end(struct platform *p, span name, trigger_cb done, void *ctx);
// Pushes one trigger for a time, or for now (at: SPAN_NONE).  A second push with the same key
// is a duplicate.
void trigger_push(struct platform *p, span key, span at, span tenant, span payload,
                  trigger_cb done, void *ctx);

// Whether messages of tenants may go to this queue: not to the queues of the platform itself,
// whose messages act on any tenant.  A tenant chooses the queue, and the owner of its database
// can change the choice there.
bool trigger_may_deliver(const struct platform *p, span queue);
// The same for a queue in a request, whose sender must be permitted to push to it.  Returns
// false after replying.
bool trigger_check_queue(struct http_req *req, span queue);

// Names of recurring triggers: "segment:<tenant>:<id>", "campaign:<tenant>:<id>".
void trigger_put_name(struct buf *out, const char *noun, span tenant, span id);
// Payloads: {"kind":"watch","tenant":...,"id":...}
void trigger_put_payload(struct buf *out, const char *kind, span tenant, span id);

extern const struct platform_part platform_triggers; // triggers.c

#endif
