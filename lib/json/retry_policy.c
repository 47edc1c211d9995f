// retry_policy.c: checks the fields of a retry policy, one rule each.
#include "json/retry_policy.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/known.h"
#include "base/str.h"
#include "json/scan.h"

enum {
    MAX_SECONDS = 315360000,
    MAX_ATTEMPTS = 1000,
    MAX_ELEMENTS = 1000,
    MAX_CODE_CHARS = 255
};

static bool is_number(span raw, double least, double most)
{
    char text[64];

    if (js_type_of(raw) != JS_NUMBER || raw.len >= sizeof text)
        return false;
    memcpy(text, raw.ptr, raw.len);
    text[raw.len] = '\0';
    double v = strtod(text, NULL); // the scanner has already checked the grammar
    return v >= least && v <= most;
}

static bool is_seconds(span raw) { return is_number(raw, 0, MAX_SECONDS); }
static bool is_some_seconds(span raw) { return is_number(raw, 0.001, MAX_SECONDS); }
static bool is_part(span raw) { return is_number(raw, 0, 1); }

static bool is_attempts(span raw)
{
    int64_t v;

    return js_type_of(raw) == JS_NUMBER && js_int(raw, &v) && v >= 1 && v <= MAX_ATTEMPTS;
}

static bool is_mode(span raw)
{
    return span_eq(raw, SPAN("\"inline\"")) || span_eq(raw, SPAN("\"scheduled\""));
}

static bool is_strategy(span raw)
{
    return span_eq(raw, SPAN("\"fibonacci\"")) || span_eq(raw, SPAN("\"exponential\"")) ||
           span_eq(raw, SPAN("\"fixed\"")) || span_eq(raw, SPAN("\"list\""));
}

static bool is_code(span raw)
{
    return js_type_of(raw) == JS_STRING && raw.len > 2 &&
           str_utf8_chars((span){raw.ptr + 1, raw.len - 2}) <= MAX_CODE_CHARS;
}

static bool is_array_of(span raw, bool (*is)(span raw), unsigned least)
{
    unsigned n = 0;

    if (js_type_of(raw) != JS_ARRAY)
        return false;
    struct js j = js_read(raw);
    js_enter_array(&j);
    while (js_next_item(&j))
        if (++n > MAX_ELEMENTS || !is(js_skip(&j)))
            return false;
    return n >= least;
}

static bool is_delays(span raw) { return is_array_of(raw, is_seconds, 1); }
static bool is_codes(span raw) { return is_array_of(raw, is_code, 0); }

enum { MODE, STRATEGY, BASE, FLOOR, CAP, JITTER, ATTEMPTS, DELAYS, CODES, FIELDS };
static const struct {
    span name;
    bool (*is)(span raw);
    const char *what;
} fields[FIELDS] = {
    [MODE] = {{"mode", 4}, is_mode, "\"inline\" or \"scheduled\""},
    [STRATEGY] = {{"strategy", 8},
                  is_strategy,
                  "\"fibonacci\", \"exponential\", \"fixed\" or \"list\""},
    [BASE] = {{"base", 4}, is_some_seconds, "a number of seconds from 0.001 to 315360000"},
    [FLOOR] = {{"floor", 5}, is_seconds, "a number of seconds from 0 to 315360000"},
    [CAP] = {{"cap", 3}, is_some_seconds, "a number of seconds from 0.001 to 315360000"},
    [JITTER] = {{"jitter", 6}, is_part, "a number from 0 to 1"},
    [ATTEMPTS] = {{"maxAttempts", 11}, is_attempts, "a whole number from 1 to 1000"},
    [DELAYS] = {{"delays", 6}, is_delays, "an array of 1 to 1000 numbers of seconds"},
    [CODES] = {{"nonRetryable", 12}, is_codes, "an array of error codes"},
};

static double retry_policy_number_of(span raw)
{
    char text[64];

    if (!raw.ptr || raw.len >= sizeof text)
        return NAN; // compares false with everything
    memcpy(text, raw.ptr, raw.len);
    text[raw.len] = '\0';
    return strtod(text, NULL);
}

static int unknown_field(span key, struct fault *why)
{
    span names[FIELDS];

    for (unsigned i = 0; i < FIELDS; i++)
        names[i] = fields[i].name;
    int rc = known_check(key, &(struct known_names){.spans = names, .n_spans = FIELDS},
                         KNOWN_ONLY, "member", why);
    fault_prefix(why, "retryPolicy.%.*s: ", (int)(key.len < 80 ? key.len : 80), key.ptr);
    return rc;
}

int retry_policy_check(span raw, struct fault *why)
{
    span values[FIELDS] = {{0}}, key;

    if (js_type_of(raw) != JS_OBJECT)
        return fault_set(why, QE_BAD_PARAM, "retryPolicy must be an object");
    if (raw.len > RETRY_POLICY_BYTES)
        return fault_set(why, QE_BAD_PARAM, "retryPolicy is longer than %d bytes",
                         RETRY_POLICY_BYTES);
    struct js j = js_read(raw);
    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        unsigned i = 0;
        span value = js_skip(&j);
        while (i < FIELDS && !js_key_is(key, fields[i].name))
            i++;
        if (i == FIELDS)
            return unknown_field(key, why);
        if (!fields[i].is(value))
            return fault_set(why, QE_BAD_PARAM, "retryPolicy.%s must be %s", fields[i].name.ptr,
                             fields[i].what);
        values[i] = value;
    }
    if (values[DELAYS].ptr && !span_eq(values[STRATEGY], SPAN("\"list\"")))
        return fault_set(why, QE_BAD_PARAM,
                         "retryPolicy.delays is read only with strategy \"list\": give both");
    if (retry_policy_number_of(values[FLOOR]) > retry_policy_number_of(values[CAP]))
        return fault_set(why, QE_BAD_PARAM,
                         "retryPolicy.floor must be at most retryPolicy.cap");
    return 0;
}
