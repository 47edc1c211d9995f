// push_int.h: a push under way, shared by push.c and cloudevents.c.
#ifndef QUEEN_API_PUSH_INT_H
#define QUEEN_API_PUSH_INT_H

#include "broker/broker.h"
#include "http/req.h"

// In the request's arena: dies when the answer has been written.
struct push {
    struct http_req *req;
    struct push_op op;
    unsigned cap;
};

struct push *push_new(struct http_req *req);
// All items are good: stores them and answers.
void push_start(struct push *p);

// POST of CloudEvents; queue and partition of the path, SPAN_NONE: the events name them.
void events_push(struct http_req *req, span queue, span partition);

#endif
