// banner.c: the few lines on stdout at the start.
#include "server/banner.h"

#include <stdio.h>

#include "base/log.h"
#include "http/site.h"

void banner_print(const struct listeners *l, bool exposed, const char *where,
                  const struct pg_conninfo *embedded)
{
    struct buf urls = {0}, local = {0};

    listeners_put_urls(l, &urls);
    listeners_put_local_url(l, &local);
    span url = buf_span(&local);
    printf("Queen %s listens on " SPAN_FMT "\n"
           "Data: %s\n"
           "%s"
           "\n"
           "Try it:\n"
           "  curl -X POST " SPAN_FMT "/api/v1/push -H 'Content-Type: application/json' \\\n"
           "       -d '{\"items\": [{\"queue\": \"demo\", \"payload\": {\"hello\": "
           "\"world\"}}]}'\n"
           "  curl '" SPAN_FMT "/api/v1/pop/queue/demo?autoAck=true'\n"
           "  queen push demo '{\"hello\": \"world\"}' --url " SPAN_FMT "\n"
           "  queen tail -f demo --url " SPAN_FMT "\n",
           QUEEN_VERSION, SPAN_ARG(buf_span(&urls)), where,
           exposed ? "Warning: " HTTP_SITE_EXPOSED "\n" : "", SPAN_ARG(url), SPAN_ARG(url),
           SPAN_ARG(url), SPAN_ARG(url));
    if (embedded)
        printf("  psql -h '%s' -U %s %s\n", embedded->hosts, embedded->user, embedded->db);
    printf("\n"
           "Dashboard:     " SPAN_FMT "/\n"
           "Interface:     " SPAN_FMT "/openapi.json\n"
           "Documentation: queen help, man queen, docs/index.md\n\n",
           SPAN_ARG(url), SPAN_ARG(url));
    if (fflush(stdout) != 0)
        log_debug("banner.failed", "why=\"stdout is closed\"");
    buf_free(&urls);
    buf_free(&local);
}
