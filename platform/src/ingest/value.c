// value.c: checks values and converts them to the normal form for the database.
#include "ingest/value.h"

#include <stdio.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/moment.h"
#include "base/str.h"
#include "ingest/money.h"
#include "json/scan.h"
#include "json/write.h"

#define YEAR_1900_US INT64_C(-2208988800000000)
#define YEAR_2200_US INT64_C(7258118400000000)

static span value_keep(struct arena *a, struct buf *b)
{
    span s = arena_copy(a, buf_span(b));

    buf_free(b);
    return s;
}

// Checks the year in UTC, because a time zone may move the time into another year.
bool value_time(span text, int64_t *unix_us)
{
    return moment_parse(text, unix_us) && *unix_us >= YEAR_1900_US && *unix_us < YEAR_2200_US;
}

span value_time_text(int64_t unix_us, struct arena *a)
{
    char *text = arena_alloc(a, STR_TS_US + 2);

    text[0] = text[STR_TS_US + 1] = '"';
    str_format_ts_us(unix_us, text + 1);
    return (span){text, STR_TS_US + 2};
}

static const char *read_uuid(span raw, struct arena *a, span *out)
{
    uint8_t id[16];
    char *text = arena_alloc(a, 38);

    if (js_type_of(raw) != JS_STRING || !id_parse_uuid(js_text(raw, a), id))
        return "must be a UUID";
    text[0] = text[37] = '"';
    id_format_uuid(id, text + 1);
    *out = (span){text, 38};
    return NULL;
}

static const char *read_text(span raw, int64_t max, struct arena *a, span *out)
{
    if (js_type_of(raw) != JS_STRING)
        return "must be a string";
    if (str_utf8_chars(js_text(raw, a)) > (size_t)max)
        return "is too long";
    *out = raw;
    return NULL;
}

static const char *read_int(const struct event_field *field, span raw, struct arena *a,
                            span *out)
{
    struct buf b = {0};
    int64_t v;

    // 3.0 is the integer 3 in JSON; both are 300 hundredths.
    if (js_type_of(raw) != JS_NUMBER || !money_parse(raw, &v) || v % 100 != 0)
        return "must be a whole number";
    v /= 100;
    if (v < field->min || v > field->max)
        return "is out of range";
    buf_put_i64(&b, v);
    *out = value_keep(a, &b);
    return NULL;
}

static const char *read_money(const struct event_field *field, span raw, struct arena *a,
                              span *out, int64_t *money)
{
    struct buf b = {0};
    int64_t v;

    if (js_type_of(raw) != JS_NUMBER || !money_parse(raw, &v))
        return "must be a number with at most two decimals";
    if (v < field->min || v > field->max)
        return "is out of range";
    if (field->required)
        *money = v;
    money_put(&b, v);
    *out = value_keep(a, &b);
    return NULL;
}

static const char *read_date(span raw, struct arena *a, span *out)
{
    span text = js_type_of(raw) == JS_STRING ? js_text(raw, a) : SPAN_NONE;
    char moment[32];
    int64_t us;

    int n = snprintf(moment, sizeof moment, SPAN_FMT "T00:00Z", text.len == 10 ? 10 : 0,
                     text.ptr ? text.ptr : "");
    if (text.len != 10 || !value_time((span){moment, (size_t)n}, &us))
        return "must be a date such as 2026-11-16, from 1900 to 2199";
    *out = raw;
    return NULL;
}

static const char *read_time(span raw, struct arena *a, span *out)
{
    int64_t us;

    if (js_type_of(raw) != JS_STRING || !value_time(js_text(raw, a), &us))
        return VALUE_TIME_WANTED;
    *out = value_time_text(us, a);
    return NULL;
}

static const char *read_tags(const struct event_field *field, span raw, struct arena *a,
                             span *out)
{
    struct js j = js_read(raw);
    struct buf b = {0};
    unsigned n = 0;
    const char *why = NULL;
    span tag;

    if (js_type_of(raw) != JS_ARRAY)
        return "must be an array of strings";
    buf_putc(&b, '[');
    js_enter_array(&j);
    while (!why && js_next_item(&j)) {
        if (++n > EVENT_MAX_TAGS)
            why = "has too many entries";
        else if (read_text(js_skip(&j), field->max, a, &tag) != NULL)
            why = "must be an array of strings within the length limit";
        if (why)
            break;
        // MySQL stores the JSON text and compares it: \u00e9 must become the character.
        if (n > 1)
            buf_putc(&b, ',');
        js_put_text(&b, js_text(tag, a));
    }
    buf_putc(&b, ']');
    *out = value_keep(a, &b);
    return why;
}

static const char *read_choice(const struct event_field *field, span raw, struct arena *a,
                               span *out)
{
    span word = js_type_of(raw) == JS_STRING ? js_text(raw, a) : SPAN_NONE;
    struct buf b = {0};

    for (unsigned i = 0; field->choices[i]; i++) {
        if (!span_eq(word, span_of(field->choices[i])))
            continue;
        *out = raw;
        if (field->numbered) {
            buf_put_u64(&b, i + 1);
            *out = value_keep(a, &b);
        }
        return NULL;
    }
    return "is not one of the allowed values";
}

const char *value_read(const struct event_field *field, span raw, struct arena *a, span *out,
                       int64_t *money)
{
    switch (field->kind) {
    case FIELD_UUID:
        return read_uuid(raw, a, out);
    case FIELD_TEXT:
        return read_text(raw, field->max, a, out);
    case FIELD_INT:
        return read_int(field, raw, a, out);
    case FIELD_MONEY:
        return read_money(field, raw, a, out, money);
    case FIELD_BOOL:
        *out = raw;
        return js_type_of(raw) == JS_BOOL ? NULL : "must be true or false";
    case FIELD_DATE:
        return read_date(raw, a, out);
    case FIELD_TIME:
        return read_time(raw, a, out);
    case FIELD_TAGS:
        return read_tags(field, raw, a, out);
    case FIELD_CHOICE:
        return read_choice(field, raw, a, out);
    }
    return "has an unknown field kind";
}
