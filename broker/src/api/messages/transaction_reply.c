// transaction_reply.c: the outcome of a transaction as JSON.
#include "api/messages/transaction_int.h"
#include "base/str.h"
#include "json/write.h"

static unsigned steps_done(const struct tx *t, bool committed);
static void transaction_put_error(struct buf *out, const struct tx *t);
static void put_push(struct buf *out, const struct tx *t, const struct push_item *item,
                     bool ok);
static void transaction_put_ack(struct buf *out, const struct tx *t,
                                const struct ack_entry *entry, bool ok);

void tx_reply(struct tx *t, bool committed)
{
    unsigned n = steps_done(t, committed);
    struct buf out = {0};

    buf_put_lit(&out, "{\"transactionId\":\"");
    buf_put_uuid(&out, t->id);
    buf_put_lit(&out, "\",\"success\":");
    js_put_bool(&out, committed);
    if (!committed) {
        buf_put_lit(&out, ",\"error\":");
        transaction_put_error(&out, t);
    }
    buf_put_lit(&out, ",\"results\":[");
    for (unsigned i = 0; i < n; i++) {
        bool ok = committed || i + 1 < n;
        buf_printf(&out, "%s{\"index\":%u,\"type\":", i > 0 ? "," : "", i);
        switch (t->steps[i].kind) {
        case TX_PUSH:
            put_push(&out, t, &t->op.items[t->steps[i].index], ok);
            break;
        case TX_ACK:
            transaction_put_ack(&out, t, &t->op.entries[t->steps[i].index], ok);
            break;
        default:
            js_put_text(&out, t->unknown_type);
            buf_put_lit(&out, ",\"success\":false,\"error\":");
            transaction_put_error(&out, t);
            buf_putc(&out, '}');
        }
    }
    buf_put_lit(&out, "]}");
    http_reply_json(t->req, 200, &out);
}

// How many steps the answer lists: all, or up to the one at fault; none if it is unknown.
static unsigned steps_done(const struct tx *t, bool committed)
{
    if (committed || t->refused)
        return t->n_steps;
    for (unsigned i = 0; i < t->n_steps; i++) {
        const struct tx_step *s = &t->steps[i];
        int failed = s->kind == TX_PUSH ? t->op.failed_item : t->op.failed_entry;
        if (failed >= 0 && s->index == (unsigned)failed)
            return i + 1;
    }
    return 0;
}

static void transaction_put_error(struct buf *out, const struct tx *t)
{
    span given = t->refused ? (t->bad_status.ptr ? t->bad_status : t->unknown_type) : SPAN_NONE;

    buf_putc(out, '"');
    if (t->refused) {
        buf_put(out, t->why);
        buf_put_lit(out, ": ");
        js_put_escaped(out, given);
    } else {
        js_put_escaped(out, t->op.error.len > 0 ? t->op.error : SPAN("Transaction failed"));
    }
    buf_putc(out, '"');
}

static void put_schedule(struct buf *out, const struct push_item *item)
{
    char due[STR_TS_MS];

    str_format_ts_ms(item->due_us, due);
    buf_put_lit(out, ",\"status\":\"scheduled\",\"scheduleId\":\"");
    buf_put_uuid(out, item->message_id);
    buf_put_lit(out, "\",\"scheduledAt\":\"");
    buf_put_bytes(out, due, sizeof due);
    buf_putc(out, '"');
}

// After a rollback, report ids only if the database had already assigned them.
static void put_push(struct buf *out, const struct tx *t, const struct push_item *item, bool ok)
{
    buf_put_lit(out, "\"push\",\"success\":");
    js_put_bool(out, ok);
    buf_put_lit(out, ",\"transactionId\":");
    if (item->txid.ptr) {
        js_put_text(out, item->txid);
    } else {
        buf_putc(out, '"');
        buf_put_uuid(out, item->key);
        buf_putc(out, '"');
    }
    if (ok && (item->status == PUSH_QUEUED || item->status == PUSH_SCHEDULED)) {
        buf_put_lit(out, ",\"messageId\":\"");
        buf_put_uuid(out, item->message_id);
        buf_put_lit(out, "\",\"partitionId\":\"");
        buf_put_uuid(out, item->partition_id);
        buf_putc(out, '"');
        if (item->status == PUSH_SCHEDULED)
            put_schedule(out, item);
    } else {
        buf_put_lit(out, ",\"messageId\":null,\"partitionId\":null");
    }
    if (!ok) {
        buf_put_lit(out, ",\"error\":");
        transaction_put_error(out, t);
    }
    buf_put_lit(out, ",\"queueName\":");
    js_put_text(out, item->queue);
    buf_putc(out, '}');
}

static void transaction_put_ack(struct buf *out, const struct tx *t,
                                const struct ack_entry *entry, bool ok)
{
    buf_put_lit(out, "\"ack\",\"success\":");
    js_put_bool(out, ok);
    buf_put_lit(out, ",\"transactionId\":");
    js_put_text(out, entry->txid);
    buf_put_lit(out, ",\"error\":");
    if (ok)
        buf_put_lit(out, "null");
    else
        transaction_put_error(out, t);
    buf_put_lit(out, ",\"dlq\":");
    js_put_bool(out, ok && entry->dead);
    buf_putc(out, '}');
}
