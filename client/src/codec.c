// codec.c: encodes and decodes fields of messages.
#include "codec.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "fail.h"
#include "json/write.h"

void put_field(struct buf *out, const char *name, const char *value)
{
    if (!value)
        return;
    buf_putc(out, '"');
    buf_put(out, span_of(name));
    buf_put_lit(out, "\":");
    js_put_text(out, span_of(value));
    buf_putc(out, ',');
}

void put_free_text(struct buf *out, const char *name, const char *value)
{
    span text = span_of(value);

    if (!value || str_is_utf8(text)) {
        put_field(out, name, value);
        return;
    }
    char *clean = mem_new_array(char, text.len + 1);
    str_clean_utf8(clean, text.len + 1, text);
    put_field(out, name, clean);
    free(clean);
}

void put_query(struct buf *out, const char *name, const char *value)
{
    if (!value)
        return;
    char *escaped = queen_escape(value);
    buf_putc(out, memchr(out->ptr, '?', out->len) ? '&' : '?');
    buf_put(out, span_of(name));
    buf_putc(out, '=');
    buf_put(out, span_of(escaped));
    free(escaped);
}

void put_query_u64(struct buf *out, const char *name, uint64_t value)
{
    buf_putc(out, memchr(out->ptr, '?', out->len) ? '&' : '?');
    buf_put(out, span_of(name));
    buf_putc(out, '=');
    buf_put_u64(out, value);
}

// The text is sent unchanged, so it must be exactly one JSON value.
static int check_json_text(span text, const char *what, size_t index, struct queen_error *err)
{
    struct js j = js_read(text);

    js_skip(&j);
    if (js_finish(&j) == 0)
        return 0;
    return fail_set(err, QUEEN_E_ARGUMENT, "message %zu: the %s is not JSON at byte %zu: %s",
                    index, what, js_offset(&j), j.why ? j.why : "more text follows");
}

int put_message(struct buf *out, const struct queen_message *m, size_t index,
                struct queen_error *err)
{
    span payload = SPAN("null");
    char id[37];

    if (!m->queue)
        return fail_set(err, QUEEN_E_ARGUMENT, "message %zu: queue is missing", index);
    if (m->payload)
        payload = (span){m->payload, m->payload_len > 0 ? m->payload_len : strlen(m->payload)};
    int rc = check_json_text(payload, "payload", index, err);
    if (rc != 0)
        return rc;
    if (m->scheduled_at && m->delay_ms > 0)
        return fail_set(err, QUEEN_E_ARGUMENT,
                        "message %zu: scheduled_at and delay_ms exclude each other", index);
    if (m->retry_policy) {
        rc = check_json_text(span_of(m->retry_policy), "retry policy", index, err);
        if (rc != 0)
            return rc;
    }
    if (!m->transaction_id)
        queen_new_id(id);
    buf_putc(out, '{');
    put_field(out, "queue", m->queue);
    put_field(out, "partition", m->partition);
    put_field(out, "partitionKey", m->partition_key);
    put_field(out, "concurrencyKey", m->concurrency_key);
    if (m->priority > 0)
        buf_printf(out, "\"priority\":%u,", m->priority);
    put_field(out, "transactionId", m->transaction_id ? m->transaction_id : id);
    put_field(out, "traceId", m->trace_id);
    put_field(out, "traceparent", m->traceparent);
    put_field(out, "scheduledAt", m->scheduled_at);
    if (m->delay_ms > 0) // not %f, which depends on the locale
        buf_printf(out, "\"delaySeconds\":%" PRIu64 ".%03u,", m->delay_ms / 1000,
                   (unsigned)(m->delay_ms % 1000));
    put_field(out, "correlationId", m->correlation_id);
    put_field(out, "eventType", m->event_type);
    if (m->retry_policy)
        buf_printf(out, "\"retryPolicy\":%s,", m->retry_policy);
    buf_put_lit(out, "\"payload\":");
    buf_put(out, payload);
    buf_putc(out, '}');
    return out->failed ? fail_set(err, QUEEN_E_MEMORY, "no memory for the request") : 0;
}

const char *ack_status_name(enum queen_ack_status status)
{
    static const char *const names[] = {"completed", "failed", "dlq", "retry"};

    return names[(unsigned)status < countof(names) ? status : QUEEN_ACK_RETRY];
}

const char *take_text(span raw, struct arena *a)
{
    return js_type_of(raw) == JS_STRING ? arena_cstr(a, js_text(raw, a)) : NULL;
}

int check_json(const struct js *j, const char *what, struct queen_error *err)
{
    if (js_finish(j) == 0)
        return 0;
    return fail_set(err, QUEEN_E_PROTOCOL, "the answer to %s cannot be read at byte %zu: %s",
                    what, js_offset(j), j->why ? j->why : "more text follows");
}

void submit(struct queen_client *c, struct queen_request *req, struct buf *body,
            const struct queen_error *err, queen_response_cb done, void *ctx)
{
    struct call *call =
        err->code != 0 ? call_new_failed(c, err, done, ctx) : call_new(c, req, done, ctx);

    buf_free(body);
    call_submit(call);
}

struct queen_response *ask(struct queen_client *c, struct queen_request *req, struct buf *body,
                           struct queen_error *err)
{
    struct queen_response *r = err->code == 0 ? queen_request(c, req, err) : NULL;

    buf_free(body);
    if (r && err->code != 0) {
        queen_response_free(r);
        r = NULL;
    }
    return r;
}
