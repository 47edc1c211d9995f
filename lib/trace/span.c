// span.c: makes spans and writes them as JSON of OTLP.
#include "trace/span.h"

#include <stdlib.h>
#include <string.h>

#include "base/attrs.h"
#include "base/id.h"
#include "base/mem.h"
#include "json/write.h"

enum { TRACE_AT = 3, SPAN_AT = 36, FLAGS_AT = 53 };
enum { KIND_SERVER = 2, STATUS_ERROR = 2 }; // of OTLP

static unsigned nibble(char c) { return (unsigned)(c <= '9' ? c - '0' : c - 'a' + 10); }

static void read_hex(const char *at, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(nibble(at[2 * i]) << 4 | nibble(at[2 * i + 1]));
}

static void write_hex(char *at, const uint8_t *in, size_t n)
{
    static const char digits[] = "0123456789abcdef";

    for (size_t i = 0; i < n; i++) {
        at[2 * i] = digits[in[i] >> 4];
        at[2 * i + 1] = digits[in[i] & 15];
    }
}

void trace_place_read(span parent, struct trace_place *place, bool *sampled)
{
    read_hex(parent.ptr + TRACE_AT, place->trace, sizeof place->trace);
    read_hex(parent.ptr + SPAN_AT, place->span, sizeof place->span);
    *sampled = nibble(parent.ptr[FLAGS_AT + 1]) & 1;
}

void trace_place_write(const struct trace_place *place, char out[TRACE_PARENT_CHARS])
{
    memcpy(out, "00-", 3);
    write_hex(out + TRACE_AT, place->trace, sizeof place->trace);
    out[SPAN_AT - 1] = '-';
    write_hex(out + SPAN_AT, place->span, sizeof place->span);
    memcpy(out + FLAGS_AT - 1, "-01", 3);
}

struct trace_span *trace_span_new(void)
{
    struct trace_span *s = mem_new(struct trace_span);

    // Zeros are invalid; the last byte makes them impossible.
    id_random(s->place.trace, sizeof s->place.trace);
    id_random(s->place.span, sizeof s->place.span);
    s->place.trace[15] |= 1;
    s->place.span[7] |= 1;
    return s;
}

void trace_span_continue(struct trace_span *s, const struct trace_place *parent)
{
    memcpy(s->place.trace, parent->trace, sizeof s->place.trace);
    memcpy(s->parent, parent->span, sizeof s->parent);
    s->has_parent = true;
}

void trace_span_free(struct trace_span *s)
{
    if (s)
        free(s->links);
    free(s);
}

void trace_name_set(struct trace_name *n, span text)
{
    size_t len = text.len;

    if (len > sizeof n->text) {
        len = sizeof n->text;
        while (len > 0 && ((unsigned char)text.ptr[len] & 0xc0) == 0x80)
            len--;
    }
    if (len > 0)
        memcpy(n->text, text.ptr, len);
    n->len = (uint16_t)len;
}

void trace_links_add(struct trace_links *l, const struct trace_place *place, bool sampled)
{
    if (l->n > 0 && memcmp(&l->at[l->n - 1], place, sizeof *place) == 0)
        return; // messages of one request
    l->sampled |= sampled;
    if (l->n < TRACE_MAX_LINKS)
        l->at[l->n++] = *place;
    else
        l->n_left_out++;
}

static void put_id(struct buf *out, const uint8_t *id, size_t n)
{
    char text[32];

    write_hex(text, id, n);
    buf_putc(out, '"');
    buf_put_bytes(out, text, 2 * n);
    buf_putc(out, '"');
}

// Every attribute ends with a comma; the caller removes the last one.
static void put_text(struct buf *out, const char *key, span text)
{
    if (text.len == 0)
        return;
    buf_printf(out, "{\"key\":\"%s\",\"value\":{\"stringValue\":", key);
    js_put_text(out, text);
    buf_put_lit(out, "}},");
}

static void put_int(struct buf *out, const char *key, int64_t v)
{
    buf_printf(out, "{\"key\":\"%s\",\"value\":{\"intValue\":\"%lld\"}},", key, (long long)v);
}

static span name_of(const struct trace_name *n) { return (span){n->text, n->len}; }

static void put_attributes(struct buf *out, const struct trace_span *s)
{
    buf_put_lit(out, ",\"attributes\":[");
    put_text(out, "messaging.system", SPAN("queen"));
    put_text(out, "messaging.operation.name", span_of(s->operation));
    put_text(out, "messaging.operation.type", span_of(s->category));
    put_text(out, "messaging.destination.name", name_of(&s->queue));
    put_text(out, "messaging.destination.partition.id", name_of(&s->partition));
    put_text(out, "messaging.consumer.group.name", name_of(&s->group));
    if (s->n_messages > 0)
        put_int(out, "messaging.batch.message_count", s->n_messages);
    put_text(out, "http.request.method", span_of(s->method));
    put_text(out, "http.route", span_of(s->route));
    put_int(out, "http.response.status_code", s->status);
    if (!out->failed)
        out->len--;
    buf_putc(out, ']');
}

static void put_links(struct buf *out, const struct trace_links *l)
{
    buf_put_lit(out, ",\"links\":[");
    for (unsigned i = 0; i < l->n; i++) {
        buf_put(out, i > 0 ? SPAN(",{\"traceId\":") : SPAN("{\"traceId\":"));
        put_id(out, l->at[i].trace, sizeof l->at[i].trace);
        buf_put_lit(out, ",\"spanId\":");
        put_id(out, l->at[i].span, sizeof l->at[i].span);
        buf_putc(out, '}');
    }
    buf_putc(out, ']');
    if (l->n_left_out > 0)
        buf_printf(out, ",\"droppedLinksCount\":%u", l->n_left_out);
}

void trace_span_put(const struct trace_span *s, struct buf *out)
{
    buf_put_lit(out, "{\"traceId\":");
    put_id(out, s->place.trace, sizeof s->place.trace);
    buf_put_lit(out, ",\"spanId\":");
    put_id(out, s->place.span, sizeof s->place.span);
    if (s->has_parent) {
        buf_put_lit(out, ",\"parentSpanId\":");
        put_id(out, s->parent, sizeof s->parent);
    }
    struct buf name = {0};
    buf_put(&name, span_of(s->operation));
    if (s->queue.len > 0)
        buf_putc(&name, ' ');
    buf_put(&name, name_of(&s->queue));
    buf_put_lit(out, ",\"name\":");
    js_put_text(out, buf_span(&name));
    buf_free(&name);
    buf_printf(out,
               ",\"kind\":%d,\"startTimeUnixNano\":\"%llu000\",\"endTimeUnixNano\":\"%llu000\"",
               KIND_SERVER, (unsigned long long)s->start_us, (unsigned long long)s->end_us);
    put_attributes(out, s);
    if (s->links && s->links->n > 0)
        put_links(out, s->links);
    if (s->status >= 500)
        buf_printf(out, ",\"status\":{\"code\":%d}", STATUS_ERROR);
    buf_putc(out, '}');
}
