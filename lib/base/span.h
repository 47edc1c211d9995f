// span.h: borrowed bytes. Inside the server text is a span, never a C string.
//
// A span does not own its bytes; the header of the function that returns it documents its
// lifetime. ptr may be NULL only when len is 0.
#ifndef QUEEN_BASE_SPAN_H
#define QUEEN_BASE_SPAN_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

typedef struct span {
    const char *ptr;
    size_t len;
} span;

#define SPAN(literal) ((span){"" literal, sizeof(literal) - 1})
#define SPAN_NONE     ((span){NULL, 0})
#define SPAN_FMT      "%.*s"
#define SPAN_ARG(s)   ((int)(s).len), ((s).ptr ? (s).ptr : "")

static inline span span_of(const char *text) { return (span){text, text ? strlen(text) : 0}; }

static inline bool span_eq(span a, span b)
{
    return a.len == b.len && (a.len == 0 || memcmp(a.ptr, b.ptr, a.len) == 0);
}

#endif
