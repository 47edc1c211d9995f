// segment_request.h: the request body, query and reply that the endpoints for segments share.
#ifndef QUEEN_PLATFORM_SEGMENT_REQUEST_H
#define QUEEN_PLATFORM_SEGMENT_REQUEST_H

#include <stdint.h>

#include "audience/cache.h"
#include "audience/query.h"
#include "base/attrs.h"
#include "platform/platform_int.h"

// In the request's arena.
struct segment_request {
    struct http_req *req;
    span tenant;
    span filter_text; // raw JSON
    struct filter *filter;
    span path; // as requested; SPAN_NONE: the best
    int64_t max_age_ms, limit, after;
    uint8_t customer[16];
    bool has_customer;
    struct audience_query query;
};

// Reads path and body.  Returns NULL after replying with an error.  Otherwise the filter is
// read and the query is ready except for compose and answered.
struct segment_request *segment_request_read(struct http_req *req);
// The tenant of the path, /api/v1/tenants/:tenant/...  Returns false after replying with an
// error.
bool segment_request_tenant(struct http_req *req, span *tenant);
// Reads a filter into the request's arena.  Returns false after replying with an error.
bool segment_request_filter(struct segment_request *s, span text);
// "path":"live","staleMs":0,"asOf":"..." without braces.
void segment_put_source(struct buf *out, const struct audience_source *s, uint64_t age_us);

#endif
