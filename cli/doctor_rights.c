// doctor_rights.c: checks what the role may do in its database, with the statement that
// corrects it.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <libpq-fe.h>

#include "cli/cli.h"
#include "cli/doctor_int.h"

static void check_schemas(struct doctor *d, PGconn *c);
static void check_writable(struct doctor *d, PGconn *c);
static void check_encoding(struct doctor *d, PGconn *c);
static void check_language(struct doctor *d, PGconn *c);
static void check_monitor(struct doctor *d, PGconn *c);

void doctor_rights(struct doctor *d, PGconn *c)
{
    check_schemas(d, c);
    check_writable(d, c);
    check_encoding(d, c);
    check_language(d, c);
    check_monitor(d, c);
}

// The broker creates its schemas at the first start, and changes them in upgrades.
static void check_schemas(struct doctor *d, PGconn *c)
{
    PGresult *r = doctor_query(
        d, c, "rights",
        "select w.name, n.oid is not null, coalesce(pg_has_role(n.nspowner, 'usage'), false), "
        "coalesce(pg_get_userbyid(n.nspowner), ''), "
        "has_database_privilege(current_database(), 'create'), current_user, "
        "format('grant create on database %I to %I', current_database(), current_user), "
        "format('grant %I to %I', coalesce(pg_get_userbyid(n.nspowner), current_user), "
        "current_user) "
        "from (values ('queen'), ('queen_streams')) w(name) "
        "left join pg_namespace n on n.nspname = w.name order by 1");
    if (!r)
        return;
    for (int i = 0; i < PQntuples(r); i++) {
        const char *schema = PQgetvalue(r, i, 0), *role = PQgetvalue(r, i, 5);
        bool exists = PQgetvalue(r, i, 1)[0] == 't', owns = PQgetvalue(r, i, 2)[0] == 't';
        bool may_create = PQgetvalue(r, i, 4)[0] == 't';
        if (exists && owns)
            doctor_say(d, DOCTOR_FINE, "rights", NULL, "role %s may change schema %s", role,
                       schema);
        else if (exists) // a role that only looks, perhaps
            doctor_say(d, DOCTOR_WARN, "rights", PQgetvalue(r, i, 7),
                       "role %s may not change schema %s of %s; a broker must be able to", role,
                       schema, PQgetvalue(r, i, 3));
        else
            doctor_say(d, may_create ? DOCTOR_FINE : DOCTOR_BAD, "rights",
                       may_create ? NULL : PQgetvalue(r, i, 6),
                       "schema %s does not exist; role %s may %screate it", schema, role,
                       may_create ? "" : "not ");
    }
    PQclear(r);
}

static void check_writable(struct doctor *d, PGconn *c)
{
    PGresult *r = doctor_query(
        d, c, "writable",
        "select pg_is_in_recovery(), current_setting('default_transaction_read_only'), "
        "format('alter role %I in database %I set default_transaction_read_only = off', "
        "current_user, current_database())");
    if (!r)
        return;
    bool standby = PQgetvalue(r, 0, 0)[0] == 't';
    bool reads_only = strcmp(PQgetvalue(r, 0, 1), "on") == 0;
    doctor_say(d, standby || reads_only ? DOCTOR_BAD : DOCTOR_FINE, "writable",
               standby ? "list all servers in PG_HOST: brokers use the one that accepts writes"
               : reads_only ? PQgetvalue(r, 0, 2)
                            : NULL,
               "%s",
               standby      ? "this server is a standby"
               : reads_only ? "transactions are read-only by default"
                            : "transactions may write");
    PQclear(r);
}

static void check_encoding(struct doctor *d, PGconn *c)
{
    PGresult *r = doctor_query(
        d, c, "encoding",
        "select current_setting('server_encoding'), format('create database %I encoding "
        "''UTF8'' template template0', current_database() || '_utf8')");
    if (!r)
        return;
    bool good = strcmp(PQgetvalue(r, 0, 0), "UTF8") == 0;
    doctor_say(d, good ? DOCTOR_FINE : DOCTOR_BAD, "encoding",
               good ? NULL : PQgetvalue(r, 0, 1), "%s", PQgetvalue(r, 0, 0));
    PQclear(r);
}

static void check_language(struct doctor *d, PGconn *c)
{
    PGresult *r = doctor_query(
        d, c, "plpgsql",
        "select count(*), coalesce(bool_or(has_language_privilege(oid, 'usage')), false), "
        "format('grant usage on language plpgsql to %I', current_user) "
        "from pg_language where lanname = 'plpgsql'");
    if (!r)
        return;
    bool exists = atoi(PQgetvalue(r, 0, 0)) > 0, may_use = PQgetvalue(r, 0, 1)[0] == 't';
    doctor_say(d, may_use ? DOCTOR_FINE : DOCTOR_BAD, "plpgsql",
               may_use  ? NULL
               : exists ? PQgetvalue(r, 0, 2)
                        : "create extension plpgsql",
               "the language of the functions is %s",
               may_use  ? "usable"
               : exists ? "not usable by this role"
                        : "missing");
    PQclear(r);
}

// Brokers do not need it, the checks that follow do.
static void check_monitor(struct doctor *d, PGconn *c)
{
    PGresult *r = doctor_query(d, c, "monitoring",
                               "select pg_has_role('pg_monitor', 'usage'), "
                               "format('grant pg_monitor to %I', current_user)");
    if (!r)
        return;
    bool may = PQgetvalue(r, 0, 0)[0] == 't';
    doctor_say(d, DOCTOR_FINE, "monitoring", may ? NULL : PQgetvalue(r, 0, 1),
               may ? "sessions of all roles are visible"
                   : "sessions of other roles are hidden from the checks below; brokers work "
                     "without this right");
    PQclear(r);
}
