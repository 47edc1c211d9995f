#include "auth/identity.h"

#include "auth/access.h"
#include "base/buf.h"
#include "json/write.h"

static const char *role_name(const struct access *a)
{
    static const char *const names[] = {[ACCESS_PUBLIC] = "none",
                                        [ACCESS_READ_ONLY] = "read-only",
                                        [ACCESS_READ_WRITE] = "read-write",
                                        [ACCESS_ADMIN] = "admin"};

    return a ? names[a->level] : names[ACCESS_ADMIN];
}

// The rules permit the operation for some name.
static bool rules_permit_route(const struct access_rules *rules, const struct http_route *route)
{
    bool is_body = route->target == TARGET_BODY; // one of the needed operations is enough

    if (route->target == TARGET_FREE)
        return true;
    for (unsigned op = 1; op < MAY_ADMIN; op <<= 1) {
        if ((route->need & op) == 0)
            continue;
        bool permitted = route->target == TARGET_ALL ? access_rules_permit_all(rules, op)
                         : route->target == TARGET_TENANT
                             ? access_rules_permit_some_tenant(rules, op)
                             : access_rules_permit_some(rules, op);
        if (permitted == is_body)
            return is_body;
    }
    return route->need != 0 && !is_body;
}

void identity_reply(struct http_req *req, const struct http_route *const *routes)
{
    const struct access *a = access_of(req);
    const struct access_rules *rules = access_rules_of(req);
    struct buf out = {0};
    const char *comma = "";

    buf_printf(&out, "{\"protected\":%s,\"subject\":", a ? "true" : "false");
    if (a && a->identity.subject.ptr)
        js_put_text(&out, a->identity.subject);
    else
        buf_put_lit(&out, "null");
    if (rules) {
        buf_put_lit(&out, ",\"role\":null,\"allow\":");
        js_put_text(&out, access_rules_text(rules));
    } else {
        bool is_all = a && a->rules; // rules that permit everything
        buf_printf(&out, ",\"role\":\"%s\",\"allow\":null", is_all ? "admin" : role_name(a));
    }
    buf_put_lit(&out, ",\"operations\":[");
    for (; *routes; routes++) {
        const struct http_route *r = *routes;
        if (rules && !rules_permit_route(rules, r))
            continue;
        if (a && !a->rules && a->level < r->access)
            continue;
        buf_printf(&out, "%s\"%s\"", comma, r->op);
        comma = ",";
    }
    buf_put_lit(&out, "]}");
    http_reply_header(req, SPAN("Cache-Control"), SPAN("no-store"));
    http_reply_json(req, 200, &out);
}
