// event.c: reads the envelope of an event, then its data, member by member.
#include "ingest/event.h"

#include <queen/message.h>

#include "base/id.h"
#include "base/moment.h"
#include "ingest/value.h"
#include "tenant/row.h"
#include "json/scan.h"

enum member { M_TENANT, M_ID, M_TYPE, M_AT, M_DATA, N_MEMBERS };

static int read_members(span text, span *members, struct fault *f);
static int read_envelope(struct event *e, const span *members, span tenant, struct arena *a,
                         struct fault *f);
static int read_data(struct event *e, span data, struct arena *a, struct fault *f);
static int check_required(const struct event *e, struct fault *f);
static void take_ids(struct event *e);

int event_read(struct event *e, span text, span tenant, struct arena *a, struct fault *f)
{
    span members[N_MEMBERS] = {0};

    *e = (struct event){0};
    int rc = read_members(text, members, f);
    if (rc == 0)
        rc = read_envelope(e, members, tenant, a, f);
    if (rc == 0)
        rc = read_data(e, members[M_DATA], a, f);
    if (rc == 0)
        rc = check_required(e, f);
    if (rc == 0)
        take_ids(e);
    return rc;
}

// Ignores unknown members of the envelope, such as trace ids.
static int read_members(span text, span *members, struct fault *f)
{
    static const span names[] = {[M_TENANT] = {"tenant", 6},
                                 [M_ID] = {"id", 2},
                                 [M_TYPE] = {"type", 4},
                                 [M_AT] = {"at", 2},
                                 [M_DATA] = {"data", 4}};
    struct js j = js_read(text);
    span key;

    if (js_peek(&j) != JS_OBJECT)
        return fault_set(f, QE_BAD_PARAM, "an event must be a JSON object");
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        for (unsigned m = 0; m < N_MEMBERS && j.rc == 0; m++)
            if (js_key_is(key, names[m]))
                members[m] = raw;
    }
    return js_finish(&j) == 0 ? 0 : fault_set(f, QE_BAD_JSON, "%s", j.why);
}

static int event_wrong(struct fault *f, const char *member, const char *why)
{
    return fault_set(f, QE_BAD_PARAM, "%s: %s", member, why);
}

static span text_of(span raw, struct arena *a)
{
    return raw.ptr && js_type_of(raw) == JS_STRING ? js_text(raw, a) : SPAN_NONE;
}

static int read_tenant(struct event *e, span raw, span expected, struct arena *a,
                       struct fault *f)
{
    e->tenant = raw.ptr ? text_of(raw, a) : expected;
    if (!tenant_is_name(e->tenant))
        return event_wrong(f, "tenant", "must be the name of a tenant");
    if (expected.ptr && !span_eq(e->tenant, expected))
        return event_wrong(f, "tenant", "must be the tenant of the path");
    return 0;
}

static int read_envelope(struct event *e, const span *members, span tenant, struct arena *a,
                         struct fault *f)
{
    int rc = read_tenant(e, members[M_TENANT], tenant, a, f);
    if (rc != 0)
        return rc;
    if (!id_parse_uuid(text_of(members[M_ID], a), e->id))
        return event_wrong(f, "id", "must be a UUID");
    span type = text_of(members[M_TYPE], a);
    e->type = event_type_find(type);
    if (!e->type)
        return fault_set(f, QE_BAD_PARAM, "type: unknown event type \"%.*s\"",
                         (int)(type.len < 80 ? type.len : 80), type.ptr ? type.ptr : "");
    if (!value_time(text_of(members[M_AT], a), &e->at_us))
        return event_wrong(f, "at", VALUE_TIME_WANTED);
    if (!members[M_DATA].ptr || js_type_of(members[M_DATA]) != JS_OBJECT)
        return event_wrong(f, "data", "must be an object");
    return 0;
}

static int find_field(const struct event_type *type, span key)
{
    for (unsigned i = 0; i < type->n_fields; i++)
        if (js_key_is(key, span_of(type->fields[i].name)))
            return (int)i;
    return -1;
}

static int read_data(struct event *e, span data, struct arena *a, struct fault *f)
{
    struct js j = js_read(data);
    span key;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        int i = find_field(e->type, key);
        // A misspelt member would silently clear a column.
        if (i < 0)
            return fault_set(f, QE_BAD_PARAM, "data.%.*s: unknown member of %s",
                             (int)(key.len < 80 ? key.len : 80), key.ptr, e->type->name);
        span raw = js_skip(&j);
        const struct event_field *field = &e->type->fields[i];
        const char *why = NULL;
        e->values[i] = e->type->patches && !field->required ? SPAN("null") : SPAN_NONE;
        if (js_type_of(raw) != JS_NULL)
            why = value_read(field, raw, a, &e->values[i], &e->amount);
        if (why)
            return fault_set(f, QE_BAD_PARAM, "data.%s: %s", field->name, why);
    }
    return js_finish(&j) == 0 ? 0 : fault_set(f, QE_BAD_JSON, "%s", j.why);
}

static int check_required(const struct event *e, struct fault *f)
{
    for (unsigned i = 0; i < e->type->n_fields; i++)
        if (e->type->fields[i].required && !e->values[i].ptr)
            return fault_set(f, QE_BAD_PARAM, "data.%s: must be given",
                             e->type->fields[i].name);
    return 0;
}

int event_check_time(const struct event *e, int64_t now_us, struct fault *f)
{
    if (e->at_us <= now_us + EVENT_MAX_AHEAD_US)
        return 0;
    return event_wrong(f, "at", "is more than a day in the future");
}

int event_read_message(struct event *e, const struct queen_delivery *d, span tenant,
                       struct arena *a, int64_t *stored_us, struct fault *f)
{
    int rc = event_read(e, (span){d->data, d->data_len}, tenant, a, f);

    if (!moment_parse(span_of(d->created_at), stored_us))
        *stored_us = 0;
    if (rc == 0 && *stored_us > 0)
        rc = event_check_time(e, *stored_us, f);
    return rc;
}

static void take_id(span json, uint8_t id[16])
{
    if (!id_parse_uuid((span){json.ptr + 1, json.len - 2}, id))
        BUG("cannot parse a UUID in normal form");
}

static void take_ids(struct event *e)
{
    bool has_id = e->type->n_fields > 1 && e->type->fields[1].kind == FIELD_UUID;

    take_id(e->values[0], e->customer);
    take_id(e->values[has_id], e->row);
}
