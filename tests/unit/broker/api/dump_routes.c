// dump_routes.c: the compiled table, for check_openapi.py: verb, path, access, then the names
// of the query parameters of a report and whether it takes a body, with tabs between.
#include "fake.h"

#include <stdio.h>

#include "api/sql_endpoint.h"

int main(void)
{
    static const char *const verbs[] = {"get",     "post", "put",  "delete",
                                        "options", "head", "patch"};
    static const char *const bodies[] = {"none", "may", "must"};

    for (const struct http_route *const *at = api_routes; *at; at++) {
        const struct http_route *r = *at;
        printf("%s\t%s\t%d\t", verbs[r->verb], r->path, (int)r->access);
        if (r->handle == sql_endpoint_handle) {
            const struct sql_endpoint *report =
                container_of_const(r, struct sql_endpoint, route);
            printf("report\t%s", bodies[report->body]);
            for (const char *const *q = report->query; q && *q; q++)
                printf("\t%s", *q);
        }
        printf("\n");
    }
    return 0;
}
