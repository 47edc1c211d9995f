// stream.c: reads JSON values from a file or pipe and finds their ends in one pass.
#include "cli/stream.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "json/scan.h"

enum { CHUNK = 64 * 1024, MAX_VALUE = 256 * 1024 * 1024 };

void stream_init(struct stream *s, int fd, const char *name, bool lines)
{
    *s = (struct stream){.fd = fd, .name = name, .lines = lines};
    s->bytes.max = MAX_VALUE;
}

void stream_deinit(struct stream *s) { buf_free(&s->bytes); }

uint64_t stream_offset(const struct stream *s) { return s->offset + s->used; }

// Reads more bytes.
static int stream_fill(struct stream *s, struct fault *f)
{
    if (s->used > 0) {
        memmove(s->bytes.ptr, s->bytes.ptr + s->used, s->bytes.len - s->used);
        s->bytes.len -= s->used;
        s->offset += s->used;
        s->used = 0;
    }
    if (!buf_reserve(&s->bytes, CHUNK))
        return fault_set(f, QE_TOO_LARGE, "a value in %s is larger than 256 MB", s->name);
    ssize_t n;
    do
        n = read(s->fd, s->bytes.ptr + s->bytes.len, CHUNK);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        return fault_set(f, QE_INTERNAL, "cannot read %s: %s", s->name, strerror(errno));
    s->bytes.len += (size_t)n;
    s->ended = n == 0;
    return 0;
}

static bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

// The search for the end of a value, across reads.
struct finder {
    size_t at; // bytes of the value already examined
    int depth;
    bool string, escape;
};

// The length of the value that starts at p; 0 if its end has not been read yet.
static size_t find_end(struct finder *s, const char *p, size_t len, bool ended)
{
    bool scalar = p[0] != '{' && p[0] != '[' && p[0] != '"';

    for (; s->at < len; s->at++) {
        char c = p[s->at];
        if (scalar) {
            if (is_space(c) || c == ',' || c == '{' || c == '[' || c == '"')
                return s->at;
        } else if (s->escape) {
            s->escape = false;
        } else if (s->string) {
            s->escape = c == '\\';
            s->string = c != '"';
        } else if (c == '"') {
            s->string = true;
        } else if (c == '{' || c == '[') {
            s->depth++;
        } else if (c == '}' || c == ']') {
            s->depth--;
        }
        if (!scalar && !s->string && s->depth <= 0)
            return s->at + 1;
    }
    return ended ? len : 0;
}

static size_t find_line_end(struct finder *s, const char *p, size_t len, bool ended)
{
    const char *end = memchr(p + s->at, '\n', len - s->at);

    s->at = len;
    return end ? (size_t)(end - p) + 1 : ended ? len : 0;
}

int stream_next(struct stream *s, span *value, struct fault *f)
{
    struct finder finder = {0};
    size_t len = 0;

    while (len == 0) {
        while (!s->lines && s->used < s->bytes.len && is_space(s->bytes.ptr[s->used]))
            s->used++;
        const char *p = s->bytes.ptr + s->used;
        size_t there = s->bytes.len - s->used;
        if (there > 0)
            len = s->lines ? find_line_end(&finder, p, there, s->ended)
                           : find_end(&finder, p, there, s->ended);
        if (len == 0 && s->ended)
            return 0;
        int rc = len == 0 ? stream_fill(s, f) : 0;
        if (rc != 0)
            return rc;
    }
    *value = (span){s->bytes.ptr + s->used, len};
    uint64_t from = stream_offset(s);
    s->used += len;
    if (s->lines) {
        while (value->len > 0 &&
               (value->ptr[value->len - 1] == '\n' || value->ptr[value->len - 1] == '\r'))
            value->len--;
        return 1;
    }
    struct js j = js_read(*value);
    js_skip(&j);
    if (js_finish(&j) == 0)
        return 1;
    unsigned long long at = from + js_offset(&j);
    return fault_set(f, QE_BAD_JSON, "%s is not JSON at byte %llu: %s", s->name, at,
                     j.why ? j.why : "the value ends too early");
}
