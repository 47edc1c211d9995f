// servers.c: the list of servers, their health, and the two strategies.
#include "servers.h"

#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "fail.h"

enum { MAX_SERVERS = 64 };

int servers_init(struct servers *s, const char *urls, enum queen_strategy strategy,
                 unsigned unhealthy_ms, struct queen_error *err)
{
    span rest = span_of(urls), url, names[MAX_SERVERS];
    int rc = 0;

    *s = (struct servers){.strategy = strategy, .unhealthy_us = (uint64_t)unhealthy_ms * 1000};
    s->list = mem_new_array(struct server, MAX_SERVERS);
    while (rc == 0 && str_split(&rest, ',', &url)) {
        url = str_trim(url);
        if (s->n == MAX_SERVERS)
            rc = fail_set(err, QUEEN_E_ARGUMENT, "url: more than %d servers", MAX_SERVERS);
        else if ((rc = address_parse(&s->list[s->n].address, url, err)) == 0)
            names[s->n++] = url;
    }
    if (rc == 0 && s->n == 0)
        rc = fail_set(err, QUEEN_E_ARGUMENT, "url: no server is named");
    if (rc != 0)
        servers_deinit(s);
    else
        ring_init(&s->ring, names, s->n);
    return rc;
}

void servers_deinit(struct servers *s)
{
    for (unsigned i = 0; i < s->n; i++)
        address_deinit(&s->list[i].address);
    free(s->list);
    ring_deinit(&s->ring);
}

struct wanted {
    const struct servers *servers;
    uint64_t tried, now_us;
    bool sick_too;
};

static bool is_usable(unsigned server, void *ctx)
{
    const struct wanted *w = ctx;

    return !(w->tried >> server & 1) &&
           (w->sick_too || w->servers->list[server].sick_until_us <= w->now_us);
}

static bool any_usable(const struct servers *s, struct wanted *w)
{
    for (unsigned i = 0; i < s->n; i++)
        if (is_usable(i, w))
            return true;
    return false;
}

unsigned servers_choose(struct servers *s, span key, uint64_t tried, uint64_t now_us)
{
    struct wanted w = {.servers = s, .tried = tried, .now_us = now_us};

    if (!any_usable(s, &w))
        w.sick_too = true;
    if (!any_usable(s, &w))
        w.tried = 0;
    if (key.ptr && s->strategy == QUEEN_AFFINITY)
        return ring_find(&s->ring, key, is_usable, &w);
    for (;;) {
        unsigned server = s->next++ % s->n;
        if (is_usable(server, &w))
            return server;
    }
}

void servers_note(struct servers *s, unsigned server, bool well, uint64_t now_us)
{
    s->list[server].sick_until_us = well ? 0 : now_us + s->unhealthy_us;
}
