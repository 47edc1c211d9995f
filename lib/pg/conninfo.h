// conninfo.h: formats settings as a connection string for libpq.
#ifndef QUEEN_PG_CONNINFO_H
#define QUEEN_PG_CONNINFO_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/err.h"

// Whether connections are to a transaction pooler such as PgBouncer, which keeps no session
// state between transactions.
enum pg_pooler {
    PG_POOLER_AUTO, // if the peer refuses startup options or is not the process that answers
    PG_POOLER_NONE,
    PG_POOLER_TRANSACTION,
};

// Text may be NULL or "", and numbers may be 0, for the default of libpq or the server.
struct pg_conninfo {
    const char *hosts; // one host, a comma-separated list (connects to the one that accepts
                       // writes), or a socket directory
    unsigned port;
    const char *db, *user, *password;
    const char *sslmode;       // as libpq understands it; NULL: disable
    const char *ssl_root_cert; // file of certificates that verify-ca and verify-full trust
    const char *application_name;

    unsigned connect_timeout_ms; // rounded up to whole seconds
    unsigned tcp_user_timeout_ms;
    unsigned keepalives_idle_s, keepalives_interval_s, keepalives_count;

    unsigned statement_timeout_ms, lock_timeout_ms, idle_in_transaction_ms;

    // For the workers' pools: restricts the planner to index probes with generic plans, which
    // is what the hot statements need. With statistics of new or emptied tables it would
    // otherwise choose hash joins and sequential scans, and such a plan costs a hundred times
    // the call. Not for reports, maintenance or migrations.
    bool probes_only;
    bool no_options; // send no session settings
    // For a URL: with a password, allow only SCRAM with channel binding over TLS. The server
    // then never sees the password or a hash that it could use elsewhere.
    bool bind_password;
};

// sslmode of the settings: an explicit mode wins; otherwise TLS that verifies the server, or
// TLS if the server has it, or none.
const char *pg_sslmode(const char *mode, bool use_ssl, bool reject_unauthorized);
// "" becomes the certificates of the operating system.
const char *pg_ssl_root_cert(const char *file);

// Given: free with free().  Holds the password: do not log it.
char *pg_conninfo_format(const struct pg_conninfo *c);

// The same for a database given as postgresql://user@host:port/db?sslmode=... The hosts, port,
// db, user and sslmode of c are ignored. The URL may contain only parameters that say where the
// database is and how TLS is used: others could read local files or override the limits of c.
// Variables such as PGPASSWORD and the password file are not used. NULL on error, with the
// reason in f.
char *pg_conninfo_of_url(const char *url, const struct pg_conninfo *c, struct fault *f);
// Splits a URL into the URL without the password, the password (NULL if there is none) and the
// database name. All three are given.
MUST_USE int pg_url_split(const char *url, char **without, char **password, char **db,
                          struct fault *f);

#endif
