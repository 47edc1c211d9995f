// dump_routes.c: the compiled table, for check_openapi.py: verb, path, access, whether it takes
// a body, the members of the body and the query parameters, with tabs between.  "?": it is not
// in the table.
#include "fake.h"

#include <stdio.h>

#include "api/sql_endpoint.h"

static void put_names(const char *const *names)
{
    for (const char *const *at = names; at && *at; at++)
        printf("%s%s", at == names ? "" : ",", *at);
}

int main(void)
{
    static const char *const verbs[] = {"get",     "post", "put",  "delete",
                                        "options", "head", "patch"};
    static const char *const targets[] = {"admin", "free",      "all",    "path", "query",
                                          "list",  "partition", "tenant", "body"};
    static const char *const bodies[] = {"none", "may", "must"};

    for (const struct http_route *const *at = api_routes; *at; at++) {
        const struct http_route *r = *at;
        printf("%s\t%s\t%d\t%s %u\t", verbs[r->verb], r->path, (int)r->access,
               targets[r->target], r->need);
        if (r->handle == sql_endpoint_handle) {
            const struct sql_endpoint *report =
                container_of_const(r, struct sql_endpoint, route);
            printf("%s\t", bodies[report->body]);
            put_names(report->members);
        } else {
            printf("?\t?");
        }
        printf("\t");
        put_names(r->query);
        printf("\n");
    }
    return 0;
}
