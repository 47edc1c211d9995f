// access.c: the check of a request's head against rules.
#include "auth/access.h"

#include "base/str.h"

bool access_path_param(struct http_req *req, span name, span *value)
{
    span rest = span_of(http_req_route(req)->path), segment;

    for (unsigned i = 0; str_split(&rest, '/', &segment);) {
        if (segment.len == 0 || segment.ptr[0] != ':')
            continue;
        if (span_eq((span){segment.ptr + 1, segment.len - 1}, name))
            return http_req_param(req, i, value);
        i++;
    }
    return false;
}

static span access_group_of(struct http_req *req, unsigned op)
{
    span group;

    if (access_path_param(req, SPAN("group"), &group))
        return group;
    if (op == MAY_DELETE)
        return ACCESS_ALL_GROUPS;
    if (op != MAY_POP)
        return SPAN_NONE;
    group = http_req_query(req, SPAN("consumerGroup"));
    return group.ptr ? group : SPAN("__QUEUE_MODE__");
}

static bool permits(const struct access_rules *rules, struct http_req *req, unsigned op)
{
    span queue;

    switch (http_req_route(req)->target) {
    case TARGET_ADMIN:
        return false;
    case TARGET_FREE:
        return true;
    case TARGET_ALL:
        return access_rules_permit_all(rules, op);
    case TARGET_PATH:
        return access_path_param(req, SPAN("queue"), &queue) &&
               access_rules_permit(rules, op, queue, access_group_of(req, op));
    case TARGET_QUERY:
    case TARGET_LIST:
        queue = http_req_query(req, SPAN("queue"));
        if (queue.ptr)
            return access_rules_permit(rules, op, queue,
                                       op == MAY_DELETE ? ACCESS_ALL_GROUPS : SPAN_NONE);
        return http_req_route(req)->target == TARGET_LIST ? access_rules_permit_some(rules, op)
                                                          : access_rules_permit_all(rules, op);
    case TARGET_TENANT:
        return access_path_param(req, SPAN("tenant"), &queue) &&
               access_rules_permit_tenant(rules, op, queue);
    case TARGET_PARTITION:
    case TARGET_BODY:
        return access_rules_permit_some(rules, op);
    }
    return false;
}

bool access_permits_head(const struct access_rules *rules, struct http_req *req)
{
    const struct http_route *route = http_req_route(req);
    unsigned need = route->need;

    bool is_public = route->access == ACCESS_PUBLIC && need == 0;
    if (is_public || access_rules_permit_all(rules, MAY_ADMIN) || route->target == TARGET_FREE)
        return true;
    bool is_body = route->target == TARGET_BODY; // one of them is enough here
    for (unsigned op = 1; op < MAY_ADMIN; op <<= 1)
        if ((need & op) != 0 && permits(rules, req, op) == is_body)
            return is_body;
    return need != 0 && !is_body; // nothing declared: for administrators
}
