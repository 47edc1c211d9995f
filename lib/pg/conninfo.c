// conninfo.c: formats settings as a connection string for libpq.
#include "pg/conninfo_int.h"

#include <string.h>

#include "base/buf.h"
#include "base/err.h"

// work_mem: a batch of a thousand operations sorts and aggregates its arrays in memory.
static const char planner[] =
    " -c jit=off -c plan_cache_mode=force_generic_plan -c enable_hashjoin=off"
    " -c enable_mergejoin=off -c enable_seqscan=off -c enable_bitmapscan=off -c work_mem=64MB";

void conninfo_put_text(struct buf *b, const char *keyword, const char *value)
{
    if (value == NULL || value[0] == '\0')
        return;
    buf_printf(b, "%s%s='", b->len > 0 ? " " : "", keyword);
    for (const char *s = value; *s != '\0'; s++) {
        if (*s == '\'' || *s == '\\')
            buf_putc(b, '\\');
        buf_putc(b, *s);
    }
    buf_putc(b, '\'');
}

void conninfo_put_number(struct buf *b, const char *keyword, unsigned value)
{
    if (value > 0)
        buf_printf(b, "%s%s=%u", b->len > 0 ? " " : "", keyword, value);
}

// Overrides defaults of the role or the database. Our statements qualify all names, and must
// not find objects of other users, such as operators in "public". They must also see rows that
// were committed while they waited for a lock.
static const char pinned[] =
    " -c search_path=pg_catalog,pg_temp -c default_transaction_isolation=read\\ committed";

void conninfo_put_options(struct buf *b, const struct pg_conninfo *c)
{
    struct buf o = {0};

    buf_put(&o, span_of(pinned));
    if (c->statement_timeout_ms > 0)
        buf_printf(&o, " -c statement_timeout=%u", c->statement_timeout_ms);
    if (c->lock_timeout_ms > 0)
        buf_printf(&o, " -c lock_timeout=%u", c->lock_timeout_ms);
    if (c->idle_in_transaction_ms > 0)
        buf_printf(&o, " -c idle_in_transaction_session_timeout=%u", c->idle_in_transaction_ms);
    if (c->probes_only)
        buf_put(&o, span_of(planner));
    buf_putc(&o, '\0');
    if (o.failed)
        BUG("no memory for a connection string");
    conninfo_put_text(b, "options", o.ptr[0] == ' ' ? o.ptr + 1 : o.ptr);
    buf_free(&o);
}

const char *pg_sslmode(const char *mode, bool use_ssl, bool reject_unauthorized)
{
    if (mode != NULL && mode[0] != '\0')
        return mode;
    return !use_ssl ? "disable" : reject_unauthorized ? "verify-full" : "prefer";
}

const char *pg_ssl_root_cert(const char *file)
{
    return file != NULL && file[0] != '\0' ? file : "/etc/ssl/certs/ca-certificates.crt";
}

char *pg_conninfo_format(const struct pg_conninfo *c)
{
    struct buf b = {0};

    conninfo_put_text(&b, "host", c->hosts);
    conninfo_put_number(&b, "port", c->port);
    conninfo_put_text(&b, "dbname", c->db);
    conninfo_put_text(&b, "user", c->user);
    conninfo_put_text(&b, "password", c->password);
    conninfo_put_text(&b, "sslmode", c->sslmode ? c->sslmode : "disable");
    conninfo_put_text(&b, "sslrootcert", c->ssl_root_cert);
    conninfo_put_text(&b, "gssencmode", "disable"); // the GSSAPI handshake would block the loop
    conninfo_put_text(&b, "client_encoding", "UTF8");
    conninfo_put_text(&b, "application_name", c->application_name);
    // libpq's own limit applies to blocking connects and is per host; the pool also has a
    // timer.
    conninfo_put_number(&b, "connect_timeout", (c->connect_timeout_ms + 999) / 1000);
    conninfo_put_number(&b, "tcp_user_timeout", c->tcp_user_timeout_ms);
    conninfo_put_number(&b, "keepalives_idle", c->keepalives_idle_s);
    conninfo_put_number(&b, "keepalives_interval", c->keepalives_interval_s);
    conninfo_put_number(&b, "keepalives_count", c->keepalives_count);
    if (c->hosts != NULL && strchr(c->hosts, ',') != NULL)
        conninfo_put_text(&b, "target_session_attrs", "read-write");
    if (!c->no_options)
        conninfo_put_options(&b, c);
    buf_putc(&b, '\0');
    if (b.failed)
        BUG("no memory for a connection string");
    return b.ptr;
}
