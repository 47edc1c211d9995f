// my_place.c: parses and formats mysql://user:password@host:port/db.
#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "tenant/my_int.h"

enum { DEFAULT_PORT = 3306 };

static char *url_decoded(span text)
{
    struct buf b = {0};

    if (!str_percent_decode(text, false, &b)) {
        buf_free(&b);
        return NULL;
    }
    char *copy = mem_strndup(b.ptr ? b.ptr : "", b.len);
    buf_free(&b);
    return copy;
}

// Cuts text at the first c and returns the rest, or SPAN_NONE.
static span cut_url_part(span *text, char c)
{
    assert(text->ptr || text->len == 0);
    const char *at = text->len > 0 ? memchr(text->ptr, c, text->len) : NULL;

    if (!at)
        return SPAN_NONE;
    span rest = {at + 1, text->len - (size_t)(at + 1 - text->ptr)};
    text->len = (size_t)(at - text->ptr);
    return rest;
}

static bool read_options(span options, struct my_place *out)
{
    span one;

    while (str_split(&options, '&', &one)) {
        span value = cut_url_part(&one, '=');
        if (span_eq(one, SPAN("tls"))) {
            out->tls_unchecked = span_eq(value, SPAN("skip-verify"));
            out->tls = out->tls_unchecked || span_eq(value, SPAN("true"));
            if (!out->tls && !span_eq(value, SPAN("false")))
                return false;
        } else if (span_eq(one, SPAN("socket")))
            out->socket = url_decoded(value);
        else if (one.len > 0)
            return false;
    }
    return true;
}

static bool read_host(span host, struct my_place *out)
{
    uint64_t port = DEFAULT_PORT;
    span number;

    if (host.len > 0 && host.ptr[0] == '[') { // an IPv6 address
        host.ptr++, host.len--;
        number = cut_url_part(&host, ']');
        number = cut_url_part(&number, ':');
    } else {
        number = cut_url_part(&host, ':');
    }
    if (number.len > 0 && (!str_parse_u64(number, &port) || port < 1 || port > 65535))
        return false;
    out->port = (unsigned)port;
    out->host = url_decoded(host);
    return out->host != NULL;
}

int my_place_parse(const char *url, struct my_place *out, struct fault *f)
{
    span rest = span_of(url), scheme = {0};

    *out = (struct my_place){0};
    if (str_starts(rest, SPAN("mysql://")))
        scheme.len = 8;
    else if (str_starts(rest, SPAN("mariadb://")))
        scheme.len = 10;
    if (scheme.len == 0)
        goto bad;
    rest = (span){rest.ptr + scheme.len, rest.len - scheme.len};
    span options = cut_url_part(&rest, '?'), db = cut_url_part(&rest, '/');
    // A password must contain @ as %40.
    span user = rest, host = cut_url_part(&user, '@');
    if (!host.ptr) {
        host = rest;
        user = SPAN_NONE;
    }
    span password = cut_url_part(&user, ':');
    out->user = url_decoded(user);
    out->password = password.ptr ? url_decoded(password) : NULL;
    out->db = url_decoded(db);
    if (!read_host(host, out) || !out->user || !out->db || !read_options(options, out))
        goto bad;
    if (out->db[0] == '\0') {
        my_place_deinit(out);
        return fault_set(f, QE_BAD_PARAM, "the address names no database");
    }
    if (out->host[0] != '\0' || out->socket)
        return 0;
bad:
    my_place_deinit(out);
    return fault_set(f, QE_BAD_PARAM,
                     "not an address of the form mysql://user@host:port/db?tls=true");
}

static void put_escaped(struct buf *b, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~:";

    for (; *text; text++)
        if (strchr(plain, *text))
            buf_putc(b, *text);
        else
            buf_printf(b, "%%%02X", (unsigned char)*text);
}

char *my_place_url(const struct my_place *p)
{
    bool six = strchr(p->host, ':') != NULL;
    struct buf b = {0};

    buf_put_lit(&b, "mysql://");
    put_escaped(&b, p->user);
    buf_printf(&b, "@%s", six ? "[" : "");
    put_escaped(&b, p->host);
    buf_printf(&b, "%s:%u/", six ? "]" : "", p->port);
    put_escaped(&b, p->db);
    if (p->tls || p->socket)
        buf_printf(&b, "?%s%s%s",
                   !p->tls            ? ""
                   : p->tls_unchecked ? "tls=skip-verify"
                                      : "tls=true",
                   p->tls && p->socket ? "&" : "", p->socket ? "socket=" : "");
    if (p->socket)
        put_escaped(&b, p->socket);
    buf_putc(&b, '\0');
    if (b.failed)
        BUG("out of memory");
    return b.ptr;
}

void my_place_secure(const struct my_place *p, MYSQL *my)
{
    if (p->tls)
        mysql_optionsv(my, MYSQL_OPT_SSL_ENFORCE, &(my_bool){1});
    // The library does not verify by itself: it would give the password to anybody.
    mysql_optionsv(my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT,
                   &(my_bool){p->tls && !p->tls_unchecked});
    if (p->tls && p->tls_ca)
        mysql_optionsv(my, MYSQL_OPT_SSL_CA, p->tls_ca);
    // A server may ask for any method that the client has, such as mysql_clear_password.
    if (!p->any_auth)
        mysql_optionsv(my, MARIADB_OPT_RESTRICTED_AUTH,
                       "mysql_native_password,client_ed25519,caching_sha2_password");
}

void my_place_deinit(struct my_place *p)
{
    free(p->host);
    free(p->user);
    free(p->password);
    free(p->db);
    free(p->socket);
    *p = (struct my_place){0};
}
