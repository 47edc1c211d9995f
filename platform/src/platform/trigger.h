// trigger.h: what the broker keeps for us: when a segment is looked at, when a campaign runs.
//
// A trigger is a message of the queue of triggers (PLATFORM_TRIGGER_QUEUE), in the partition of
// its tenant.  The broker delivers it when it is due, once to one of the platform's processes,
// again by the queue's retry policy if it fails, and tells its status by the timeline.
#ifndef QUEEN_PLATFORM_TRIGGER_H
#define QUEEN_PLATFORM_TRIGGER_H

#include <stdbool.h>
#include <stdint.h>

#include <queen/client.h>

#include "base/buf.h"
#include "base/span.h"
#include "platform/platform_int.h"

// Called once, later.  why: NULL when the broker has done it.  Otherwise it has refused it
// (trigger_is_refused()), or it could not be asked and may have done it all the same.
typedef void (*trigger_cb)(void *ctx, const struct queen_error *why);
bool trigger_is_refused(const struct queen_error *why);

// A recurring trigger; one of the name is changed.  payload: JSON.
void trigger_repeat(struct platform *p, span name, span cron, span zone, span tenant,
                    span payload, trigger_cb done, void *ctx);
void trigger_end(struct platform *p, span name, trigger_cb done, void *ctx);
// One trigger, at a time or at once (at: SPAN_NONE).  A second one of the key is the first.
void trigger_push(struct platform *p, span key, span at, span tenant, span payload,
                  trigger_cb done, void *ctx);

// "segment:<tenant>:<id>", "campaign:<tenant>:<id>": names of recurring triggers.
void trigger_put_name(struct buf *out, const char *noun, span tenant, span id);
// Payloads: {"kind":"watch","tenant":...,"id":...}
void trigger_put_payload(struct buf *out, const char *kind, span tenant, span id);

extern const struct platform_part platform_triggers; // triggers.c

#endif
