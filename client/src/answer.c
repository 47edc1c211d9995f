// answer.c: parses HTTP responses with llhttp.
#include "answer.h"

#include <stdlib.h>

#include <llhttp.h>

#include "base/buf.h"
#include "base/mem.h"
#include "http/gzip.h"

enum { MAX_HEAD = 256 << 10 };

struct answer {
    llhttp_t parser;
    llhttp_settings_t settings;
    size_t max_body;
    bool to_head, begun, done, keep_alive, too_large;
    struct buf head; // name NUL value NUL name NUL value NUL ...
    struct buf body;
    size_t n_headers;
    bool in_value, in_trailer;
    size_t trailer_bytes;
};

// The public part comes first, so that a pointer to it is a pointer to the whole.
struct owned_response {
    struct queen_response pub;
    struct buf head, body;
    struct queen_header *headers;
};

// Trailers are read and discarded, up to the size limit of a head.
static int skip_trailer(struct answer *a, size_t n)
{
    a->trailer_bytes += n;
    return a->trailer_bytes > MAX_HEAD ? -1 : 0;
}

static int on_field(llhttp_t *p, const char *at, size_t n)
{
    struct answer *a = p->data;

    if (a->in_trailer)
        return skip_trailer(a, n);
    if (a->in_value || a->n_headers == 0) {
        if (a->in_value)
            buf_putc(&a->head, '\0');
        a->in_value = false;
        a->n_headers++;
    }
    for (size_t i = 0; i < n; i++)
        buf_putc(&a->head, at[i] >= 'A' && at[i] <= 'Z' ? (char)(at[i] + 32) : at[i]);
    return a->head.failed ? -1 : 0;
}

static int on_value(llhttp_t *p, const char *at, size_t n)
{
    struct answer *a = p->data;

    if (a->in_trailer)
        return skip_trailer(a, n);
    if (!a->in_value)
        buf_putc(&a->head, '\0');
    a->in_value = true;
    buf_put_bytes(&a->head, at, n);
    return a->head.failed ? -1 : 0;
}

static int on_head(llhttp_t *p)
{
    struct answer *a = p->data;

    if (a->in_value)
        buf_putc(&a->head, '\0');
    a->in_value = false;
    a->in_trailer = true;
    if (a->head.failed)
        return -1;
    return a->to_head ? 1 : 0;
}

static int on_body(llhttp_t *p, const char *at, size_t n)
{
    struct answer *a = p->data;

    buf_put_bytes(&a->body, at, n);
    a->too_large = a->body.failed;
    return a->too_large ? -1 : 0;
}

static int on_complete(llhttp_t *p)
{
    struct answer *a = p->data;

    if (p->status_code < 200) { // 100 Continue and similar: the final response follows
        buf_reset(&a->head);
        a->n_headers = 0;
        a->in_trailer = false;
        return 0;
    }
    a->keep_alive = llhttp_should_keep_alive(p);
    a->done = true;
    return HPE_PAUSED;
}

struct answer *answer_new(size_t max_body)
{
    struct answer *a = mem_new(struct answer);

    llhttp_settings_init(&a->settings);
    a->settings.on_header_field = on_field;
    a->settings.on_header_value = on_value;
    a->settings.on_headers_complete = on_head;
    a->settings.on_body = on_body;
    a->settings.on_message_complete = on_complete;
    a->max_body = max_body;
    a->head.max = MAX_HEAD;
    a->body.max = max_body;
    return a;
}

void answer_free(struct answer *a)
{
    if (!a)
        return;
    buf_free(&a->head);
    buf_free(&a->body);
    free(a);
}

void answer_start(struct answer *a, bool to_head)
{
    llhttp_init(&a->parser, HTTP_RESPONSE, &a->settings);
    a->parser.data = a;
    a->to_head = to_head;
    a->begun = a->done = a->keep_alive = a->too_large = false;
    a->in_value = a->in_trailer = false;
    a->n_headers = a->trailer_bytes = 0;
    buf_reset(&a->head);
    buf_reset(&a->body);
}

static enum answer_state state_of(const struct answer *a, llhttp_errno_t rc)
{
    if (a->done)
        return ANSWER_DONE;
    if (a->too_large)
        return ANSWER_TOO_LARGE;
    return rc == HPE_OK ? ANSWER_MORE : ANSWER_BAD;
}

enum answer_state answer_feed(struct answer *a, const char *bytes, size_t n)
{
    a->begun = a->begun || n > 0;
    llhttp_errno_t rc = llhttp_execute(&a->parser, bytes, n);
    // Bytes behind the response: there is no other request, so they must not be taken for the
    // response to the next one.
    if (a->done && llhttp_get_error_pos(&a->parser) != bytes + n)
        a->keep_alive = false;
    return state_of(a, rc);
}

enum answer_state answer_end(struct answer *a)
{
    enum answer_state s = state_of(a, llhttp_finish(&a->parser));

    return s == ANSWER_MORE ? ANSWER_BAD : s;
}

bool answer_has_begun(const struct answer *a) { return a->begun; }
bool answer_keeps_alive(const struct answer *a) { return a->keep_alive; }

static void point_headers(struct owned_response *r, size_t n)
{
    const char *at = r->head.ptr;

    r->headers = mem_new_array(struct queen_header, n);
    for (size_t i = 0; i < n; i++) {
        r->headers[i].name = at;
        at += strlen(at) + 1;
        r->headers[i].value = at;
        at += strlen(at) + 1;
    }
    r->pub.headers = r->headers;
    r->pub.n_headers = n;
}

// Replaces the body by its decompressed contents.
static bool unpack(struct owned_response *r, size_t max)
{
    struct buf plain = {.max = max + 1}; // one for the NUL

    if (gzip_unpack(buf_span(&r->body), max, &plain) != 0) {
        buf_free(&plain);
        return false;
    }
    buf_free(&r->body);
    r->body = plain;
    return true;
}

struct queen_response *answer_take(struct answer *a)
{
    struct owned_response *r = mem_new(struct owned_response);

    r->pub.status = a->parser.status_code;
    r->head = a->head;
    r->body = a->body;
    a->head = (struct buf){.max = MAX_HEAD};
    a->body = (struct buf){.max = a->max_body};
    point_headers(r, a->n_headers);

    const char *coding = queen_response_header(&r->pub, "content-encoding");
    bool ok =
        !coding || strcmp(coding, "gzip") != 0 || r->body.len == 0 || unpack(r, a->max_body);
    r->body.max = a->max_body + 1;
    buf_putc(&r->body, '\0');
    if (!ok || r->body.failed) {
        queen_response_free(&r->pub);
        return NULL;
    }
    r->pub.body = r->body.ptr;
    r->pub.body_len = r->body.len - 1;
    return &r->pub;
}

const char *queen_response_header(const struct queen_response *r, const char *name)
{
    for (size_t i = 0; i < r->n_headers; i++)
        if (strcmp(r->headers[i].name, name) == 0)
            return r->headers[i].value;
    return NULL;
}

void queen_response_free(struct queen_response *pub)
{
    struct owned_response *r = container_of(pub, struct owned_response, pub);

    if (!pub)
        return;
    buf_free(&r->head);
    buf_free(&r->body);
    free(r->headers);
    free(r);
}
