// migrate.c: migrates a database to the schema embedded in this program.
#include "pg/migrate.h"

#include <libpq-fe.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/mem.h"
#include "pg/connect_int.h"
#include "pg/reply_int.h"

enum { LOCK_TRIES = 12, LOCK_PAUSE_US = 500 * 1000 };

struct run {
    PGconn *pg;
    const struct pg_schema *schema;
    const char *home; // the SQL schema that holds schema_version and schema_objects
    unsigned version; // of the database
    bool complete;    // nothing is left to do
    struct pg_migrate_result done;
    struct fault *f;
};

// Steps, in order.
static int migrate_retry(struct run *r);
static int migrate_step(struct run *r);
static int migrate_begin(struct run *r);
static int make_books(struct run *r);
static int check_versions(struct run *r);
static int apply_migration(struct run *r, const struct pg_migration *m);
static int apply_objects(struct run *r);

static void ignore_notice(void *ctx, const char *text) { (void)ctx, (void)text; }

// Line of the file that the server's error refers to; 0 if unknown.
static unsigned complaint_line(const PGresult *res, const char *text)
{
    const char *pos = PQresultErrorField(res, PG_DIAG_STATEMENT_POSITION);
    unsigned line = 1;

    if (pos == NULL)
        return 0;
    // The position counts characters, the text is bytes: skip UTF-8 continuation bytes.
    for (long left = strtol(pos, NULL, 10) - 1; *text != '\0' && left > 0; text++) {
        left -= (*text & 0xc0) != 0x80;
        line += *text == '\n';
    }
    return line;
}

// Takes res. Returns 0, or the error code with "what: message" in the fault.
static int check_migration(struct run *r, PGresult *res, const char *what, const char *text)
{
    int code = reply_status(res);

    if (code == QE_PG_GONE)
        code = QE_PG_AWAY;
    if (code != 0) {
        const char *message = PQresultErrorField(res, PG_DIAG_MESSAGE_PRIMARY);
        unsigned line = complaint_line(res, text);
        char where[32] = "";
        if (line > 0)
            snprintf(where, sizeof where, " (line %u)", line);
        fault_set(r->f, code, "%s%s: %s", what, where,
                  message != NULL ? message : PQerrorMessage(r->pg));
    }
    PQclear(res);
    return code;
}

static int exec(struct run *r, const char *what, const char *text)
{
    return check_migration(r, PQexec(r->pg, text), what, text);
}

enum { BOOKS_TEXT = 1024 };
// Fills in a statement about the bookkeeping tables: each %s is their SQL schema.
static void on_books(const struct run *r, char out[BOOKS_TEXT], const char *text)
{
    struct buf b = {0};
    const char *at;

    for (; (at = strstr(text, "%s")) != NULL; text = at + 2)
        buf_printf(&b, "%.*s%s", (int)(at - text), text, r->home);
    buf_printf(&b, "%s", text);
    if (b.failed || b.len >= BOOKS_TEXT)
        BUG("no room for a bookkeeping statement");
    memcpy(out, b.ptr, b.len);
    out[b.len] = '\0';
    buf_free(&b);
}

// Up to three text parameters.
static int exec_with(struct run *r, const char *what, const char *text, int n, const char *a,
                     const char *b, const char *c)
{
    const char *values[] = {a, b, c};

    return check_migration(r, PQexecParams(r->pg, text, n, NULL, values, NULL, NULL, 0), what,
                           text);
}

int pg_migrate(const char *conninfo, const struct pg_schema *schema,
               struct pg_migrate_result *result, struct fault *f)
{
    struct run r = {.schema = schema, .f = f};
    r.home = schema->home != NULL ? schema->home : "queen";
    int rc = connect_and_wait(conninfo, &r.pg, f);

    if (rc != 0)
        return rc;
    PQsetNoticeProcessor(r.pg, ignore_notice, NULL);
    while (rc == 0 && !r.complete)
        rc = migrate_retry(&r);
    if (rc == 0 && result != NULL)
        *result = r.done;
    PQfinish(r.pg);
    return rc;
}

// One step; again while another session holds a table that it must lock.
static int migrate_retry(struct run *r)
{
    int rc = QE_PG_RETRY;

    for (unsigned try = 0; rc == QE_PG_RETRY && try < LOCK_TRIES; try++) {
        if (try > 0) {
            log_info("migrate.retry", "version=%u try=%u", r->version + 1, try + 1);
            usleep(LOCK_PAUSE_US);
        }
        rc = migrate_step(r);
        if (rc != 0)
            // if this fails too, rc already holds the reason
            PQclear(PQexec(r->pg, "rollback"));
    }
    return rc;
}

// One transaction: the next migration, or at the end the objects.
static int migrate_step(struct run *r)
{
    int rc = migrate_begin(r);

    if (rc == 0)
        rc = make_books(r);
    if (rc == 0)
        rc = check_versions(r);
    if (rc != 0)
        return rc;
    if (r->version < r->schema->n_migrations)
        return apply_migration(r, &r->schema->migrations[r->version]);
    if (r->done.newer)
        log_warn("migrate.newer",
                 "database=%u program=%u action=\"keeps the newer procedures\"", r->version,
                 r->schema->n_migrations);
    return apply_objects(r);
}

static int migrate_begin(struct run *r)
{
    // The limits of the connection string are for calls; building an index may take long.
    // Waiting for another broker's migration has no limit either. Waiting for a table lock has
    // one: an ALTER TABLE queued behind one slow reader would block everything that follows it.
    // Everything is local to the transaction, as behind a pooler the next one may run in
    // another session.
    int rc = exec(
        r, "settings",
        "begin isolation level read committed; set local search_path = pg_catalog, pg_temp;"
        "set local statement_timeout = 0; set local lock_timeout = 0;"
        "set local enable_seqscan = on; set local enable_hashjoin = on;"
        "set local enable_mergejoin = on; set local enable_bitmapscan = on;"
        "set local client_min_messages = warning");
    if (rc == 0)
        rc = exec(r, "waiting for another program's migration",
                  "select pg_advisory_xact_lock(737000)");
    if (rc == 0)
        rc = exec(r, "settings", "set local lock_timeout = '5s'");
    return rc;
}

static int make_books(struct run *r)
{
    char sql[BOOKS_TEXT];

    on_books(r, sql,
             "do $$ begin\n"
             "if to_regclass('%s.schema_version') is null "
             "or to_regclass('%s.schema_objects') is null then\n"
             "  create schema if not exists %s;\n"
             "  create table if not exists %s.schema_version ("
             "    version int primary key, name text not null, sha256 text not null,"
             "    applied_at timestamptz not null default now());\n"
             "  create table if not exists %s.schema_objects ("
             "    name text primary key, sha256 text not null,"
             "    applied_at timestamptz not null default now());\n"
             "end if; end $$");
    return exec(r, "bookkeeping tables", sql);
}

// Compares the migrations of the database with the embedded ones, and finds its version.
static int check_versions(struct run *r)
{
    char sql[BOOKS_TEXT];
    on_books(r, sql, "select version, name, sha256 from %s.schema_version order by version");
    PGresult *res = PQexec(r->pg, sql);
    unsigned n = (unsigned)PQntuples(res);
    int rc = reply_status(res);

    if (rc != 0)
        return check_migration(r, res, "schema version", sql);
    for (unsigned i = 0; i < n && rc == 0; i++) {
        unsigned number = (unsigned)strtoul(PQgetvalue(res, (int)i, 0), NULL, 10);
        const char *name = PQgetvalue(res, (int)i, 1), *sha = PQgetvalue(res, (int)i, 2);
        if (number != i + 1)
            rc = fault_set(r->f, QE_PG_FAILED,
                           "%s.schema_version lacks migration %04u but has %04u: "
                           "the database was tampered with",
                           r->home, i + 1, number);
        else if (i < r->schema->n_migrations &&
                 strcmp(sha, r->schema->migrations[i].sha256) != 0)
            rc = fault_set(
                r->f, QE_PG_FAILED,
                "migration %04u_%s was applied with different contents (%.12s) than this "
                "program contains (%.12s): released migrations must never change",
                number, name, sha, r->schema->migrations[i].sha256);
    }
    PQclear(res);
    r->version = n;
    r->done.newer = n > r->schema->n_migrations;
    return rc;
}

static int apply_migration(struct run *r, const struct pg_migration *m)
{
    char number[16], what[96], book[BOOKS_TEXT];
    int rc;

    snprintf(number, sizeof number, "%u", m->number);
    snprintf(what, sizeof what, "migration %04u_%.64s", m->number, m->name);
    if ((rc = exec(r, what, m->text)) != 0)
        return rc;
    if (PQtransactionStatus(r->pg) != PQTRANS_INTRANS)
        return fault_set(r->f, QE_PG_FAILED, "%s must not end its transaction", what);
    on_books(r, book,
             "insert into %s.schema_version (version, name, sha256) "
             "values ($1::text::int, $2, $3)");
    rc = exec_with(r, what, book, 3, number, m->name, m->sha256);
    if (rc == 0)
        rc = exec(r, what, "commit");
    if (rc == 0) {
        log_debug("migrate.applied", "version=%u name=%s", m->number, m->name);
        r->done.n_migrations++;
    }
    return rc;
}

// True if the database has this object with this checksum.
static bool has_object(const PGresult *have, const struct pg_object *o)
{
    for (int i = 0; i < PQntuples(have); i++)
        if (strcmp(PQgetvalue(have, i, 0), o->name) == 0)
            return strcmp(PQgetvalue(have, i, 1), o->sha256) == 0;
    return false;
}

static int apply_object(struct run *r, const struct pg_object *o)
{
    char book[BOOKS_TEXT];
    int rc = exec(r, o->name, o->text);

    if (rc != 0)
        return rc;
    r->done.n_objects++;
    on_books(r, book,
             "insert into %s.schema_objects (name, sha256) values ($1, $2) "
             "on conflict (name) do update "
             "set sha256 = excluded.sha256, applied_at = now()");
    return exec_with(r, o->name, book, 2, o->name, o->sha256, NULL);
}

// In one transaction: procedures call each other, and a mixture of versions does not work.
static int apply_objects(struct run *r)
{
    char sql[BOOKS_TEXT];
    on_books(r, sql, "select name, sha256 from %s.schema_objects");
    int rc = 0;
    PGresult *have = PQexec(r->pg, sql);
    if (PQresultStatus(have) != PGRES_TUPLES_OK)
        return check_migration(r, have, "procedures", sql);
    r->done.n_objects = 0; // of an earlier try
    for (unsigned i = 0; !r->done.newer && i < r->schema->n_objects && rc == 0; i++)
        if (!has_object(have, &r->schema->objects[i]))
            rc = apply_object(r, &r->schema->objects[i]);
    PQclear(have);
    if (rc == 0 && PQtransactionStatus(r->pg) != PQTRANS_INTRANS)
        rc = fault_set(r->f, QE_PG_FAILED, "a procedure's file must not end the transaction");
    if (rc == 0)
        rc = exec(r, "procedures", "commit");
    r->complete = rc == 0;
    if (rc == 0 && r->done.n_objects > 0)
        log_debug("migrate.objects", "replaced=%u of=%u", r->done.n_objects,
                  r->schema->n_objects);
    return rc;
}
