// conninfo.h: settings -> the keyword string that libpq takes.
#ifndef QUEEN_PG_CONNINFO_H
#define QUEEN_PG_CONNINFO_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/err.h"

// Text may be NULL or "" and numbers 0: then libpq's or the server's default holds.
struct pg_conninfo {
    const char
        *hosts; // one, several with commas (then the one that takes writes), or a socket folder
    unsigned port;
    const char *db, *user, *password;
    bool ssl;          // false: never encrypt
    bool ssl_required; // with ssl: refuse a server that cannot; false: prefer
    const char *application_name;

    unsigned connect_timeout_ms; // rounded up to whole seconds
    unsigned tcp_user_timeout_ms;
    unsigned keepalives_idle_s, keepalives_interval_s, keepalives_count;

    unsigned statement_timeout_ms, lock_timeout_ms, idle_in_transaction_ms;

    // For the workers' pools: pins the planner to what our hot statements are, index probes
    // with generic plans.  Statistics of young or emptied tables otherwise talk it into hash
    // joins and sequential scans, and a plan that flips under load costs a hundred times the
    // call.  Not for reports, chores or migrations.
    bool probes_only;
    // Behind a transaction-pooling proxy: send no session settings at all (proxies refuse
    // them); set them with ALTER ROLE instead.
    bool no_options;
};

// Given: free with free().  Holds the password: do not log it.
char *pg_conninfo_format(const struct pg_conninfo *c);

// The same for a place that is given as postgresql://user@host:port/db?sslmode=...: hosts,
// port, db, user and ssl of c are left aside; what the address says of the rest wins, but for
// the password.  NULL: f says what is wrong with it.
char *pg_conninfo_of_url(const char *url, const struct pg_conninfo *c, struct fault *f);
// Takes an address apart: what is in it, without the password, and the password, if there is
// one. Given: all three.  password may come out NULL.
MUST_USE int pg_url_split(const char *url, char **without, char **password, char **db,
                          struct fault *f);

#endif
