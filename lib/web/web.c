// Files of the dashboard. They are constants: nothing is read, copied or compressed per
// request.
//
// The page may load and call only its own server, cannot be framed, and runs no inline script
// or style, so text from messages that reached the page as markup would stay without effect.
#include "web/web.h"

#include "web/web_int.h"

#define POLICY                                                                        \
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; " \
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

static const struct web_file *web_find(span path, span page)
{
    if (span_eq(path, SPAN("/")))
        path = page;
    for (const struct web_file *f = web_files; f->path; f++)
        if (span_eq(path, span_of(f->path)))
            return f;
    return NULL;
}

bool web_reply(struct http_req *req, span page)
{
    const struct web_file *f = web_find(http_req_path(req), page);

    if (!f)
        return false;
    http_reply_header(req, SPAN("Cache-Control"), SPAN("no-cache")); // the ETag decides
    http_reply_header(req, SPAN("ETag"), span_of(f->etag));
    http_reply_header(req, SPAN("X-Content-Type-Options"), SPAN("nosniff"));
    http_reply_header(req, SPAN("Content-Security-Policy"), SPAN(POLICY));
    http_reply_header(req, SPAN("Referrer-Policy"), SPAN("no-referrer"));
    if (span_eq(http_req_header(req, SPAN("if-none-match")), span_of(f->etag)))
        http_reply_empty(req, 304);
    else
        http_reply_constant(req, 200, span_of(f->type), f->plain, f->packed);
    return true;
}
