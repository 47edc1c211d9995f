// my_migrate.c: runs the statements of the schema files one by one, under a lock, and records
// them.
#include "tenant/my_migrate.h"

#include <mysql.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "tenant/my_int.h"

enum { CONNECT_S = 5, LOCK_S = 120 };
#define OUR_COMMENT "queen platform"

struct run {
    MYSQL my;
    const struct pg_schema *schema;
    struct pg_migrate_result done;
    struct fault *f;
};

// In the order they run.
static int connect_to(struct run *r, const struct my_place *place);
static int take_lock(struct run *r);
static int check_names_are_free(struct run *r);
static int create_version_tables(struct run *r);
static int check_versions(struct run *r, unsigned *version);
static int apply_migration(struct run *r, const struct pg_migration *m);
static int apply_objects(struct run *r);

static bool next_line(span *rest, span *line);

static int migrate_failed(struct run *r, const char *what)
{
    int code = my_code(mysql_errno(&r->my), mysql_sqlstate(&r->my));

    return fault_set(r->f, code == QE_PG_GONE ? QE_PG_AWAY : code, "%s: %s", what,
                     mysql_error(&r->my));
}

// Runs one statement.  rows (may be NULL) is given: mysql_free_result().
static int run_statement(struct run *r, const char *what, span text, MYSQL_RES **rows)
{
    if (mysql_real_query(&r->my, text.ptr, (unsigned long)text.len) != 0)
        return migrate_failed(r, what);
    MYSQL_RES *result = mysql_store_result(&r->my);
    if (rows)
        *rows = result;
    else
        mysql_free_result(result);
    return rows && !result ? migrate_failed(r, what) : 0;
}

int my_migrate(const struct my_place *place, const struct pg_schema *schema,
               struct pg_migrate_result *result, struct fault *f)
{
    struct run r = {.schema = schema, .f = f};
    unsigned version = 0;
    int rc = connect_to(&r, place);

    if (rc == 0)
        rc = take_lock(&r);
    if (rc == 0)
        rc = check_names_are_free(&r);
    if (rc == 0)
        rc = create_version_tables(&r);
    if (rc == 0)
        rc = check_versions(&r, &version);
    for (unsigned i = version; i < schema->n_migrations && rc == 0; i++)
        rc = apply_migration(&r, &schema->migrations[i]);
    if (rc == 0 && !r.done.newer)
        rc = apply_objects(&r);
    if (rc == 0 && result)
        *result = r.done;
    mysql_close(&r.my); // releases the lock
    mysql_thread_end();
    return rc;
}

int my_claim(const struct my_place *place, const char *directory, const char *name,
             const char *instead_of, char **tenant, struct fault *f)
{
    struct run r = {.f = f};
    struct buf insert = {0}, read = {0};
    MYSQL_RES *rows = NULL;
    int rc = connect_to(&r, place);

    buf_printf(&insert,
               "insert into belongs_to (directory, tenant) values ('%s', '%s') "
               "on duplicate key update tenant = if(tenant = '%s', values(tenant), tenant)",
               directory, name, instead_of);
    buf_printf(&read, "select tenant from belongs_to where directory = '%s'", directory);
    if (rc == 0)
        rc = run_statement(&r, "claiming the database", buf_span(&insert), NULL);
    if (rc == 0)
        rc = run_statement(&r, "claiming the database", buf_span(&read), &rows);
    if (rc == 0) {
        MYSQL_ROW row = mysql_fetch_row(rows);
        *tenant = row && row[0] ? mem_strndup(row[0], strlen(row[0])) : NULL;
        mysql_free_result(rows);
    }
    buf_free(&insert);
    buf_free(&read);
    mysql_close(&r.my);
    mysql_thread_end();
    return rc;
}

static int connect_to(struct run *r, const struct my_place *p)
{
    unsigned seconds = CONNECT_S;

    mysql_init(&r->my);
    mysql_options(&r->my, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    mysql_options(&r->my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    if (!p->socket) // also for localhost, which would be a socket otherwise
        mysql_options(&r->my, MYSQL_OPT_PROTOCOL, &(unsigned){MYSQL_PROTOCOL_TCP});
    mysql_options(&r->my, MYSQL_INIT_COMMAND, "set sql_mode = '" MY_SQL_MODE "'");
    my_place_secure(p, &r->my);
    if (!mysql_real_connect(&r->my, p->socket ? NULL : p->host, p->user, p->password, p->db,
                            p->port, p->socket, 0))
        return fault_set(r->f, QE_PG_AWAY, "%s", mysql_error(&r->my));
    return 0;
}

// Lock names are global to the server, so the name contains the database.
static int take_lock(struct run *r)
{
    char text[128];
    MYSQL_RES *rows = NULL;

    snprintf(text, sizeof text, "select get_lock(concat('queen:', sha1(database())), %d)",
             LOCK_S);
    int rc = run_statement(r, "waiting for another migration", span_of(text), &rows);
    if (rc != 0)
        return rc;
    MYSQL_ROW row = mysql_fetch_row(rows);
    if (!row || !row[0] || strcmp(row[0], "1") != 0)
        rc = fault_set(r->f, QE_PG_RETRY, "another migration is in progress");
    mysql_free_result(rows);
    return rc;
}

// Whether this program created the schema in this database: schema_version then has our
// comment.
static int is_ours(struct run *r, bool *ours)
{
    MYSQL_RES *rows = NULL;
    int rc = run_statement(r, "schema version",
                           SPAN("select 1 from information_schema.tables "
                                "where table_schema = database() "
                                "and table_name = 'schema_version' "
                                "and table_comment = '" OUR_COMMENT "'"),
                           &rows);

    if (rc == 0) {
        *ours = mysql_fetch_row(rows) != NULL;
        mysql_free_result(rows);
    }
    return rc;
}

// Appends the names of the tables and procedures that the schema files create, quoted.
static void put_names(const struct pg_schema *schema, struct buf *out)
{
    static const char create[] = "create table if not exists ";
    span line;

    buf_put_lit(out, "'schema_version', 'schema_objects'");
    for (unsigned i = 0; i < schema->n_migrations; i++)
        for (span rest = span_of(schema->migrations[i].text); next_line(&rest, &line);)
            if (str_starts(line, span_of(create))) {
                const char *name = line.ptr + sizeof create - 1;
                size_t n = strcspn(name, " (\n");
                buf_printf(out, ", '%.*s'", (int)n, name);
            }
    for (unsigned i = 0; i < schema->n_objects; i++)
        buf_printf(out, ", '%s'", schema->objects[i].name);
}

// Refuses a database with tables or procedures of our names that we did not create.  Events
// would change their rows.
static int check_names_are_free(struct run *r)
{
    MYSQL_RES *rows = NULL;
    struct buf names = {0}, text = {0};
    bool ours = false;
    int rc = is_ours(r, &ours);

    if (rc != 0 || ours)
        return rc;
    put_names(r->schema, &names);
    buf_printf(&text,
               "select 'table', table_name from information_schema.tables "
               "where table_schema = database() and table_name in (" SPAN_FMT ") "
               "union all select lower(routine_type), routine_name "
               "from information_schema.routines "
               "where routine_schema = database() and routine_name in (" SPAN_FMT ") "
               "order by 1, 2 limit 1",
               SPAN_ARG(buf_span(&names)), SPAN_ARG(buf_span(&names)));
    rc = run_statement(r, "existing tables", buf_span(&text), &rows);
    buf_free(&names);
    buf_free(&text);
    if (rc != 0)
        return rc;
    MYSQL_ROW row = mysql_fetch_row(rows);
    if (row)
        rc = fault_set(r->f, QE_CONFLICT,
                       "the database already has a %s %.64s that the platform did not create: "
                       "use a database of its own",
                       row[0] ? row[0] : "", row[1] ? row[1] : "");
    mysql_free_result(rows);
    return rc;
}

// schema_version is the first table: its comment marks the database as ours, also if the
// migration fails half-way.
static int create_version_tables(struct run *r)
{
    int rc = run_statement(
        r, "version tables",
        SPAN("create table if not exists schema_version (version int primary key, "
             "name varchar(200) not null, sha256 char(64) not null, "
             "applied_at timestamp not null default current_timestamp) "
             "default character set utf8mb4 collate utf8mb4_bin "
             "comment '" OUR_COMMENT "'"),
        NULL);
    if (rc == 0)
        rc = run_statement(
            r, "version tables",
            SPAN("create table if not exists schema_objects (name varchar(200) primary "
                 "key, sha256 char(64) not null, "
                 "applied_at timestamp not null default current_timestamp) "
                 "default character set utf8mb4 collate utf8mb4_bin"),
            NULL);
    return rc;
}

static int check_versions(struct run *r, unsigned *version)
{
    MYSQL_RES *rows = NULL;
    int rc = run_statement(
        r, "schema version",
        SPAN("select version, name, sha256 from schema_version order by version"), &rows);
    unsigned n = 0;

    if (rc != 0)
        return rc;
    for (MYSQL_ROW row; rc == 0 && (row = mysql_fetch_row(rows)) != NULL; n++) {
        const struct pg_migration *m = &r->schema->migrations[n];
        if (n < r->schema->n_migrations && strcmp(row[2], m->sha256) != 0)
            rc =
                fault_set(r->f, QE_PG_FAILED,
                          "migration %04u_%s was applied with other contents than this program "
                          "carries: released migrations must never change",
                          n + 1, row[1]);
    }
    mysql_free_result(rows);
    *version = n;
    r->done.newer = n > r->schema->n_migrations;
    return rc;
}

// ---- files ----

// Returns the next line of rest without its end; false after the last.
static bool next_line(span *rest, span *line)
{
    if (rest->len == 0)
        return false;
    const char *end = memchr(rest->ptr, '\n', rest->len);
    line->ptr = rest->ptr;
    line->len = end ? (size_t)(end - rest->ptr) : rest->len;
    size_t used = line->len + (end != NULL);
    *rest = (span){rest->ptr + used, rest->len - used};
    return true;
}

static bool ends_with(span text, span end)
{
    return text.len >= end.len && memcmp(text.ptr + text.len - end.len, end.ptr, end.len) == 0;
}

static bool is_blank(span text)
{
    span line;

    while (next_line(&text, &line)) {
        line = str_trim(line);
        if (line.len > 0 && !str_starts(line, SPAN("--")))
            return false;
    }
    return true;
}

// A statement ends with a line that ends with the delimiter: ; or the one set by a line
// "delimiter x", as in the mysql client.
static int run_file(struct run *r, const char *what, const char *text)
{
    span rest = span_of(text), line, delimiter = SPAN(";");
    struct buf one = {0};
    int rc = 0;

    while (rc == 0 && next_line(&rest, &line)) {
        span trimmed = str_trim(line);
        if (str_starts(trimmed, SPAN("delimiter "))) {
            delimiter = (span){trimmed.ptr + 10, trimmed.len - 10};
            continue;
        }
        bool last = ends_with(trimmed, delimiter);
        buf_put(&one, last ? (span){trimmed.ptr, trimmed.len - delimiter.len} : line);
        buf_putc(&one, '\n');
        if (last && !is_blank(buf_span(&one)))
            rc = run_statement(r, what, buf_span(&one), NULL);
        if (last)
            buf_reset(&one);
    }
    if (rc == 0 && !is_blank(buf_span(&one)))
        rc = run_statement(r, what, buf_span(&one), NULL);
    buf_free(&one);
    return rc;
}

// Names and checksums come from this program: letters, digits and _.
static int record_applied(struct run *r, const char *what, const char *table, const char *name,
                          const char *sha256, unsigned number)
{
    struct buf text = {0};

    buf_printf(&text, "replace into %s", table);
    if (number > 0)
        buf_printf(&text, " values (%u, '%s', '%s', now())", number, name, sha256);
    else
        buf_printf(&text, " values ('%s', '%s', now())", name, sha256);
    int rc = run_statement(r, what, buf_span(&text), NULL);
    buf_free(&text);
    return rc;
}

static int apply_migration(struct run *r, const struct pg_migration *m)
{
    char what[96];

    snprintf(what, sizeof what, "migration %04u_%.64s", m->number, m->name);
    int rc = run_file(r, what, m->text);
    if (rc == 0)
        rc = record_applied(r, what, "schema_version", m->name, m->sha256, m->number);
    if (rc == 0)
        r->done.n_migrations++;
    return rc;
}

static int has_object(struct run *r, const struct pg_object *o, bool *has)
{
    struct buf text = {0};
    MYSQL_RES *rows = NULL;

    buf_printf(&text, "select 1 from schema_objects where name = '%s' and sha256 = '%s'",
               o->name, o->sha256);
    int rc = run_statement(r, "procedures", buf_span(&text), &rows);
    buf_free(&text);
    if (rc == 0) {
        *has = mysql_fetch_row(rows) != NULL;
        mysql_free_result(rows);
    }
    return rc;
}

static int apply_objects(struct run *r)
{
    int rc = 0;

    for (unsigned i = 0; i < r->schema->n_objects && rc == 0; i++) {
        const struct pg_object *o = &r->schema->objects[i];
        bool has = false;
        rc = has_object(r, o, &has);
        if (rc != 0 || has)
            continue;
        rc = run_file(r, o->name, o->text);
        if (rc == 0)
            rc = record_applied(r, o->name, "schema_objects", o->name, o->sha256, 0);
        r->done.n_objects += rc == 0;
    }
    return rc;
}
