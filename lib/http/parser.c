// parser.c: uses llhttp and adds limits and the checks of Host, obs-fold and transfer coding.
#include "http/parser.h"

#include <assert.h>
#include <llhttp.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"

enum { CHUNK_FRAMING = 64 }; // bytes that the length and the extensions of a chunk may take

struct http_parser {
    llhttp_t grammar;
    struct http_parser_limits limits;
    struct http_msg *msg;

    size_t head_bytes;    // of this request so far
    size_t trailer_bytes; // of its chunked body's trailer
    size_t body_bytes;    // of the body in the current call of http_parser_feed()
    size_t framing;       // bytes between the pieces of a chunked body ...
    size_t max_framing;   // ... and their limit, which grows with every chunk
    size_t entry;         // offset of the newest header entry in msg->head
    bool in_body;         // the head is complete
    bool name_done;       // the next piece of a name starts a new entry
    char line_last;       // last byte of the request line so far
    bool line_done;
    char last; // last byte of the head so far: a folded line may span two reads
};

// Precedes every header in msg->head.
struct entry {
    uint32_t name_len, value_len;
};

// Steps of a request, in order.
static int on_target(llhttp_t *g, const char *at, size_t len);
static int on_header_name(llhttp_t *g, const char *at, size_t len);
static int on_header_name_done(llhttp_t *g);
static int on_header_value(llhttp_t *g, const char *at, size_t len);
static int on_head(llhttp_t *g);
static enum http_feed head_done(struct http_parser *p);
static int on_body(llhttp_t *g, const char *at, size_t len);
static int on_chunk(llhttp_t *g);
static int on_done(llhttp_t *g);

static const llhttp_settings_t steps = {
    .on_url = on_target,
    .on_header_field = on_header_name,
    .on_header_field_complete = on_header_name_done,
    .on_header_value = on_header_value,
    .on_headers_complete = on_head,
    .on_body = on_body,
    .on_chunk_header = on_chunk,
    .on_message_complete = on_done,
};

struct http_parser *http_parser_new(struct http_parser_limits limits)
{
    struct http_parser *p = mem_new(struct http_parser);
    p->limits = limits;
    llhttp_init(&p->grammar, HTTP_REQUEST, &steps);
    p->grammar.data = p;
    return p;
}

void http_parser_free(struct http_parser *p) { free(p); }

void http_parser_start(struct http_parser *p, struct http_msg *msg)
{
    assert(msg->head.len == 0 && msg->body.len == 0);
    llhttp_reset(&p->grammar);
    p->msg = msg;
    p->head_bytes = p->trailer_bytes = p->entry = p->framing = 0;
    p->max_framing = p->limits.max_head;
    p->in_body = false;
    p->name_done = true;
    p->last = p->line_last = 0;
    p->line_done = false;
}

static enum http_feed http_parser_bad(struct http_parser *p, int status, const char *text)
{
    p->msg->bad_status = status;
    p->msg->bad_text = text;
    return HTTP_FEED_BAD;
}

static int too_much(struct http_parser *p, int status, const char *text)
{
    (void)http_parser_bad(p, status, text);
    return HPE_USER;
}

static enum http_feed bad_grammar(struct http_parser *p, llhttp_errno_t err)
{
    switch (err) {
    case HPE_USER:
        return HTTP_FEED_BAD; // a callback has set the reason
    case HPE_INVALID_VERSION:
    case HPE_PAUSED_H2_UPGRADE:
        return http_parser_bad(p, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    default:
        return http_parser_bad(p, 400, "the request is malformed");
    }
}

// A line that starts with white space continues the previous one (obs-fold). llhttp joins such
// lines, but proxies in front of us may not; the difference would allow request smuggling.
static bool has_fold(struct http_parser *p, const char *data, size_t len)
{
    const char *end = data + len;

    if (len == 0)
        return false;
    if (p->last == '\n' && (*data == ' ' || *data == '\t'))
        return true;
    p->last = end[-1];
    for (const char *lf = data; (lf = memchr(lf, '\n', (size_t)(end - lf))) && ++lf < end;)
        if (*lf == ' ' || *lf == '\t')
            return true;
    return false;
}

// The request line has single spaces (RFC 9112). llhttp skips further ones, a proxy in front of
// us may see another target.
static bool has_double_space(struct http_parser *p, const char *data, size_t len)
{
    for (size_t i = 0; i < len && !p->line_done; i++) {
        if (p->line_last == ' ' && data[i] == ' ')
            return true;
        p->line_last = data[i];
        p->line_done = data[i] == '\n';
    }
    return false;
}

static enum http_feed head_too_large(struct http_parser *p)
{
    if (p->msg->head.len == p->msg->target_len)
        return http_parser_bad(p, 414, "the address is too long");
    return http_parser_bad(p, 431, "the header block is too large");
}

enum http_feed http_parser_feed(struct http_parser *p, const char *data, size_t len,
                                size_t *used)
{
    p->body_bytes = 0;
    llhttp_errno_t err = llhttp_execute(&p->grammar, data, len);

    *used = len;
    if (err == HPE_PAUSED) {
        *used = (size_t)(llhttp_get_error_pos(&p->grammar) - data);
        llhttp_resume(&p->grammar);
    }
    if (err != HPE_OK && err != HPE_PAUSED)
        return bad_grammar(p, err);
    if (p->in_body && p->msg->chunked) {
        p->framing += *used - p->body_bytes;
        if (p->framing > p->max_framing)
            return http_parser_bad(p, 400, "the chunk headers are too long");
    }
    if (p->in_body)
        return err == HPE_PAUSED ? HTTP_FEED_DONE : HTTP_FEED_MORE;

    p->head_bytes += *used;
    if (p->head_bytes > p->limits.max_head)
        return head_too_large(p);
    if (has_double_space(p, data, *used))
        return http_parser_bad(p, 400, "the request line has more than single spaces");
    if (has_fold(p, data, *used))
        return http_parser_bad(p, 400, "folded header lines are not accepted");
    return err == HPE_PAUSED ? head_done(p) : HTTP_FEED_MORE;
}

static int on_target(llhttp_t *g, const char *at, size_t len)
{
    struct http_parser *p = g->data;
    struct buf *head = &p->msg->head;

    if (head->len + len > p->limits.max_head)
        return too_much(p, 414, "the address is too long");
    buf_put_bytes(head, at, len);
    p->msg->target_len = (uint32_t)head->len;
    return head->failed ? too_much(p, 503, "not enough memory for this request") : 0;
}

// Trailer fields arrive through the same callbacks. They are counted and discarded.
static int skip_trailer(struct http_parser *p, size_t len)
{
    p->trailer_bytes += len;
    return p->trailer_bytes > p->limits.max_head ? too_much(p, 431, "the trailer is too large")
                                                 : 0;
}

static int put_header(struct http_parser *p, const char *at, size_t len)
{
    struct buf *head = &p->msg->head;

    // An entry takes eight bytes more than the colon and line end it replaces. The exact limit
    // is checked on the raw bytes in http_parser_feed(). A piece may be as long as a read, so
    // it is refused before it reaches the buffer; a failure of the buffer then always means
    // lack of memory.
    if (head->len + len > 3 * p->limits.max_head)
        return too_much(p, 431, "the header block is too large");
    buf_put_bytes(head, at, len);
    return head->failed ? too_much(p, 503, "not enough memory for this request") : 0;
}

static struct entry get_entry(const struct buf *head, size_t at)
{
    struct entry e;
    memcpy(&e, head->ptr + at, sizeof e);
    return e;
}

static int on_header_name(llhttp_t *g, const char *at, size_t len)
{
    struct http_parser *p = g->data;
    struct buf *head = &p->msg->head;

    if (p->in_body)
        return skip_trailer(p, len);
    if (p->name_done) {
        p->name_done = false;
        p->entry = head->len;
        int rc = put_header(p, (const char *)&(struct entry){0}, sizeof(struct entry));
        if (rc != 0)
            return rc;
    }
    int rc = put_header(p, at, len);
    if (rc != 0)
        return rc;
    struct entry e = get_entry(head, p->entry);
    e.name_len += (uint32_t)len;
    memcpy(head->ptr + p->entry, &e, sizeof e);
    return 0;
}

static int on_header_name_done(llhttp_t *g)
{
    struct http_parser *p = g->data;
    p->name_done = true;
    return 0;
}

static int on_header_value(llhttp_t *g, const char *at, size_t len)
{
    struct http_parser *p = g->data;
    struct buf *head = &p->msg->head;

    if (p->in_body)
        return skip_trailer(p, len);
    int rc = put_header(p, at, len);
    if (rc != 0)
        return rc;
    struct entry e = get_entry(head, p->entry);
    e.value_len += (uint32_t)len;
    memcpy(head->ptr + p->entry, &e, sizeof e);
    return 0;
}

// Pauses llhttp so that http_parser_feed() can find the end of the head.
static int on_head(llhttp_t *g)
{
    (void)g;
    return HPE_PAUSED;
}

static enum http_msg_verb verb_of(uint8_t method)
{
    switch (method) {
    case HTTP_GET:
        return MSG_GET;
    case HTTP_POST:
        return MSG_POST;
    case HTTP_PUT:
        return MSG_PUT;
    case HTTP_DELETE:
        return MSG_DELETE;
    case HTTP_OPTIONS:
        return MSG_OPTIONS;
    case HTTP_HEAD:
        return MSG_HEAD;
    case HTTP_PATCH:
        return MSG_PATCH;
    default:
        return MSG_OTHER;
    }
}

static unsigned rare_of(span name, span value)
{
    static const span event = {"application/cloudevents", 23};

    switch (name.len) {
    case 6:
        if (str_eq_nocase(name, SPAN("origin")))
            return RARE_ORIGIN;
        return str_eq_nocase(name, SPAN("accept")) && value.len >= event.len &&
                       memmem(value.ptr, value.len, event.ptr, event.len)
                   ? RARE_EVENT_OUT
                   : 0;
    case 11:
        return str_eq_nocase(name, SPAN("traceparent")) ? RARE_TRACEPARENT : 0;
    case 12:
        if (str_eq_nocase(name, SPAN("content-type")))
            return value.len >= event.len && str_eq_nocase((span){value.ptr, event.len}, event)
                       ? RARE_EVENT_IN
                       : 0;
        return str_eq_nocase(name, SPAN("x-request-id")) ? RARE_REQUEST_ID : 0;
    case 14:
        return str_eq_nocase(name, SPAN("sec-fetch-site")) ? RARE_FETCH_SITE : 0;
    case 15:
        return str_eq_nocase(name, SPAN("accept-encoding")) ? RARE_ACCEPT_ENCODING : 0;
    case 16:
        return str_eq_nocase(name, SPAN("content-encoding")) ? RARE_CONTENT_ENCODING : 0;
    default:
        return 0;
    }
}

// Returns NULL, or the reason why the headers are invalid.
static const char *check_headers(struct http_parser *p)
{
    struct http_msg *msg = p->msg;
    unsigned n_hosts = 0, n_codings = 0, n_tokens = 0;
    span name, value;

    for (size_t at = 0; http_msg_next_header(msg, &at, &name, &value);) {
        if (name.len == 0)
            return "a header has no name";
        msg->rare |= (uint8_t)rare_of(name, value);
        if (name.len > 3 && name.ptr[2] == '-' &&
            str_eq_nocase((span){name.ptr, 2}, SPAN("ce")))
            msg->rare |= RARE_EVENT_IN;
        switch (name.len) { // compare only names of the right length
        case 4:
            if (!str_eq_nocase(name, SPAN("host")))
                break;
            n_hosts++;
            msg->host_at = (uint32_t)(value.ptr - msg->head.ptr);
            msg->host_len = (uint32_t)value.len;
            break;
        case 6:
            if (str_eq_nocase(name, SPAN("expect")))
                msg->expects = !msg->http10 && str_eq_nocase(value, SPAN("100-continue"));
            break;
        case 13: // a proxy in front of us may have checked the other one
            if (str_eq_nocase(name, SPAN("authorization")) && ++n_tokens > 1)
                return "more than one Authorization header";
            break;
        case 17:
            if (!str_eq_nocase(name, SPAN("transfer-encoding")))
                break;
            n_codings++;
            if (msg->http10 || n_codings > 1 || !str_eq_nocase(value, SPAN("chunked")))
                return "the transfer coding must be chunked";
            break;
        default:
            break;
        }
    }
    if (n_hosts > 1)
        return "more than one Host header";
    if (n_hosts == 0 && !msg->http10)
        return "no Host header";
    return NULL;
}

static enum http_feed head_done(struct http_parser *p)
{
    struct http_msg *msg = p->msg;
    llhttp_t *g = &p->grammar;

    p->in_body = true;
    if (g->http_major != 1 || g->http_minor > 1)
        return http_parser_bad(p, 505, "only HTTP/1.1 and HTTP/1.0 are supported");
    if (g->method == HTTP_CONNECT)
        return http_parser_bad(p, 405, "this server is not a proxy");

    msg->http10 = g->http_minor == 0;
    msg->verb = verb_of(g->method);
    msg->keep_alive = llhttp_should_keep_alive(g) != 0;
    msg->chunked = (g->flags & F_CHUNKED) != 0;
    msg->content_length = msg->chunked ? 0 : g->content_length;
    // Ignore an offer to upgrade (h2c); otherwise llhttp would stop parsing HTTP.
    g->upgrade = 0;

    const char *wrong = check_headers(p);
    return wrong ? http_parser_bad(p, 400, wrong) : HTTP_FEED_HEAD;
}

static int on_body(llhttp_t *g, const char *at, size_t len)
{
    struct http_parser *p = g->data;
    struct buf *body = &p->msg->body;

    p->body_bytes += len;
    if (p->msg->drop_body)
        return 0;
    if (len > p->limits.max_body - body->len) // body->len never exceeds the limit
        return too_much(p, 413, "the body is larger than this server accepts");
    if (body->cap > 0 && at == body->ptr + body->len) { // already read into place
        body->len += len;
        return 0;
    }
    buf_put_bytes(body, at, len);
    return body->failed ? too_much(p, 503, "not enough memory for this request") : 0;
}

// llhttp limits neither extensions nor leading zeros of a chunk's length.
static int on_chunk(llhttp_t *g)
{
    struct http_parser *p = g->data;
    p->max_framing += CHUNK_FRAMING;
    return 0;
}

static int on_done(llhttp_t *g)
{
    (void)g;
    return HPE_PAUSED;
}

span http_msg_host(const struct http_msg *msg)
{
    return msg->host_len > 0 ? (span){msg->head.ptr + msg->host_at, msg->host_len} : SPAN_NONE;
}

span http_msg_target(const struct http_msg *msg)
{
    return (span){msg->head.ptr, msg->target_len};
}

bool http_msg_next_header(const struct http_msg *msg, size_t *at, span *name, span *value)
{
    size_t pos = *at ? *at : msg->target_len;

    if (pos >= msg->head.len)
        return false;
    struct entry e = get_entry(&msg->head, pos);
    const char *text = msg->head.ptr + pos + sizeof e;
    *name = (span){text, e.name_len};
    *value = str_trim((span){text + e.name_len, e.value_len});
    *at = pos + sizeof e + e.name_len + e.value_len;
    return true;
}
