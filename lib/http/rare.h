// rare.h: headers that few requests carry.
//
// The parser sees every header once; whoever cares for one of these asks for the bit first, so
// that a request without them is not searched for each.
#ifndef QUEEN_HTTP_RARE_H
#define QUEEN_HTTP_RARE_H

enum http_rare {
    RARE_ACCEPT_ENCODING = 1,
    RARE_CONTENT_ENCODING = 2,
    RARE_REQUEST_ID = 4, // X-Request-Id
    RARE_TRACEPARENT = 8,
    RARE_EVENT_IN = 16,  // a ce-* header, or Content-Type: application/cloudevents...
    RARE_EVENT_OUT = 32, // Accept that names application/cloudevents...
};

#endif
