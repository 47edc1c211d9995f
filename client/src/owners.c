// owners.c: JSON of the requests about owners of partitions.
#include "owners.h"

#include <stdlib.h>

#include "base/mem.h"
#include "codec.h"
#include "fail.h"
#include "json/write.h"

enum { MAX_ELEMENTS = 10000 }; // of a list; a queue has at most 1024 partitions

// The members of all list elements; each kind of list uses some of them.
struct fields {
    const char *partition, *partition_id, *owner, *wanted_by, *error;
    int64_t epoch, lag, free_ms;
    bool expired, success;
};

typedef void read_one(struct js *j, struct arena *a, void *item);

static void read_fields(struct js *j, struct arena *a, struct fields *f);
static read_one read_record, read_result, read_name;
static int read_list(const struct queen_response *r, struct arena *a, span name, size_t size,
                     read_one *one, void **items, unsigned *n, struct queen_error *err);

int owners_read(const struct queen_response *r, struct arena *a, struct owner_list *out,
                struct queen_error *err)
{
    void *records;
    int rc = read_list(r, a, SPAN("owners"), sizeof *out->records, read_record, &records,
                       &out->n, err);

    out->records = records;
    return rc;
}

int owners_read_results(const struct queen_response *r, struct arena *a,
                        struct owner_result **results, unsigned *n, struct queen_error *err)
{
    void *list;
    int rc = read_list(r, a, SPAN("results"), sizeof **results, read_result, &list, n, err);

    *results = list;
    return rc;
}

int owners_read_lost(const struct queen_response *r, struct arena *a, const char ***names,
                     unsigned *n, struct queen_error *err)
{
    void *list;
    int rc = read_list(r, a, SPAN("lost"), sizeof **names, read_name, &list, n, err);

    *names = list;
    return rc;
}

// The array grows by doubling and is copied into the arena at the end.
static int read_list(const struct queen_response *r, struct arena *a, span name, size_t size,
                     read_one *one, void **items, unsigned *n, struct queen_error *err)
{
    struct js j = js_read((span){r->body, r->body_len});
    size_t cap = 0;
    char *list = NULL;
    span key;

    *n = 0;
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        if (!span_eq(key, name)) {
            js_skip(&j);
            continue;
        }
        js_enter_array(&j);
        while (js_next_item(&j)) {
            if (*n == MAX_ELEMENTS) {
                js_fail(&j, QUEEN_E_PROTOCOL, "more than 10000 partitions");
                break;
            }
            if (*n == cap) {
                cap = cap > 0 ? cap * 2 : 8;
                list = mem_realloc(list, cap * size);
            }
            memset(list + *n * size, 0, size);
            one(&j, a, list + (*n)++ * size);
        }
    }
    *items = arena_alloc(a, size * (*n + 1));
    if (*n > 0)
        memcpy(*items, list, size * *n);
    free(list);
    return check_json(&j, "a request about owners", err);
}

static void read_record(struct js *j, struct arena *a, void *item)
{
    struct owner_record *r = item;
    struct fields f = {.free_ms = -1};

    read_fields(j, a, &f);
    *r = (struct owner_record){.partition = f.partition,
                               .partition_id = f.partition_id,
                               .owner = f.owner,
                               .wanted_by = f.wanted_by,
                               .epoch = f.epoch,
                               .lag = f.lag,
                               .free_ms = f.free_ms,
                               .expired = f.expired};
}

static void read_result(struct js *j, struct arena *a, void *item)
{
    struct owner_result *r = item;
    struct fields f = {0};

    read_fields(j, a, &f);
    *r = (struct owner_result){.partition = f.partition,
                               .partition_id = f.partition_id,
                               .error = f.error,
                               .epoch = f.epoch};
    if (!f.success && !r->error)
        r->error = "refused";
}

static void read_name(struct js *j, struct arena *a, void *item)
{
    const char **name = item;

    *name = take_text(js_skip(j), a);
    if (!*name)
        js_fail(j, QUEEN_E_PROTOCOL, "the name of a partition must be a string");
}

static void owners_take(struct js *j, bool good, const char *why)
{
    if (!good)
        js_fail(j, QUEEN_E_PROTOCOL, why);
}

static void take_name(struct js *j, struct arena *a, span raw, const char **out,
                      const char *why)
{
    *out = take_text(raw, a);
    owners_take(j, *out != NULL, why);
}

static void read_fields(struct js *j, struct arena *a, struct fields *f)
{
    span key;

    js_enter_object(j);
    while (js_next_key(j, &key)) {
        span raw = js_skip(j);
        if (j->rc != 0)
            return;
        if (js_type_of(raw) == JS_NULL)
            continue; // null, like a missing member: keep the default
        if (span_eq(key, SPAN("partition")))
            take_name(j, a, raw, &f->partition, "partition must be a string");
        else if (span_eq(key, SPAN("partitionId")))
            take_name(j, a, raw, &f->partition_id, "partitionId must be a string");
        else if (span_eq(key, SPAN("owner")))
            take_name(j, a, raw, &f->owner, "owner must be a string");
        else if (span_eq(key, SPAN("wantedBy")))
            take_name(j, a, raw, &f->wanted_by, "wantedBy must be a string");
        else if (span_eq(key, SPAN("error")))
            take_name(j, a, raw, &f->error, "error must be a string");
        else if (span_eq(key, SPAN("epoch")))
            owners_take(j, js_int(raw, &f->epoch), "epoch must be a whole number");
        else if (span_eq(key, SPAN("lag")))
            owners_take(j, js_int(raw, &f->lag), "lag must be a whole number");
        else if (span_eq(key, SPAN("freeMs")))
            owners_take(j, js_int(raw, &f->free_ms), "freeMs must be a whole number");
        else if (span_eq(key, SPAN("expired")))
            owners_take(j, js_bool(raw, &f->expired), "expired must be true or false");
        else if (span_eq(key, SPAN("success")))
            owners_take(j, js_bool(raw, &f->success), "success must be true or false");
    }
    if (!f->partition)
        js_fail(j, QUEEN_E_PROTOCOL, "an element without partition");
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
