// message_fields.c: writes a message's further fields.
#include "api/message_fields.h"

#include "base/buf.h"
#include "json/write.h"

static void message_fields_begin(struct buf *out, span name)
{
    buf_put(out, out->len > 1 ? SPAN(",\"") : SPAN("\""));
    buf_put(out, name);
    buf_put_lit(out, "\":");
}

span message_fields_add(struct arena *a, span meta, const struct message_fields *f)
{
    struct buf out = {0};

    if (!f->correlation.ptr && !f->type.ptr && !f->policy.ptr)
        return meta;
    if (meta.len > 2)
        buf_put(&out, (span){meta.ptr, meta.len - 1});
    else
        buf_putc(&out, '{');
    if (f->correlation.ptr) {
        message_fields_begin(&out, SPAN("correlationId"));
        js_put_text(&out, f->correlation);
    }
    if (f->type.ptr) {
        message_fields_begin(&out, SPAN("eventType"));
        js_put_text(&out, f->type);
    }
    if (f->policy.ptr) {
        message_fields_begin(&out, SPAN("retryPolicy"));
        buf_put(&out, f->policy);
    }
    buf_putc(&out, '}');
    span copy = out.failed ? SPAN_NONE : arena_copy(a, buf_span(&out));
    buf_free(&out);
    return copy;
}
