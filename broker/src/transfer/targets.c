// targets.c: reads QUEEN_MIGRATION_TARGETS.
#include "transfer/targets.h"

#include <string.h>

#include "base/str.h"

struct allowed {
    span host, database; // SPAN_NONE: any database
    unsigned port;
};

static bool next_item(span *rest, span *item)
{
    for (;;) {
        while (rest->len > 0 && strchr(", \t", rest->ptr[0]))
            rest->ptr++, rest->len--;
        if (rest->len == 0)
            return false;
        size_t n = 0;
        while (n < rest->len && !strchr(", \t", rest->ptr[n]))
            n++;
        *item = (span){rest->ptr, n};
        rest->ptr += n;
        rest->len -= n;
        return true;
    }
}

static bool read_port(span text, unsigned *port)
{
    int64_t n = 0;

    if (text.len == 0 || text.len > 5 || !str_leading_i64(text, &n) || n < 1 || n > 65535)
        return false;
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    *port = (unsigned)n;
    return true;
}

static bool read_item(span item, struct allowed *a)
{
    const char *slash = memchr(item.ptr, '/', item.len), *end;
    span server = {item.ptr, slash ? (size_t)(slash - item.ptr) : item.len};

    *a = (struct allowed){.port = 5432};
    if (slash)
        a->database = (span){slash + 1, item.len - server.len - 1};
    if (slash && a->database.len == 0)
        return false;
    if (server.len > 0 && server.ptr[0] == '[') {
        end = memchr(server.ptr, ']', server.len);
        if (!end)
            return false;
        a->host = (span){server.ptr + 1, (size_t)(end - server.ptr) - 1};
        end++;
    } else {
        end = memchr(server.ptr, ':', server.len);
        if (!end)
            end = server.ptr + server.len;
        a->host = (span){server.ptr, (size_t)(end - server.ptr)};
    }
    size_t left = (size_t)(server.ptr + server.len - end);
    if (left > 0 && (end[0] != ':' || !read_port((span){end + 1, left - 1}, &a->port)))
        return false;
    return a->host.len > 0;
}

int transfer_targets_check(const char *list, struct fault *f)
{
    span rest = span_of(list), item;
    struct allowed a;

    while (next_item(&rest, &item))
        if (!read_item(item, &a))
            return fault_set(f, QE_CONF,
                             "QUEEN_MIGRATION_TARGETS: \"%.*s\" is not host[:port][/database]",
                             (int)(item.len < 100 ? item.len : 100), item.ptr);
    return 0;
}

bool transfer_targets_allow(const char *list, span host, unsigned port, span database)
{
    span rest = span_of(list), item;
    struct allowed a;

    while (next_item(&rest, &item))
        if (read_item(item, &a) && str_eq_nocase(a.host, host) && a.port == port &&
            (!a.database.ptr || span_eq(a.database, database)))
            return true;
    return false;
}
