// GET of a path without an endpoint: the built-in dashboard, or the files of WEBAPP_ROOT.
//
// The disk may be slow, so libuv's threads read it. A path below WEBAPP_ROOT that names no file
// belongs to a dashboard that routes in the browser and gets index.html.
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "api/api_int.h"
#include "base/str.h"
#include "web/web.h"

enum { MAX_FILE_BYTES = 64 << 20 };

// In the request's arena; the thread's while it works.
struct asset {
    uv_work_t work;
    struct http_req *req;
    const char *root; // real path
    char *name;       // below the root, decoded
    bool is_asset;    // under /assets/: no index.html instead of it
    bool is_index;
    struct buf body;
    char etag[48];
    int rc;
};

static bool read_name(struct asset *a, span path);
static void assets_load(uv_work_t *work);
static int open_below(struct asset *a, const char *name);
static int load_file(struct asset *a, int fd);
static void loaded(uv_work_t *work, int status);

// Paths of the interface that do not exist are not the dashboard's.
static bool is_interface(span path)
{
    static const char *const prefixes[] = {"/api/",     "/health",    "/metrics",
                                           "/ws/",      "/live",      "/ready",
                                           "/streams/", "/internal/", "/openapi.json"};

    for (unsigned i = 0; i < countof(prefixes); i++)
        if (str_starts(path, span_of(prefixes[i])))
            return true;
    return false;
}

void api_asset(struct http_req *req)
{
    struct api *api = http_req_app(req);
    span path = http_req_path(req);

    if (is_interface(path) || path.len == 0 || path.ptr[0] != '/') {
        http_reply_err(req, QE_NOT_FOUND);
        return;
    }
    if (!api->shared->web_root) {
        if (!web_reply(req, SPAN("/index.html")))
            http_reply_err(req, QE_NOT_FOUND);
        return;
    }
    struct asset *a = arena_new(http_req_arena(req), struct asset);
    a->req = req;
    a->root = api->shared->web_root;
    a->work.data = a;
    if (!read_name(a, path))
        http_reply_err(req, a->rc);
    else if (uv_queue_work(http_req_loop(req), &a->work, assets_load, loaded) != 0)
        http_reply_err(req, QE_INTERNAL);
}

static bool read_name(struct asset *a, span path)
{
    struct buf name = {.max = PATH_MAX};
    span rest = path, segment;

    bool ok = str_percent_decode((span){path.ptr + 1, path.len - 1}, false, &name) &&
              !name.failed && !(name.len > 0 && memchr(name.ptr, '\0', name.len));
    a->rc = QE_NOT_FOUND;
    for (rest = buf_span(&name); ok && str_split(&rest, '/', &segment);) {
        if (span_eq(segment, SPAN("..")) ||
            (segment.len && memchr(segment.ptr, '\\', segment.len))) {
            a->rc = QE_FORBIDDEN_PATH;
            ok = false;
        }
    }
    if (ok) {
        a->name = arena_alloc(http_req_arena(a->req), name.len + 1);
        if (name.len > 0)
            memcpy(a->name, name.ptr, name.len);
        a->name[name.len] = '\0';
        a->is_asset = str_starts(buf_span(&name), SPAN("assets/"));
    }
    buf_free(&name);
    return ok;
}

// ---- on a thread of the pool ----

static void assets_load(uv_work_t *work)
{
    struct asset *a = work->data;

    a->rc = QE_NOT_FOUND;
    int fd = a->name[0] == '\0' ? -1 : open_below(a, a->name);
    if (fd >= 0)
        a->rc = load_file(a, fd);
    if (a->rc == QE_NOT_FOUND && !a->is_asset) {
        a->is_index = true;
        fd = open_below(a, "index.html");
        if (fd >= 0)
            a->rc = load_file(a, fd);
    }
}

// -1: there is none, or (rc) it lies elsewhere.
static int open_below(struct asset *a, const char *name)
{
    char path[PATH_MAX], real[PATH_MAX];
    size_t root_len = strlen(a->root);

    if (snprintf(path, sizeof path, "%s/%s", a->root, name) >= (int)sizeof path ||
        !realpath(path, real))
        return -1;
    if (strncmp(real, a->root, root_len) != 0 || real[root_len] != '/') {
        a->rc = strcmp(real, a->root) == 0 ? QE_NOT_FOUND : QE_FORBIDDEN_PATH;
        return -1;
    }
    return open(real, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
}

static int load_file(struct asset *a, int fd)
{
    struct stat st;
    int rc = 0;

    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_size > MAX_FILE_BYTES)
        rc = QE_NOT_FOUND;
    else if (!buf_reserve(&a->body, (size_t)st.st_size + 1))
        rc = QE_NO_MEMORY;
    while (rc == 0) {
        ssize_t n = read(fd, a->body.ptr + a->body.len, a->body.cap - a->body.len);
        if (n > 0 && buf_reserve(&a->body, 1))
            a->body.len += (size_t)n;
        else if (n == 0)
            break;
        else if (n < 0 && errno != EINTR)
            rc = QE_INTERNAL;
        if (a->body.len > MAX_FILE_BYTES)
            rc = QE_TOO_LARGE;
    }
    close(fd);
    if (rc == 0)
        snprintf(a->etag, sizeof a->etag, "\"%llx-%llx\"", (unsigned long long)st.st_size,
                 (unsigned long long)st.st_mtim.tv_sec * 1000000000u +
                     (unsigned long long)st.st_mtim.tv_nsec);
    else
        buf_free(&a->body);
    return rc;
}

// ---- back on the loop ----

static span type_of(const char *name)
{
    static const struct {
        const char *end;
        span type;
    } types[] = {
#define TYPE(e, t)              \
    {                           \
        e, { t, sizeof(t) - 1 } \
    }
        TYPE(".html", "text/html; charset=utf-8"),
        TYPE(".js", "text/javascript; charset=utf-8"),
        TYPE(".mjs", "text/javascript; charset=utf-8"),
        TYPE(".css", "text/css; charset=utf-8"),
        TYPE(".json", "application/json"),
        TYPE(".map", "application/json"),
        TYPE(".png", "image/png"),
        TYPE(".jpg", "image/jpeg"),
        TYPE(".jpeg", "image/jpeg"),
        TYPE(".gif", "image/gif"),
        TYPE(".svg", "image/svg+xml"),
        TYPE(".ico", "image/x-icon"),
        TYPE(".webp", "image/webp"),
        TYPE(".woff", "font/woff"),
        TYPE(".woff2", "font/woff2"),
        TYPE(".ttf", "font/ttf"),
        TYPE(".txt", "text/plain; charset=utf-8"),
#undef TYPE
    };
    const char *dot = strrchr(name, '.');

    for (unsigned i = 0; dot && i < countof(types); i++)
        if (str_eq_nocase(span_of(dot), span_of(types[i].end)))
            return types[i].type;
    return SPAN("application/octet-stream");
}

// "app-3fa9c1d2.js": eight characters or more, a digit among them, behind '-' or '.'.
static bool has_hash(const char *name)
{
    const char *dot = strrchr(name, '.');
    const char *from = dot;
    bool digit = false;

    if (!dot)
        return false;
    while (from > name && from[-1] != '-' && from[-1] != '.' && from[-1] != '/') {
        from--;
        digit = digit || (*from >= '0' && *from <= '9');
    }
    return digit && dot - from >= 8 && from > name && from[-1] != '/';
}

static void loaded(uv_work_t *work, int status)
{
    struct asset *a = work->data;
    struct http_req *req = a->req;

    (void)status; // never cancelled
    if (a->rc != 0) {
        http_reply_err(req, a->rc);
        return;
    }
    const char *name = a->is_index ? "index.html" : a->name;
    bool is_page = str_eq_nocase(span_of(name), SPAN("index.html"));
    http_reply_header(req, SPAN("Cache-Control"),
                      is_page ? SPAN("no-cache, no-store, must-revalidate")
                      : a->is_asset || has_hash(name)
                          ? SPAN("public, max-age=31536000, immutable")
                          : SPAN("public, max-age=3600"));
    http_reply_header(req, SPAN("ETag"), span_of(a->etag));
    http_reply_header(req, SPAN("X-Content-Type-Options"), SPAN("nosniff"));
    if (span_eq(http_req_header(req, SPAN("if-none-match")), span_of(a->etag))) {
        buf_free(&a->body);
        http_reply_empty(req, 304);
        return;
    }
    http_reply_text(req, 200, type_of(name), &a->body);
}
