// banner.c: the few lines on stdout at the start.
#include "server/banner.h"

#include <stdio.h>
#include <string.h>

#include "base/log.h"

void banner_print(const char *host, unsigned port, const char *where)
{
    const char *all[] = {"", "0.0.0.0", "::", "[::]"}, *name = host, *left = "", *right = "";

    for (unsigned i = 0; i < countof(all); i++)
        if (strcmp(host, all[i]) == 0)
            name = "localhost";
    if (strchr(name, ':') && name[0] != '[')
        left = "[", right = "]";

    printf(
        "Queen %s listens on http://%s%s%s:%u\n"
        "Data: %s\n"
        "\n"
        "Try it:\n"
        "  curl -X POST http://%s%s%s:%u/api/v1/push -H 'Content-Type: application/json' \\\n"
        "       -d '{\"items\": [{\"queue\": \"demo\", \"payload\": {\"hello\": "
        "\"world\"}}]}'\n"
        "  curl 'http://%s%s%s:%u/api/v1/pop/queue/demo?autoAck=true'\n"
        "\n",
        QUEEN_VERSION, left, name, right, port, where, left, name, right, port, left, name,
        right, port);
    if (fflush(stdout) != 0)
        log_debug("banner.failed", "why=\"stdout is closed\"");
}
