// dump_routes.c: the compiled table of the platform, for
// tests/unit/broker/api/check_openapi.py: verb, path, access, then as
// tests/unit/broker/api/dump_routes.c, with tabs between.
#include <stdio.h>

#include "http/route.h"

extern const struct http_route *const platform_routes[]; // platform/platform_int.h is private

static void print_route(const struct http_route *r)
{
    static const char *const verbs[] = {"get",     "post", "put",  "delete",
                                        "options", "head", "patch"};

    const char *target = r->target == TARGET_TENANT ? "tenant"
                         : r->target == TARGET_FREE ? "free"
                                                    : "admin";
    printf("%s\t%s\t%d\t%s %u\t?\t?\t", verbs[r->verb], r->path, (int)r->access, target,
           r->need);
    for (const char *const *q = r->query; q && *q; q++)
        printf("%s%s", q == r->query ? "" : ",", *q);
    printf("\n");
}

int main(void)
{
    for (const struct http_route *const *at = platform_routes; *at; at++)
        print_route(*at);
    return 0;
}
