// err.c: names, texts and HTTP statuses of error codes; faults; bug reports.
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h> // for its list of codes; the library is not linked

#include "base/str.h"

// uv_err_name() leaks a string for unknown codes. A switch over the same list does not, and
// keeps this layer independent of libuv.
const char *err_name(int code)
{
    switch (code) {
    case 0:
        return "ok";
#define X(sym, number, http, name, text) \
    case sym:                            \
        return name;
        ERR_MAP(X)
#undef X
#define UV_NAME(name, text) \
    case UV_##name:         \
        return #name;
        UV_ERRNO_MAP(UV_NAME)
#undef UV_NAME
    default:
        return "unknown";
    }
}

const char *err_text(int code)
{
    switch (code) {
    case 0:
        return "no error";
#define X(sym, number, http, name, text) \
    case sym:                            \
        return text;
        ERR_MAP(X)
#undef X
#define UV_TEXT(name, text) \
    case UV_##name:         \
        return text;
        UV_ERRNO_MAP(UV_TEXT)
#undef UV_TEXT
    default:
        return "unexpected failure";
    }
}

int err_http_status(int code)
{
    switch (code) {
    case 0:
        return 200;
#define X(sym, number, http, name, text) \
    case sym:                            \
        return http;
        ERR_MAP(X)
#undef X
#define UV_STATUS(name, text) case UV_##name:
        UV_ERRNO_MAP(UV_STATUS)
#undef UV_STATUS
        return 503;
    default:
        return 500;
    }
}

int fault_set(struct fault *f, int code, const char *fmt, ...)
{
    if (!f)
        return code;
    va_list args;
    va_start(args, fmt);
    f->code = code;
    f->sqlstate[0] = '\0';
    vsnprintf(f->text, sizeof f->text, fmt, args);
    va_end(args);
    str_clean_utf8(f->text, sizeof f->text, span_of(f->text));
    return code;
}

void fault_prefix(struct fault *f, const char *fmt, ...)
{
    if (!f)
        return;
    char old[sizeof f->text];
    memcpy(old, f->text, sizeof old);

    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(f->text, sizeof f->text, fmt, args);
    va_end(args);
    if (n >= 0 && (size_t)n < sizeof f->text)
        snprintf(f->text + n, sizeof f->text - (size_t)n, "%s", old);
    str_clean_utf8(f->text, sizeof f->text, span_of(f->text));
}

void bug_at(const char *file, int line, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fprintf(stderr, "BUG at %s:%d: ", file, line);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}
