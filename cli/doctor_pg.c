// doctor_pg.c: checks of PostgreSQL: settings, old transactions, slots, connections, disk.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#include <libpq-fe.h>

#include "base/attrs.h"
#include "cli/cli.h"
#include "cli/doctor_int.h"
#include "cli/table.h"

// The statements that set a parameter of the server.
#define SYSTEM(name) "; alter system set " name " = on; select pg_reload_conf()"

static void check_settings(struct doctor *d, PGconn *c);
static void check_connections(struct doctor *d, PGconn *c);
static void check_xmin(struct doctor *d, PGconn *c);
static void check_prepared(struct doctor *d, PGconn *c);
static void check_slots(struct doctor *d, PGconn *c);
static void check_disk(struct doctor *d, PGconn *c);

void doctor_postgres(struct doctor *d, const char *conninfo)
{
    PGconn *c = PQconnectdb(conninfo);

    if (PQstatus(c) != CONNECTION_OK) {
        char text[300];
        snprintf(text, sizeof text, "%s", PQerrorMessage(c));
        text[strcspn(text, "\n")] = '\0';
        doctor_say(d, DOCTOR_BAD, "postgresql",
                   "check --pg; psql with the same arguments must work", "%s", text);
    } else {
        int version = PQserverVersion(c) / 10000;
        doctor_say(d, version >= 14 ? DOCTOR_FINE : DOCTOR_BAD, "postgresql",
                   version >= 14 ? NULL : "Queen needs a newer one", "version %d", version);
        doctor_rights(d, c);
        check_settings(d, c);
        check_connections(d, c);
        check_xmin(d, c);
        check_prepared(d, c);
        check_slots(d, c);
        check_disk(d, c);
    }
    PQfinish(c);
}

PGresult *doctor_query(struct doctor *d, PGconn *c, const char *what, const char *sql)
{
    PGresult *r = PQexec(c, sql);

    if (PQresultStatus(r) == PGRES_TUPLES_OK)
        return r;
    char text[300];
    snprintf(text, sizeof text, "%s", PQerrorMessage(c));
    text[strcspn(text, "\n")] = '\0';
    doctor_say(d, DOCTOR_WARN, what, "use a role that may read it (pg_monitor)", "%s", text);
    PQclear(r);
    return NULL;
}

static void check_settings(struct doctor *d, PGconn *c)
{
    static const struct {
        const char *name, *good, *advice;
        enum verdict otherwise;
    } settings[] = {
        {"fsync", "on",
         "a crash of the machine loses or damages everything: set it to on" SYSTEM("fsync"),
         DOCTOR_BAD},
        {"full_page_writes", "on",
         "a crash in the middle of a write damages pages: set it to "
         "on" SYSTEM("full_page_writes"),
         DOCTOR_BAD},
        {"synchronous_commit", NULL,
         "confirmed messages can be lost in a crash of PostgreSQL; fine only if that is "
         "meant" SYSTEM("synchronous_commit"),
         DOCTOR_WARN},
        {"autovacuum", "on",
         "tables grow for ever without it: set it to on" SYSTEM("autovacuum"), DOCTOR_BAD},
        {"track_activities", "on",
         "without it the holder of xmin cannot be found" SYSTEM("track_activities"),
         DOCTOR_WARN},
    };

    for (unsigned i = 0; i < countof(settings); i++) {
        char sql[100];
        snprintf(sql, sizeof sql, "select current_setting('%s')", settings[i].name);
        PGresult *r = doctor_query(d, c, settings[i].name, sql);
        if (!r)
            continue;
        const char *value = PQgetvalue(r, 0, 0);
        // Every value except off waits for a disk, here or on a standby.
        bool good =
            settings[i].good ? strcmp(value, settings[i].good) == 0 : strcmp(value, "off") != 0;
        doctor_say(d, good ? DOCTOR_FINE : settings[i].otherwise, settings[i].name,
                   good ? NULL : settings[i].advice, "%s", value);
        PQclear(r);
    }
}

static void check_connections(struct doctor *d, PGconn *c)
{
    PGresult *r = doctor_query(d, c, "connections",
                               "select count(*), current_setting('max_connections')::int - "
                               "current_setting('superuser_reserved_connections')::int, "
                               "count(*) filter (where application_name like 'queen%') "
                               "from pg_stat_activity where backend_type = 'client backend'");
    if (!r)
        return;
    int used = atoi(PQgetvalue(r, 0, 0)), limit = atoi(PQgetvalue(r, 0, 1));
    bool tight = used * 10 > limit * 8;
    doctor_say(d, tight ? DOCTOR_WARN : DOCTOR_FINE, "connections",
               tight ? "the connections of all brokers (SIDECAR_POOL_SIZE) and of other "
                       "clients must stay "
                       "below max_connections: lower the pool size or raise max_connections"
                     : NULL,
               "%d of %d in use, %s by queen", used, limit, PQgetvalue(r, 0, 2));
    PQclear(r);
}

// xmin is held by a snapshot or by the id of a transaction that has written and is idle.
static void check_xmin(struct doctor *d, PGconn *c)
{
    PGresult *r =
        doctor_query(d, c, "held xmin",
                     "select pid, coalesce(application_name, ''), state, "
                     "extract(epoch from now() - coalesce(xact_start, query_start))::bigint "
                     "from pg_stat_activity where (backend_xmin is not null or "
                     "backend_xid is not null) and pid <> pg_backend_pid() and "
                     "coalesce(xact_start, query_start) is not null "
                     "order by 4 desc limit 1");
    if (!r)
        return;
    long seconds = PQntuples(r) > 0 ? atol(PQgetvalue(r, 0, 3)) : 0;
    if (seconds < 300) {
        doctor_say(d, DOCTOR_FINE, "held xmin", NULL, "no transaction is older than 5 minutes");
    } else {
        char advice[160];
        snprintf(advice, sizeof advice,
                 "vacuum can remove nothing newer: end it, for example with select "
                 "pg_terminate_backend(%s)",
                 PQgetvalue(r, 0, 0));
        doctor_say(d, seconds > 3600 ? DOCTOR_BAD : DOCTOR_WARN, "held xmin", advice,
                   "process %s (%s, %s) has been in a transaction for %ld s",
                   PQgetvalue(r, 0, 0), PQgetvalue(r, 0, 1), PQgetvalue(r, 0, 2), seconds);
    }
    PQclear(r);
}

static void check_prepared(struct doctor *d, PGconn *c)
{
    PGresult *r =
        doctor_query(d, c, "prepared",
                     "select count(*), min(gid) from pg_prepared_xacts where prepared < now() "
                     "- interval '5 minutes'");
    if (!r)
        return;
    bool some = atoi(PQgetvalue(r, 0, 0)) > 0;
    doctor_say(d, some ? DOCTOR_BAD : DOCTOR_FINE, "prepared",
               some ? "they hold locks and xmin until COMMIT PREPARED or ROLLBACK PREPARED"
                    : NULL,
               "%s forgotten prepared transactions%s%s", PQgetvalue(r, 0, 0), some ? ": " : "",
               some ? PQgetvalue(r, 0, 1) : "");
    PQclear(r);
}

static void check_slots(struct doctor *d, PGconn *c)
{
    PGresult *r = doctor_query(
        d, c, "slots",
        "select slot_name, active, coalesce(pg_wal_lsn_diff(case when pg_is_in_recovery() "
        "then pg_last_wal_receive_lsn() else pg_current_wal_lsn() end, restart_lsn), "
        "0)::bigint from pg_replication_slots order by 3 desc");
    if (!r)
        return;
    if (PQntuples(r) == 0)
        doctor_say(d, DOCTOR_FINE, "slots", NULL, "no replication slots");
    for (int i = 0; i < PQntuples(r); i++) {
        bool active = PQgetvalue(r, i, 1)[0] == 't';
        double kept = atof(PQgetvalue(r, i, 2));
        struct buf b = {0};
        cell_put_bytes(&b, kept);
        bool much = kept > 10e9;
        doctor_say(d,
                   active && !much ? DOCTOR_FINE
                   : much          ? DOCTOR_BAD
                                   : DOCTOR_WARN,
                   "slots",
                   active && !much ? NULL
                                   : "an unused slot keeps WAL until the disk is full: "
                                     "pg_drop_replication_slot(), or start its reader",
                   "%s is %s and keeps " SPAN_FMT " of WAL", PQgetvalue(r, i, 0),
                   active ? "in use" : "not in use", SPAN_ARG(buf_span(&b)));
        buf_free(&b);
    }
    PQclear(r);
}

static void check_disk(struct doctor *d, PGconn *c)
{
    struct statvfs fs;
    struct buf b = {0};
    PGresult *r =
        doctor_query(d, c, "disk",
                     "select pg_database_size(current_database()), (select setting from "
                     "pg_settings where name = 'data_directory')");
    if (!r)
        return;
    cell_put_bytes(&b, atof(PQgetvalue(r, 0, 0)));
    // Only possible if PostgreSQL runs on this machine.
    if (PQgetisnull(r, 0, 1) || statvfs(PQgetvalue(r, 0, 1), &fs) != 0) {
        doctor_say(d, DOCTOR_FINE, "disk", NULL,
                   "the database has " SPAN_FMT "; its disk is not on this machine",
                   SPAN_ARG(buf_span(&b)));
    } else {
        double free_part = fs.f_blocks > 0 ? (double)fs.f_bavail / (double)fs.f_blocks : 1;
        bool low = free_part < 0.1;
        doctor_say(d,
                   free_part < 0.03 ? DOCTOR_BAD
                   : low            ? DOCTOR_WARN
                                    : DOCTOR_FINE,
                   "disk",
                   low ? "set retention on the queues, or enlarge the disk, before it is full"
                       : NULL,
                   "the database has " SPAN_FMT ", %.0f %% of the disk are free",
                   SPAN_ARG(buf_span(&b)), free_part * 100);
    }
    buf_free(&b);
    PQclear(r);
}
