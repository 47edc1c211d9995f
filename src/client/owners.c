// owners.c: JSON of the requests about owners, out and in.
#include "client/owners.h"

#include <stdlib.h>

#include "base/mem.h"
#include "client/codec.h"
#include "client/fail.h"
#include "json/write.h"

// Grows an array in doubles; the caller copies it into its arena at the end.
static void *room_for(void *items, unsigned n, size_t size)
{
    bool full = n == 0 || (n >= 8 && (n & (n - 1)) == 0);

    return full ? mem_realloc(items, (n == 0 ? 8 : (size_t)n * 2) * size) : items;
}

static void *keep(struct arena *a, void *items, unsigned n, size_t size)
{
    void *kept = arena_alloc(a, size * (n + 1));

    if (n > 0)
        memcpy(kept, items, size * n);
    free(items);
    return kept;
}

static void read_record(struct js *j, struct arena *a, struct owner_record *r)
{
    span key;

    js_enter_object(j);
    while (js_next_key(j, &key)) {
        span raw = js_skip(j);
        if (j->rc != 0)
            return;
        if (span_eq(key, SPAN("partition")))
            r->partition = take_text(raw, a);
        else if (span_eq(key, SPAN("owner")))
            r->owner = take_text(raw, a);
        else if (span_eq(key, SPAN("wantedBy")))
            r->wanted_by = take_text(raw, a);
        else if (span_eq(key, SPAN("epoch")))
            (void)js_int(raw, &r->epoch);
        else if (span_eq(key, SPAN("lag")))
            (void)js_int(raw, &r->lag);
        else if (span_eq(key, SPAN("expired")))
            (void)js_bool(raw, &r->expired);
    }
    if (!r->partition)
        js_fail(j, QUEEN_E_PROTOCOL, "a record without partition");
}

int owners_read(const struct queen_response *r, struct arena *a, struct owner_list *out,
                struct queen_error *err)
{
    struct js j = js_read((span){r->body, r->body_len});
    struct owner_record *records = NULL;
    unsigned n = 0;
    span key;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (!span_eq(key, SPAN("owners"))) {
            js_skip(&j);
            continue;
        }
        js_enter_array(&j);
        while (js_next_item(&j)) {
            records = room_for(records, n, sizeof *records);
            records[n] = (struct owner_record){0};
            read_record(&j, a, &records[n++]);
        }
    }
    *out = (struct owner_list){keep(a, records, n, sizeof *records), n};
    return check_json(&j, "a list of owners", err);
}

static void read_result(struct js *j, struct arena *a, struct owner_result *r)
{
    bool success = false;
    span key;

    js_enter_object(j);
    while (js_next_key(j, &key)) {
        span raw = js_skip(j);
        if (j->rc != 0)
            return;
        if (span_eq(key, SPAN("partition")))
            r->partition = take_text(raw, a);
        else if (span_eq(key, SPAN("error")))
            r->error = take_text(raw, a);
        else if (span_eq(key, SPAN("epoch")))
            (void)js_int(raw, &r->epoch);
        else if (span_eq(key, SPAN("success")))
            (void)js_bool(raw, &success);
    }
    if (!r->partition)
        js_fail(j, QUEEN_E_PROTOCOL, "a result without partition");
    else if (!success && !r->error)
        r->error = "refused";
}

int owners_read_results(const struct queen_response *r, struct arena *a,
                        struct owner_result **results, unsigned *n, struct queen_error *err)
{
    struct js j = js_read((span){r->body, r->body_len});
    struct owner_result *list = NULL;
    span key;

    *n = 0;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (!span_eq(key, SPAN("results"))) {
            js_skip(&j);
            continue;
        }
        js_enter_array(&j);
        while (js_next_item(&j)) {
            list = room_for(list, *n, sizeof *list);
            list[*n] = (struct owner_result){0};
            read_result(&j, a, &list[(*n)++]);
        }
    }
    *results = keep(a, list, *n, sizeof *list);
    return check_json(&j, "a change of owners", err);
}

int owners_read_lost(const struct queen_response *r, struct arena *a, const char ***names,
                     unsigned *n, struct queen_error *err)
{
    struct js j = js_read((span){r->body, r->body_len});
    const char **list = NULL;
    span key;

    *n = 0;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (!span_eq(key, SPAN("lost"))) {
            js_skip(&j);
            continue;
        }
        js_enter_array(&j);
        while (js_next_item(&j)) {
            const char *name = take_text(js_skip(&j), a);
            if (!name)
                continue;
            list = room_for(list, *n, sizeof *list);
            list[(*n)++] = name;
        }
    }
    *names = keep(a, list, *n, sizeof *list);
    return check_json(&j, "a renewal", err);
}

void owners_begin(struct buf *body, const char *owner)
{
    buf_putc(body, '{');
    put_field(body, "owner", owner);
    buf_put_lit(body, "\"partitions\":[");
}

void owners_add(struct buf *body, const char *partition, int64_t epoch,
                const char *transaction_id, bool before)
{
    if (body->len > 0 && body->ptr[body->len - 1] == '}')
        buf_putc(body, ',');
    buf_putc(body, '{');
    put_field(body, "partition", partition);
    put_field(body, "transactionId", transaction_id);
    if (before)
        buf_put_lit(body, "\"before\":true,");
    buf_put_lit(body, "\"epoch\":");
    buf_put_i64(body, epoch);
    buf_putc(body, '}');
}

void owners_end(struct buf *body, unsigned expiry_s, bool steal, bool manual)
{
    buf_putc(body, ']');
    if (expiry_s > 0) {
        buf_put_lit(body, ",\"expirySeconds\":");
        buf_put_u64(body, expiry_s);
    }
    if (steal)
        buf_put_lit(body, ",\"steal\":true");
    if (manual)
        buf_put_lit(body, ",\"manualCheckpoints\":true");
    buf_putc(body, '}');
}
