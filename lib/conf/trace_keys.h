// trace_keys.h: the settings for OpenTelemetry, rows of a table.
//
// A table that includes them has a struct conf_trace as its field trace and defines AT(). The
// first three names are those of OpenTelemetry's specification.
#ifndef QUEEN_CONF_TRACE_KEYS_H
#define QUEEN_CONF_TRACE_KEYS_H

// clang-format off
#define TRACE_KEYS \
    {.section = "Tracing", \
     .name = "OTEL_EXPORTER_OTLP_ENDPOINT", TEXT, .fallback = "", AT(trace.endpoint), \
     .text = "Address of an OpenTelemetry collector, such as `http://localhost:4318`. Traces are sent to `/v1/traces` there " \
             "(OTLP over HTTP, as JSON). Empty: no traces."}, \
    {.name = "OTEL_EXPORTER_OTLP_HEADERS", TEXT, .secret = true, .fallback = "", AT(trace.headers), \
     .text = "Headers for the collector, `name=value` separated by commas, with percent-encoded values."}, \
    {.name = "OTEL_SERVICE_NAME", TEXT, .fallback = "queen", AT(trace.service), \
     .text = "Name of this service in traces."}, \
    {.name = "QUEEN_TRACE_RATIO", .type = CONF_FLOAT, .min = 0, .max = 1, .fallback = "0.01", AT(trace.ratio), \
     .text = "Share of the requests without `traceparent` that are recorded. Those with one are recorded if it is sampled."}
// clang-format on

#endif
