// api_int.h: what the endpoints share among themselves: reading bodies, writing answers.
#ifndef QUEEN_API_API_INT_H
#define QUEEN_API_API_INT_H

#include <stdbool.h>
#include <stdint.h>

#include "api/api.h"
#include "auth/rules.h"
#include "base/arena.h"
#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/span.h"
#include "broker/broker.h"
#include "http/req.h"
#include "json/scan.h"

#define API_QUEUE_MODE SPAN("__QUEUE_MODE__")
enum { API_NAME_CHARS = 255 };

// Why the server does not work; only for one that does not.
span api_reason(const struct api *api);
// Answers a failed operation: the sentence of why, if there is one, else that of the code.
void api_reply_failed(struct http_req *req, int status, const struct fault *why);

// Before the answer, for clients that requested timing: how long the broker and the database
// took.
void api_note_db(struct http_req *req, const struct op *op);

// Text from the outside that is going to be a name: UTF-8, no NUL, at most 255 characters.
// SPAN_NONE passes.
bool api_is_name(span text);

// ---- reading a body ----
//
// A cursor that tracks its element, so that error texts can name it:
//      "item 3: queue must be a string"
//      "Invalid JSON at byte 57, item 3: half of a surrogate pair"
// The first mistake sticks and ends all loops, as with struct js itself.
struct body {
    struct js j;
    struct arena *arena;
    const char *noun;   // of the elements: "item"
    span producer;      // the authenticated sender: stored with items; SPAN_NONE: none
    int64_t at;         // index of the element under way; -1: outside
    span meta;          // of items that bring no trace context of their own; SPAN_NONE: none
    int64_t item;       // item within it ("operation 1, item 0"); -1: none
    bool has_keys;      // some item is by_key
    unsigned max_items; // elements of one list
    unsigned n_failures, max_failures; // acknowledgements other than completed; 0: any number
    enum known_rule unknown;           // what happens to members that nobody reads
    struct fault fault;                // the error, once body_finish() has failed
};
struct body body_open(struct http_req *req, const char *noun);
// A mistake in meaning, not in grammar; ends the reading.
void body_bad(struct body *b, const char *fmt, ...) PRINTF_LIKE(2, 3);
MUST_USE int body_finish(struct body *b);

void body_enter_object(struct body *b);
// Reads an object, the last value of each named field into raw (SPAN_NONE: not there).  Other
// fields are a mistake or skipped, as the route says.
void body_read_fields(struct body *b, const span *names, unsigned n, span *raw);
// A mistake if the member is not known and the route does not let it pass.
void body_check_member(struct body *b, span key, const struct known_names *known);
unsigned body_field_of(span key, const span *names, unsigned n); // n: none of them

// Raw values into text.  Missing and null give SPAN_NONE; other types are a mistake.
span body_text(struct body *b, span raw, const char *name);
// The same, at most 255 characters, and "" counts as missing.
span body_name(struct body *b, span raw, const char *name);
// Anything but a non-empty string counts as missing.
span body_text_or_none(struct body *b, span raw);
// A string that is not empty; SPAN_NONE for null, a missing one and an empty one.
span body_option(struct body *b, span raw, const char *name);

// The fields of an item, in this order.
enum {
    ITEM_QUEUE,
    ITEM_PARTITION,
    ITEM_PAYLOAD,
    ITEM_TXID,
    ITEM_TRACE,
    ITEM_TRACEPARENT,
    ITEM_TRACESTATE,
    ITEM_SCHEDULED_AT,
    ITEM_DELAY,
    ITEM_CORRELATION,
    ITEM_EVENT_TYPE,
    ITEM_RETRY_POLICY,
    ITEM_PARTITION_KEY,
    ITEM_CONCURRENCY_KEY,
    ITEM_PRIORITY,
    ITEM_FIELDS
};
extern const span body_item_names[ITEM_FIELDS];
// raw -> item, with its key; no_payload is taken when none was sent.
void body_take_item(struct body *b, const span raw[ITEM_FIELDS], span no_payload,
                    struct push_item *item);

// scheduledAt and delaySeconds of an item; neither: at once.  body_time.c
void body_take_time(struct body *b, span at, span delay, struct push_item *item);

// The fields of an acknowledgement, in this order.
enum {
    ACK_TXID,
    ACK_PARTITION,
    ACK_STATUS,
    ACK_LEASE,
    ACK_GROUP,
    ACK_ERROR,
    ACK_ERROR_CODE,
    ACK_WORKER,
    ACK_RETRY_AFTER,
    ACK_TRIES,
    ACK_FIELDS
};
extern const span body_ack_names[ACK_FIELDS];
// raw -> entry; *status is the text that was sent (for an unknown one), *group the entry's own.
void body_take_ack(struct body *b, const span raw[ACK_FIELDS], struct ack_entry *entry,
                   span *status, span *group);

// Growable array in the arena: room for one more behind the n elements at items.  `guess` is
// how many there may be in all; it only saves copying.  NULL: there are more than a request may
// have, or they need more memory; the reading has ended.
MUST_USE void *body_grow(struct body *b, void *items, unsigned n, unsigned *cap, size_t size,
                         size_t guess);

// ---- writing ----

// Appending to memory that was reserved: no checks.
static inline char *put_span(char *at, span s)
{
    if (s.len > 0)
        memcpy(at, s.ptr, s.len);
    return at + s.len;
}
#define put_lit(at, literal) \
    ((char *)memcpy((at), "" literal, sizeof(literal) - 1) + (sizeof(literal) - 1))
char *put_u64(char *at, uint64_t v);            // at most 20 bytes
char *put_uuid(char *at, const uint8_t id[16]); // 36 bytes

// The text as it stands between the quotes of a JSON string.  Borrowed from text when nothing
// needs an escape, which is known without looking when it lies inside body (where it stood in
// a string without escapes); else escaped into the arena.
span api_json_text(struct arena *a, span text, span body);
bool api_needs_escape(span text);

// The results of items that are queued or duplicates, as push answers them.  body: see
// api_json_text().
void push_put_results(struct buf *out, struct arena *arena, span body,
                      const struct push_item *items, unsigned n);

// ---- the endpoints ----

extern const struct http_route api_push, api_pop, api_pop_queue, api_pop_partition, api_ack,
    api_ack_batch, api_transaction, api_extend, api_configure, api_health, api_live, api_ready,
    api_metrics, api_prometheus, api_cycle;
extern const struct http_route api_identity;                       // identity.c
extern const struct http_route api_openapi;                        // openapi.c
extern const struct http_route api_push_queue, api_push_partition; // cloudevents.c
// migration.c
extern const struct http_route api_migration_test, api_migration_start, api_migration_status,
    api_migration_validate, api_migration_reset;

// keys.c
extern const struct http_route api_create_key, api_revoke_key;
void auth_expose(const struct api_shared *s, struct buf *out);  // for Prometheus
void audit_expose(const struct api_shared *s, struct buf *out); // audit.c

// system.c
extern const struct http_route api_maintenance_get, api_maintenance_set,
    api_pop_maintenance_get, api_pop_maintenance_set, api_buffers, api_settings;

// shared_state.c
extern const struct http_route api_shared_state, api_shared_state_stats,
    api_inter_instance_stats, api_notify;
void shared_state_put(const struct api_shared *shared, struct buf *out);    // one JSON object
void shared_state_expose(const struct api_shared *shared, struct buf *out); // for Prometheus
void retries_expose(const struct api_shared *s, struct buf *out);           // retry_metrics.c
void traces_expose(const struct api_shared *s, struct buf *out);            // trace_metrics.c

#endif
