// headers.h: the value of OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value".
#ifndef QUEEN_TRACE_HEADERS_H
#define QUEEN_TRACE_HEADERS_H

#include "base/attrs.h"
#include "base/err.h"
#include "net/fetch.h"

enum { TRACE_MAX_HEADERS = 16 };

struct trace_headers {
    struct fetch_header at[TRACE_MAX_HEADERS];
    unsigned n;
    char *memory; // of their texts
};

MUST_USE int trace_headers_read(const char *text, struct trace_headers *h, struct fault *f);
void trace_headers_deinit(struct trace_headers *h);

#endif
