// tenant_body.c: reads the members of a tenant.
#include "platform/tenant_body.h"

#include <stdlib.h>

#include "base/known.h"
#include "base/str.h"
#include "json/scan.h"

enum { NAME, KIND, URL, PASSWORD, CREDENTIAL, N_FIELDS };
static const span names[N_FIELDS] = {
    [NAME] = {"name", 4},
    [KIND] = {"kind", 4},
    [URL] = {"url", 3},
    [PASSWORD] = {"password", 8},
    [CREDENTIAL] = {"credential", 10},
};

static int read_fields(span body, struct arena *a, span text[N_FIELDS], bool given[N_FIELDS],
                       struct fault *f)
{
    struct js j = js_read(body);
    span key;

    js_enter_object(&j);
    while (js_next_key(&j, &key)) {
        span raw = js_skip(&j);
        bool known = false;
        for (unsigned i = 0; i < N_FIELDS; i++) {
            if (!js_key_is(key, names[i]))
                continue;
            known = true;
            enum js_type type = js_type_of(raw);
            if (type != JS_STRING && type != JS_NULL)
                return fault_set(f, QE_BAD_PARAM, SPAN_FMT " must be a string",
                                 SPAN_ARG(names[i]));
            given[i] = true;
            text[i] = type == JS_STRING ? js_text(raw, a) : SPAN_NONE;
            if (text[i].len > 0 && memchr(text[i].ptr, '\0', text[i].len))
                return fault_set(f, QE_BAD_PARAM, SPAN_FMT " must not contain a NUL",
                                 SPAN_ARG(names[i]));
        }
        const struct known_names all = {.spans = names, .n_spans = N_FIELDS};
        if (!known && j.rc == 0 && known_check(key, &all, KNOWN_ONLY, "member", f) != 0)
            return f->code;
    }
    if (js_finish(&j) != 0)
        return fault_set(f, QE_BAD_JSON, "Invalid JSON at byte %zu: %s", js_offset(&j),
                         j.why ? j.why : "must be an object");
    return 0;
}

static int read_kind(span kind, span url, enum tenant_kind *out, struct fault *f)
{
    bool my = str_starts(url, SPAN("mysql://")) || str_starts(url, SPAN("mariadb://"));

    *out = my ? TENANT_MYSQL : TENANT_PG;
    if (!kind.ptr)
        return 0;
    if (!span_eq(kind, SPAN("postgresql")) && !span_eq(kind, SPAN("mysql")))
        return fault_set(f, QE_BAD_PARAM, "kind must be \"postgresql\" or \"mysql\"");
    bool wants_my = span_eq(kind, SPAN("mysql"));
    if (wants_my && !url.ptr)
        return fault_set(
            f, QE_BAD_PARAM,
            "a mysql tenant requires a url: the platform creates PostgreSQL databases");
    if (url.ptr && wants_my != my)
        return fault_set(f, QE_BAD_PARAM, "url must be the address of a %s database",
                         wants_my ? "mysql" : "postgresql");
    return 0;
}

// Splits the URL; the three texts are given.
static int split_url(enum tenant_kind kind, const char *url, char **without, char **password,
                     char **db, struct fault *f)
{
    struct my_place place;

    if (kind == TENANT_PG)
        return pg_url_split(url, without, password, db, f);
    int rc = my_place_parse(url, &place, f);
    if (rc != 0)
        return rc;
    *without = my_place_url(&place);
    *password = place.password;
    *db = place.db;
    place.password = place.db = NULL;
    my_place_deinit(&place);
    return 0;
}

static int read_url(struct tenant_body *b, span url, struct arena *a, span *password,
                    struct fault *f)
{
    char *without, *secret, *db;
    int rc = split_url(b->kind, arena_cstr(a, url), &without, &secret, &db, f);

    if (rc != 0) {
        fault_prefix(f, "url: ");
        return rc;
    }
    b->url = arena_cstr(a, span_of(without));
    b->database = arena_cstr(a, span_of(db));
    if (secret)
        *password = arena_copy(a, span_of(secret));
    free(without);
    free(secret);
    free(db);
    return 0;
}

static int read_credential(struct tenant_body *b, const span text[N_FIELDS],
                           const bool given[N_FIELDS], span in_url, struct arena *a,
                           struct fault *f)
{
    span password = in_url.ptr ? in_url : text[PASSWORD], reference = text[CREDENTIAL];

    b->has_credential = given[PASSWORD] || given[CREDENTIAL] || in_url.ptr;
    if (password.ptr && reference.ptr)
        return fault_set(f, QE_BAD_PARAM, "password and credential must not both be given");
    if (reference.ptr) {
        if (!str_starts(reference, SPAN("env:")) && !str_starts(reference, SPAN("file:/")))
            return fault_set(f, QE_BAD_PARAM,
                             "credential must be env:NAME or file:/path; pass a password as "
                             "password");
        b->credential = arena_cstr(a, reference);
    } else if (password.ptr) {
        struct buf stored = {0};
        buf_put_lit(&stored, "text:");
        buf_put(&stored, password);
        b->credential = arena_cstr(a, buf_span(&stored));
        buf_free(&stored);
    }
    return 0;
}

int tenant_body_read(span body, struct arena *a, struct tenant_body *out, struct fault *f)
{
    span text[N_FIELDS] = {{0}}, in_url = SPAN_NONE;
    bool given[N_FIELDS] = {0};
    int rc = read_fields(body, a, text, given, f);

    *out = (struct tenant_body){.name = text[NAME]};
    if (rc == 0)
        rc = read_kind(text[KIND], text[URL], &out->kind, f);
    if (rc == 0 && text[URL].ptr)
        rc = read_url(out, text[URL], a, &in_url, f);
    if (rc == 0)
        rc = read_credential(out, text, given, in_url, a, f);
    return rc;
}
