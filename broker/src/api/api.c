// api.c: counters of the endpoints, and the small things all of them need.
#include "api/api.h"
#include "api/partition_key.h"
#include "api/permission.h"

#include <stdlib.h>

#include "api/api_int.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "json/write.h"

void api_init(struct api *a, struct api_shared *shared)
{
    a->shared = shared;
    a->n_routes = http_routes_count(shared->routes);
    a->routes = mem_new_array(struct api_route_stats, a->n_routes + 1);
}

void api_deinit(struct api *a)
{
    free(a->routes);
    a->routes = NULL;
    snapshot_deinit(&a->snapshot);
    partition_keys_forget(a);
    permission_forget(a);
}

void api_observe(void *app, const struct http_route *route, int status, uint64_t us)
{
    struct api *a = app;
    size_t i = route ? http_route_index(a->shared->routes, route) : a->n_routes;

    histogram_add(&a->routes[i].us, us);
    counter_add(&a->routes[i].class_[status >= 100 && status < 600 ? status / 100 : 0], 1);
}

// By SQLSTATE, or by its class.
static const char *cause_of(const char *sqlstate)
{
    static const struct {
        const char *prefix, *cause;
    } causes[] = {
        {"42501", "permission denied"},
        {"42P01", "a table is missing"},
        {"42883", "a function is missing"},
        {"42703", "a column is missing"},
        {"3F000", "a schema is missing"},
        {"0A", "feature not supported"},
        {"28", "login refused"},
        {"3D", "no such database"},
        {"42", "statement not accepted"},
        {"40", "conflict with another transaction"},
        {"53100", "disk full"},
        {"53300", "too many connections"},
        {"53", "out of resources"},
        {"54", "limit exceeded"},
        {"55P03", "locked by another transaction"},
        {"55", "object not in the required state"},
        {"57014", "longer than DB_STATEMENT_TIMEOUT, or cancelled by an operator"},
        {"57", "stopped by an operator"},
        {"58", "system error"},
        {"P0", "error in a procedure"},
        {"XX", "internal error"},
    };

    for (unsigned i = 0; i < countof(causes); i++)
        if (strncmp(sqlstate, causes[i].prefix, strlen(causes[i].prefix)) == 0)
            return causes[i].cause;
    return "unexpected error";
}

// Details of PostgreSQL's error go to the log, under the id of the request.
static void reply_database_failed(struct http_req *req, int status, const struct fault *why)
{
    enum { LINES = 10 }; // per second and worker
    struct api *api = http_req_app(req);
    uint64_t now_s = clock_mono_us() / 1000000;
    span id = http_req_id(req);

    api->n_logged = now_s == api->logged_s ? api->n_logged + 1 : 0;
    api->logged_s = now_s;
    if (api->n_logged < LINES)
        log_warn("db.request_failed",
                 "request=\"" SPAN_FMT "\" sqlstate=%s error=\"%s\" path=\"" SPAN_FMT "\"",
                 SPAN_ARG(id), why->sqlstate, why->text, SPAN_ARG(http_req_path(req)));
    if (why->sqlstate[0] != '\0')
        http_reply_errf(req, status, "%s: SQLSTATE %s, %s; request " SPAN_FMT, err_text(status),
                        why->sqlstate, cause_of(why->sqlstate), SPAN_ARG(id));
    else
        http_reply_errf(req, status, "%s; request " SPAN_FMT, err_text(status), SPAN_ARG(id));
}

// The text of PostgreSQL names hosts and users, which a protected server does not show to
// strangers.
span api_reason(const struct api *api)
{
    bool ready = atomic_load(&api->shared->ready);
    const char *why = ready ? broker_pg_error(api->broker) : api->reason;

    if (why[0] != '\0' && api->shared->show_details)
        return span_of(why);
    if (why[0] == '\0')
        return ready ? SPAN("the database has not answered yet")
                     : SPAN("starting: applying schema");
    return SPAN("the database cannot be used; the log of the server has the error");
}

void api_reply_failed(struct http_req *req, int status, const struct fault *why)
{
    const struct api *api = http_req_app(req);

    if (status == QE_PG_AWAY && !atomic_load(&api->shared->ready)) {
        http_reply_errf(req, status, SPAN_FMT, SPAN_ARG(api_reason(api)));
        return;
    }
    if (status == QE_PG_FAILED || status == QE_PG_SHAPE ||
        (status != QE_PG_DATA && why->sqlstate[0] != '\0'))
        reply_database_failed(req, status, why);
    else if (why->text[0] != '\0')
        http_reply_errf(req, status, "%s", why->text);
    else
        http_reply_err(req, status);
}

void api_note_db(struct http_req *req, const struct op *op)
{
    if (http_req_has(req, RARE_REQUEST_ID))
        http_req_note_db(req, clock_mono_us() - op->since_us);
}

bool api_is_name(span text)
{
    if (text.len == 0)
        return true;
    // Characters are at most four bytes, so most names need not be counted.
    return text.len <= (size_t)4 * API_NAME_CHARS && !memchr(text.ptr, '\0', text.len) &&
           str_is_utf8(text) &&
           (text.len <= API_NAME_CHARS || str_utf8_chars(text) <= API_NAME_CHARS);
}

char *put_u64(char *at, uint64_t v)
{
    char digits[20];
    unsigned n = 0;

    do
        digits[n++] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    while (n > 0)
        *at++ = digits[--n];
    return at;
}

// Eight bytes into sixteen digits at once: spread the nibbles over two words, then make letters
// of those above nine.
static void put_hex8(char out[16], const uint8_t in[8])
{
    for (size_t half = 0; half < 2; half++) {
        uint64_t v = (uint64_t)in[4 * half] << 24 | (uint64_t)in[4 * half + 1] << 16 |
                     (uint64_t)in[4 * half + 2] << 8 | (uint64_t)in[4 * half + 3];
        v = (v | v << 16) & 0x0000ffff0000ffffu;
        v = (v | v << 8) & 0x00ff00ff00ff00ffu;
        v = (v | v << 4) & 0x0f0f0f0f0f0f0f0fu;
        uint64_t letters = ((v + 0x0606060606060606u) >> 4) & 0x0101010101010101u;
        v += 0x3030303030303030u + letters * ('a' - '0' - 10);
        v = __builtin_bswap64(v);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
        v = __builtin_bswap64(v);
#endif
        memcpy(out + 8 * half, &v, 8);
    }
}

char *put_uuid(char *at, const uint8_t id[16])
{
    char hex[32];

    put_hex8(hex, id);
    put_hex8(hex + 16, id + 8);
    memcpy(at, hex, 8);
    at[8] = at[13] = at[18] = at[23] = '-';
    memcpy(at + 9, hex + 8, 4);
    memcpy(at + 14, hex + 12, 4);
    memcpy(at + 19, hex + 16, 4);
    memcpy(at + 24, hex + 20, 12);
    return at + 36;
}

bool api_needs_escape(span text)
{
    unsigned found = 0;

    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        found |= (unsigned)(c < 0x20) | (unsigned)(c == '"') | (unsigned)(c == '\\');
    }
    return found != 0;
}

span api_json_text(struct arena *a, span text, span body)
{
    bool in_body = text.ptr >= body.ptr && text.ptr < body.ptr + body.len;
    if (in_body || !api_needs_escape(text))
        return text;

    struct buf escaped = {0};
    js_put_escaped(&escaped, text);
    span copy = arena_copy(a, buf_span(&escaped));
    buf_free(&escaped);
    return copy;
}
