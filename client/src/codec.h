// codec.h: what the requests of messages have in common.
#ifndef QUEEN_CLIENT_CODEC_H
#define QUEEN_CLIENT_CODEC_H

#include "base/arena.h"
#include "base/buf.h"
#include "call.h"
#include "queen/message.h"
#include "json/scan.h"

// ---- writing ----

// "name": "value", with a comma behind it; nothing when value is NULL.
void put_field(struct buf *out, const char *name, const char *value);
// The same for text that may be anything: bytes that are not UTF-8 become '?', or the server
// would refuse the whole request.
void put_free_text(struct buf *out, const char *name, const char *value);
// &name=value with the value escaped; nothing when it is NULL.  The first one gets a '?'.
void put_query(struct buf *out, const char *name, const char *value);
void put_query_u64(struct buf *out, const char *name, uint64_t value);
// One item of a push: an object.  Makes the transaction id where there is none.
int put_message(struct buf *out, const struct queen_message *m, size_t index,
                struct queen_error *err);
const char *ack_status_name(enum queen_ack_status status);

// ---- reading ----

// Text of a string value, in the arena; NULL when it is something else.
const char *take_text(span raw, struct arena *a);
// 0, or QUEEN_E_PROTOCOL: the answer is not what it should be.
MUST_USE int check_json(const struct js *j, const char *what, struct queen_error *err);

// ---- sending ----

// Starts req, or, with err->code != 0, a call that fails with it.  Frees body, in which req's
// body lies.
void submit(struct queen_client *c, struct queen_request *req, struct buf *body,
            const struct queen_error *err, queen_response_cb done, void *ctx);
// The same, blocking: the answer, or NULL with err.  An answer of 400 and above is a failure.
struct queen_response *ask(struct queen_client *c, struct queen_request *req, struct buf *body,
                           struct queen_error *err);

#endif
