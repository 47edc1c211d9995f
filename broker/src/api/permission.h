// permission.h: checks of queues that only the body of a request, or the database, names.
//
// The guard has checked the head of the request already (enum http_target). A sender without
// rules passes all of these at once.
#ifndef QUEEN_API_PERMISSION_H
#define QUEEN_API_PERMISSION_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "broker/broker.h"
#include "http/req.h"

// False: answered with 403.
bool permission_check(struct http_req *req, unsigned op, span queue, span group);
bool permission_has(const struct http_req *req, unsigned op, span queue); // does not answer
bool permission_check_items(struct http_req *req, const struct push_item *items, unsigned n);
// Whether the sender has not yet stored as much as its limit permits. False: answered with 429.
bool permission_may_store(struct http_req *req);
// For every needed operation of the route; the members queue and targetQueue of a JSON object.
bool permission_check_body(struct http_req *req, span object, span group);
// Whether payloads of an encrypted queue are shown in clear. SPAN_NONE: of any queue.
bool permission_sees_encrypted(const struct http_req *req, span queue);

// Checks partitions by their ids, after looking up their queues, then calls go; or answers with
// 403, or with an error of the database. groups: one for each partition, or NULL: only `group`.
// The needed operation is op. Unknown partitions pass: there is nothing to protect.
struct permission_ids {
    const uint8_t *first; // of n ids, `stride` bytes apart
    size_t stride;
    unsigned n;
    const span *groups;
    span group; // SPAN_NONE: the operation concerns no group
};
void permission_check_partitions(struct http_req *req, unsigned op,
                                 const struct permission_ids *ids,
                                 void (*go)(void *ctx, span queue), void *ctx);
// The same for the queues of a lease, by its key. Needs MAY_POP.
void permission_check_lease(struct http_req *req, const uint8_t key[16],
                            void (*go)(void *ctx, span queue), void *ctx);

struct api;
void permission_forget(struct api *a); // frees the cache of a worker

#endif
