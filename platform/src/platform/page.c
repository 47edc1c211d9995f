// page.c: reads search, sort, limit and offset.
#include "platform/page.h"

#include "base/err.h"
#include "base/str.h"

enum { MOST = 100000 };

static void page_put_text(struct pg_params *params, span text)
{
    if (text.len > 0)
        pg_param_text(params, text);
    else
        pg_param_null(params, PG_TEXT);
}

static bool page_put_count(struct http_req *req, span name, int64_t least, int64_t fallback,
                           struct pg_params *params)
{
    span text = http_req_query(req, name);
    int64_t n = fallback;

    if (text.len > 0 && (!str_parse_i64(text, &n) || n < least || n > MOST)) {
        http_reply_errf(req, QE_BAD_PARAM, SPAN_FMT " must be a whole number from %lld to %d",
                        SPAN_ARG(name), (long long)least, MOST);
        return false;
    }
    pg_param_i32(params, (int32_t)n);
    return true;
}

bool page_put(struct http_req *req, const char *const *sorts, struct pg_params *params)
{
    span sort = http_req_query(req, SPAN("sort"));
    const char *const *known = sorts;

    while (*known && !span_eq(sort, span_of(*known)))
        known++;
    if (sort.len > 0 && !*known) {
        struct buf words = {0};
        for (known = sorts; *known; known++)
            buf_printf(&words, "%s%s", known == sorts ? "" : " or ", *known);
        http_reply_errf(req, QE_BAD_PARAM, "sort must be " SPAN_FMT,
                        SPAN_ARG(buf_span(&words)));
        buf_free(&words);
        return false;
    }
    page_put_text(params, http_req_query(req, SPAN("search")));
    page_put_text(params, sort);
    return page_put_count(req, SPAN("limit"), 1, MOST, params) &&
           page_put_count(req, SPAN("offset"), 0, 0, params);
}
