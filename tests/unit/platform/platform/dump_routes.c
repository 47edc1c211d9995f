// dump_routes.c: the compiled table of the platform, for
// tests/unit/broker/api/check_openapi.py: verb, path, access, with tabs between.
#include <stdio.h>

#include "http/route.h"

extern const struct http_route *const platform_routes[]; // platform/platform_int.h is private

int main(void)
{
    static const char *const verbs[] = {"get",     "post", "put",  "delete",
                                        "options", "head", "patch"};

    for (const struct http_route *const *at = platform_routes; *at; at++)
        printf("%s\t%s\t%d\t\n", verbs[(*at)->verb], (*at)->path, (int)(*at)->access);
    return 0;
}
