// codec.h: encoding shared by the requests for messages.
#ifndef QUEEN_CLIENT_CODEC_H
#define QUEEN_CLIENT_CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "call.h"
#include "queen/message.h"
#include "json/scan.h"

// ---- writing ----

// "name": "value" followed by a comma; nothing if value is NULL.
void put_field(struct buf *out, const char *name, const char *value);
// The same for arbitrary text: bytes that are not UTF-8 become '?'; otherwise the server would
// refuse the whole request.
void put_free_text(struct buf *out, const char *name, const char *value);
// &name=value with the value escaped; nothing if it is NULL. The first one gets a '?'.
void put_query(struct buf *out, const char *name, const char *value);
void put_query_u64(struct buf *out, const char *name, uint64_t value);
// One item of a push, as an object. Assigns a transaction id if there is none.
int put_message(struct buf *out, const struct queen_message *m, size_t index,
                struct queen_error *err);
const char *ack_status_name(enum queen_ack_status status);

// ---- reading ----

// Text of a string value, in the arena; NULL for other types.
const char *take_text(span raw, struct arena *a);
// 0, or QUEEN_E_PROTOCOL if the response is malformed.
MUST_USE int check_json(const struct js *j, const char *what, struct queen_error *err);

// ---- sending ----

// Starts req or, if err->code != 0, a call that fails with it. Frees body, which holds req's
// body.
void submit(struct queen_client *c, struct queen_request *req, struct buf *body,
            const struct queen_error *err, queen_response_cb done, void *ctx);
// The same, blocking: returns the response, or NULL with err. A status of 400 or above is a
// failure.
struct queen_response *ask(struct queen_client *c, struct queen_request *req, struct buf *body,
                           struct queen_error *err);

#endif
