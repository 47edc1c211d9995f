// body_time.c: when an item is to be delivered.
#include "api/api_int.h"
#include "base/clock.h"
#include "base/moment.h"
#include "base/str.h"

#define YEAR_S  31557600.0
#define TOO_FAR "%s must be within %d years"
enum { MAX_YEARS = 10 };

static bool is_missing(span raw) { return raw.len == 0 || js_type_of(raw) == JS_NULL; }

static void take_at(struct body *b, span raw, struct push_item *item)
{
    span text = js_type_of(raw) == JS_STRING ? js_text(raw, b->arena) : SPAN_NONE;

    if (!text.ptr || !moment_parse(text, &item->when_us)) {
        body_bad(b, "scheduledAt must be an ISO 8601 time with a zone, "
                    "like 2030-01-31T08:00:00Z");
        return;
    }
    if ((double)item->when_us - (double)clock_wall_us() > MAX_YEARS * YEAR_S * 1e6)
        body_bad(b, TOO_FAR, "scheduledAt", MAX_YEARS);
    item->when = PUSH_AT;
}

static void take_delay(struct body *b, span raw, struct push_item *item)
{
    double seconds;

    if (js_type_of(raw) != JS_NUMBER || !str_parse_double(raw, &seconds) || seconds < 0) {
        body_bad(b, "delaySeconds must be a number of 0 or more");
        return;
    }
    if (seconds > MAX_YEARS * YEAR_S) {
        body_bad(b, TOO_FAR, "delaySeconds", MAX_YEARS);
        return;
    }
    item->when = PUSH_AFTER;
    item->when_us = (int64_t)(seconds * 1e6);
}

void body_take_time(struct body *b, span at, span delay, struct push_item *item)
{
    item->when = PUSH_NOW;
    if (is_missing(at) && is_missing(delay))
        return;
    if (!is_missing(at) && !is_missing(delay))
        body_bad(b, "scheduledAt and delaySeconds exclude each other");
    else if (!is_missing(at))
        take_at(b, at, item);
    else
        take_delay(b, delay, item);
}
