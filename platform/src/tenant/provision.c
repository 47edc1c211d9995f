// provision.c: blocking work on tenants' databases, on a work thread.
#include "tenant/provision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "pg/ask.h"
#include "pg/migrate.h"
#include "tenant/my_migrate.h"
#include "tenant/sql.gen.h"

// In the order they run.
static int provision_prepare(struct provision *v, const struct database *home,
                             const struct tenant_auth *auth);
static void on_work(uv_work_t *work);
static int provision_migrate(struct provision *v);
static int claim_database(struct provision *v);
static int find_triggers(struct provision *v);
static void on_worked(uv_work_t *work, int status);

static const struct pg_schema *tenant_schema(enum tenant_kind kind)
{
    return kind == TENANT_MYSQL ? &my_schema_tenant : &pg_schema_tenant;
}

void provision_start(struct provision *v, uv_loop_t *loop, const struct database *home,
                     const struct tenant_auth *auth, const struct tenant_row *row,
                     enum provision_what what)
{
    v->what = what;
    v->version = v->n_migrations = v->n_objects = 0;
    v->has_triggers = false;
    v->taken_by[0] = '\0';
    v->conninfo = v->admin_info = NULL;
    v->place = (struct my_place){0};
    v->why = (struct fault){0};
    v->us = clock_mono_us();
    v->work.data = v;
    tenant_row_copy(&v->row, row);
    v->status = provision_prepare(v, home, auth);
    int rc = uv_queue_work(loop, &v->work, on_work, on_worked);
    if (rc != 0)
        BUG("uv_queue_work: %s", uv_strerror(rc));
}

// Runs on the loop's thread: only that thread may read the settings and the environment.
static int provision_prepare(struct provision *v, const struct database *home,
                             const struct tenant_auth *auth)
{
    struct pg_conninfo like = {.application_name = "queen-platform-chore",
                               .connect_timeout_ms = 5000};

    if (!v->row.url) {
        struct pg_conninfo admin = database_place(home, true);
        admin.db = "postgres";
        v->admin_info = pg_conninfo_format(&admin);
    }
    if (v->row.kind == TENANT_MYSQL)
        return tenant_place(&v->row, auth, &v->place, &v->why);
    return tenant_conninfo(&v->row, home, auth, &like, &v->conninfo, &v->why);
}

static void on_work(uv_work_t *work)
{
    struct provision *v = work->data;

    if (v->status != 0)
        return;
    if (v->what == PROVISION_DROP)
        v->status = database_drop(v->admin_info, v->row.database, &v->why);
    else
        v->status = provision_migrate(v);
}

static int provision_migrate(struct provision *v)
{
    struct pg_migrate_result done = {0};
    int rc = v->admin_info ? database_create(v->admin_info, v->row.database, NULL, &v->why) : 0;

    const struct pg_schema *schema = tenant_schema(v->row.kind);

    if (rc == 0)
        rc = v->row.kind == TENANT_MYSQL ? my_migrate(&v->place, schema, &done, &v->why)
                                         : pg_migrate(v->conninfo, schema, &done, &v->why);
    v->n_migrations = done.n_migrations;
    v->n_objects = done.n_objects;
    if (rc == 0)
        v->version = schema->n_migrations;
    if (rc == 0 && v->directory)
        rc = claim_database(v);
    if (rc == 0 && v->row.kind == TENANT_PG && v->n_migrations == 0)
        rc = find_triggers(v);
    return rc;
}

static int claim_pg(struct provision *v, char **tenant)
{
    const char *params[] = {v->directory, v->row.name, v->instead_of};
    struct pg_ask ask = {
        .text = "insert into crm.belongs_to as b (directory, tenant) values ($1::uuid, $2)"
                " on conflict (directory) do update set tenant ="
                " case when b.tenant = $3 then excluded.tenant else b.tenant end"
                " returning tenant",
        .params = params,
        .n_params = 3,
        .n_columns = 1,
    };

    return pg_ask(v->conninfo, &ask, tenant, &v->why);
}

static int claim_database(struct provision *v)
{
    char *tenant = NULL;
    int rc = v->row.kind == TENANT_MYSQL ? my_claim(&v->place, v->directory, v->row.name,
                                                    v->instead_of, &tenant, &v->why)
                                         : claim_pg(v, &tenant);

    if (rc == 0 && (!tenant || strcmp(tenant, v->row.name) != 0)) {
        snprintf(v->taken_by, sizeof v->taken_by, "%s", tenant ? tenant : "");
        rc = fault_set(&v->why, QE_CONFLICT, "the database is that of tenant %s", v->taken_by);
    }
    free(tenant);
    return rc;
}

static int find_triggers(struct provision *v)
{
    static const struct pg_ask ask = {
        .text = "select exists (select from crm.segment where watch_every_s is not null)"
                " or exists (select from crm.campaign where kind = 'cron')",
        .n_columns = 1,
    };
    char *has;
    int rc = pg_ask(v->conninfo, &ask, &has, &v->why);

    v->has_triggers = has && strcmp(has, "t") == 0;
    free(has);
    return rc;
}

static void on_worked(uv_work_t *work, int status)
{
    struct provision *v = work->data;

    (void)status; // never cancelled
    v->us = clock_mono_us() - v->us;
    free(v->conninfo);
    free(v->admin_info);
    my_place_deinit(&v->place);
    tenant_row_deinit(&v->row);
    v->done(v);
}
