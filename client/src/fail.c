// fail.c: error codes, their names, and the error for an HTTP status.
#include "fail.h"

#include <stdarg.h>
#include <stdio.h>

#include "base/str.h"
#include "json/scan.h"

static const char *const names[] = {
    "ok",   "argument",  "misuse",   "unreachable", "timeout", "tls",    "protocol", "refused",
    "auth", "not_found", "conflict", "full",        "server",  "closed", "lease",    "memory",
};

const char *queen_code_name(int code)
{
    return code <= 0 && -code < (int)countof(names) ? names[-code] : "unknown";
}

static bool is_retryable(int code)
{
    return code == QUEEN_E_UNREACHABLE || code == QUEEN_E_TIMEOUT || code == QUEEN_E_FULL ||
           code == QUEEN_E_SERVER;
}

int fail_set(struct queen_error *err, int code, const char *fmt, ...)
{
    va_list args;

    if (!err)
        return code;
    *err = (struct queen_error){.code = code, .retryable = is_retryable(code)};
    va_start(args, fmt);
    vsnprintf(err->text, sizeof err->text, fmt, args);
    va_end(args);
    str_clean_utf8(err->text, sizeof err->text, span_of(err->text)); // it may have been cut
    return code;
}

static int code_of_status(int status)
{
    switch (status) {
    case 401:
    case 403:
        return QUEEN_E_AUTH;
    case 404:
        return QUEEN_E_NOT_FOUND;
    case 408:
        return QUEEN_E_TIMEOUT;
    case 409:
        return QUEEN_E_CONFLICT;
    case 429:
        return QUEEN_E_FULL;
    default:
        return status >= 500 ? QUEEN_E_SERVER : QUEEN_E_REFUSED;
    }
}

// Text from a server or proxy that is not a JSON object is not repeated.
static span error_text(span body, struct arena *a)
{
    struct js j = js_read(body);
    span key, text = SPAN_NONE;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        if (j.rc == 0 && js_key_is(key, SPAN("error")) && js_type_of(raw) == JS_STRING)
            text = js_text(raw, a);
    }
    return js_finish(&j) == 0 ? text : SPAN_NONE;
}

int fail_of_status(struct queen_error *err, int status, span body)
{
    struct arena a;

    if (status < 400) {
        if (err)
            *err = (struct queen_error){.http_status = status};
        return QUEEN_OK;
    }
    arena_init(&a);
    span text = error_text(body, &a);
    int code = code_of_status(status);
    if (text.len > 0)
        fail_set(err, code, SPAN_FMT, SPAN_ARG(text));
    else
        fail_set(err, code, "the server answered with status %d", status);
    if (err)
        err->http_status = status;
    arena_deinit(&a);
    return code;
}
