// message.c: formats delivered messages for people and programs.
#include "cli/message.h"

#include <stdio.h>

#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"
#include "json/write.h"

void message_show(struct cli *cli, span object, bool data_only)
{
    static const struct column time = {"", "createdAt", CELL_TIME};
    static const struct column partition = {"", "partition", CELL_TEXT};
    static const struct column id = {"", "transactionId", CELL_TEXT};
    const struct out *o = &cli->out;
    span data = pick(object, "data");
    struct buf b = {0};

    if (!data.ptr)
        data = pick(object, "payload"); // the name in the read endpoints
    if (data_only) {
        out_line(data);
        return;
    }
    if (o->json) {
        out_line(object);
        return;
    }
    buf_put(&b, span_of(out_on(o, OUT_DIM)));
    cell_put(&b, object, &time, cli);
    buf_put(&b, span_of(out_off(o)));
    buf_put_lit(&b, "  ");
    buf_put(&b, span_of(out_on(o, OUT_CYAN)));
    cell_put(&b, object, &partition, cli);
    buf_put(&b, span_of(out_off(o)));
    buf_put_lit(&b, "  ");
    buf_put(&b, span_of(out_on(o, OUT_DIM)));
    cell_put(&b, object, &id, cli);
    buf_put(&b, span_of(out_off(o)));
    buf_put_lit(&b, "  ");
    buf_put(&b, data);
    out_line(buf_span(&b));
    buf_free(&b);
}

static void message_put_field(struct buf *b, const char *name, const char *value)
{
    buf_printf(b, ",\"%s\":", name);
    js_put_text_or_null(b, span_of(value));
}

void message_write(struct buf *b, const struct queen_delivery *d)
{
    buf_put_lit(b, "{\"id\":");
    js_put_text(b, span_of(d->id));
    message_put_field(b, "transactionId", d->transaction_id);
    message_put_field(b, "queue", d->queue);
    message_put_field(b, "partition", d->partition);
    message_put_field(b, "partitionId", d->partition_id);
    message_put_field(b, "createdAt", d->created_at);
    message_put_field(b, "traceId", d->trace_id);
    if (d->traceparent)
        message_put_field(b, "traceparent", d->traceparent);
    message_put_field(b, "producerSub", d->producer_sub);
    message_put_field(b, "consumerGroup", d->group);
    if (d->correlation_id)
        message_put_field(b, "correlationId", d->correlation_id);
    if (d->event_type)
        message_put_field(b, "eventType", d->event_type);
    if (d->first_failed_at)
        message_put_field(b, "firstFailedAt", d->first_failed_at);
    if (d->last_error)
        message_put_field(b, "lastError", d->last_error);
    buf_printf(b, ",\"attempt\":%d,\"retryCount\":%d,\"data\":", d->attempt, d->retry_count);
    buf_put(b, (span){d->data, d->data_len});
    buf_putc(b, '}');
}
