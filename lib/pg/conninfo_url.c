// conninfo_url.c: converts a postgresql:// URL to a connection string for libpq.
#include <libpq-fe.h>
#include <stdlib.h>
#include <string.h>

#include "base/attrs.h"
#include "base/mem.h"
#include "pg/conninfo_int.h"

static bool has_scheme(const char *url)
{
    return strncmp(url, "postgresql://", 13) == 0 || strncmp(url, "postgres://", 11) == 0;
}

static PQconninfoOption *parse_url(const char *url, struct fault *f)
{
    char *why = NULL;
    PQconninfoOption *o = has_scheme(url) ? PQconninfoParse(url, &why) : NULL;

    // libpq quotes parts of the address, which may be the password: cut at the first quote.
    if (!o)
        fault_set(f, QE_BAD_PARAM,
                  "not an address of the form postgresql://user@host:port/db%s%.*s",
                  why ? ": " : "", why ? (int)strcspn(why, "\"\n") : 0, why ? why : "");
    PQfreemem(why);
    return o;
}

static const char *url_find(const PQconninfoOption *o, const char *keyword)
{
    for (; o->keyword; o++)
        if (strcmp(o->keyword, keyword) == 0)
            return o->val;
    return NULL;
}

static char *url_finish(struct buf *b)
{
    buf_putc(b, '\0');
    if (b->failed)
        BUG("no memory for a connection string");
    return b->ptr;
}

static int check_parameters(const PQconninfoOption *options, struct fault *f)
{
    static const char *const allowed[] = {"host",    "hostaddr",        "port",
                                          "user",    "password",        "dbname",
                                          "sslmode", "channel_binding", "target_session_attrs"};

    for (const PQconninfoOption *o = options; o->keyword; o++) {
        bool known = o->val == NULL;
        for (size_t i = 0; i < countof(allowed) && !known; i++)
            known = strcmp(o->keyword, allowed[i]) == 0;
        if (!known)
            return fault_set(f, QE_BAD_PARAM,
                             "the address must not have the parameter %s; allowed are sslmode, "
                             "channel_binding and target_session_attrs",
                             o->keyword);
    }
    return 0;
}

// Given, not empty: libpq takes an absent password from PGPASSWORD or a password file.
static void put_password(struct buf *b, const struct pg_conninfo *c)
{
    bool has = c->password != NULL && c->password[0] != '\0';

    if (has)
        conninfo_put_text(b, "password", c->password);
    else
        buf_put_lit(b, " password=''");
    if (has && c->bind_password)
        conninfo_put_text(b, "channel_binding", "require");
}

// A later keyword in the string overrides an earlier one.
char *pg_conninfo_of_url(const char *url, const struct pg_conninfo *c, struct fault *f)
{
    PQconninfoOption *options = parse_url(url, f);
    struct buf b = {0};

    if (!options)
        return NULL;
    if (check_parameters(options, f) != 0) {
        PQconninfoFree(options);
        return NULL;
    }
    conninfo_put_text(&b, "passfile", "/nonexistent");
    conninfo_put_text(&b, "sslrootcert", c->ssl_root_cert);
    conninfo_put_text(&b, "gssencmode", "disable"); // the GSSAPI handshake would block the loop
    conninfo_put_text(&b, "client_encoding", "UTF8");
    conninfo_put_text(&b, "application_name", c->application_name);
    conninfo_put_number(&b, "connect_timeout", (c->connect_timeout_ms + 999) / 1000);
    conninfo_put_number(&b, "tcp_user_timeout", c->tcp_user_timeout_ms);
    conninfo_put_options(&b, c);
    for (const PQconninfoOption *o = options; o->keyword; o++)
        conninfo_put_text(&b, o->keyword, o->val);
    put_password(&b, c);
    PQconninfoFree(options);
    return url_finish(&b);
}

static char *url_copy(const char *text)
{
    return text && text[0] ? mem_strndup(text, strlen(text)) : NULL;
}

// Also under a name like pass%77ord.
static bool has_password(const char *url)
{
    PQconninfoOption *o = PQconninfoParse(url, NULL);
    bool found = !o || url_find(o, "password") != NULL;

    PQconninfoFree(o);
    return found;
}

// The password of user:password@ is cut out of the text, and everything else stays as written.
// A password among the parameters is refused, because it is easily overlooked there.
int pg_url_split(const char *url, char **without, char **password, char **db, struct fault *f)
{
    PQconninfoOption *o = parse_url(url, f);
    const char *authority = strstr(url, "://"), *at, *colon;

    if (!o)
        return QE_BAD_PARAM;
    int rc = check_parameters(o, f);
    if (rc != 0) {
        PQconninfoFree(o);
        return rc;
    }
    *password = url_copy(url_find(o, "password"));
    *db = url_copy(url_find(o, "dbname"));
    *without = mem_strndup(url, strlen(url));
    PQconninfoFree(o);

    authority += 3;
    at = memchr(authority, '@', strcspn(authority, "/?"));
    colon = at ? memchr(authority, ':', (size_t)(at - authority)) : NULL;
    if (colon)
        memmove(*without + (colon - url), *without + (at - url), strlen(at) + 1);
    if (!*db || has_password(*without)) {
        bool nameless = !*db;
        free(*without);
        free(*password);
        free(*db);
        return fault_set(f, QE_BAD_PARAM,
                         nameless ? "the address names no database"
                                  : "the password must not be a parameter of the address");
    }
    return 0;
}
