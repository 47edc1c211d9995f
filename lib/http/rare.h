// rare.h: headers that few requests carry.
//
// The parser sets a bit for each of these headers, so that handlers search a request only for
// headers that are there.
#ifndef QUEEN_HTTP_RARE_H
#define QUEEN_HTTP_RARE_H

enum http_rare {
    RARE_ACCEPT_ENCODING = 1,
    RARE_CONTENT_ENCODING = 2,
    RARE_REQUEST_ID = 4, // X-Request-Id
    RARE_TRACEPARENT = 8,
    RARE_EVENT_IN = 16,    // a ce-* header, or Content-Type: application/cloudevents...
    RARE_EVENT_OUT = 32,   // Accept names application/cloudevents...
    RARE_ORIGIN = 64,      // sent by browsers
    RARE_FETCH_SITE = 128, // Sec-Fetch-Site, sent by browsers
};

#endif
