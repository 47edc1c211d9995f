// directory.c: reads rows of platform.tenant.
#include "tenant/directory.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "tenant/sql.gen.h"

static char *text(const struct pg_reply *reply, unsigned row, unsigned col)
{
    span s = pg_reply_bytes(reply, row, col);

    return s.ptr ? mem_strndup(s.ptr, s.len) : NULL;
}

struct tenant_row directory_row(const struct pg_reply *reply, unsigned i)
{
    span name = pg_reply_bytes(reply, i, PLATFORM_TENANT_ROW_COL_NAME);
    struct tenant_row r = {
        .kind = span_eq(pg_reply_bytes(reply, i, PLATFORM_TENANT_ROW_COL_KIND), SPAN("mysql"))
                    ? TENANT_MYSQL
                    : TENANT_PG,
        .url = text(reply, i, PLATFORM_TENANT_ROW_COL_URL),
        .database = text(reply, i, PLATFORM_TENANT_ROW_COL_DATABASE),
        .credential = text(reply, i, PLATFORM_TENANT_ROW_COL_CREDENTIAL),
        .made = pg_reply_bool(reply, i, PLATFORM_TENANT_ROW_COL_MADE),
        .revision = pg_reply_i64(reply, i, PLATFORM_TENANT_ROW_COL_REVISION),
        .added_us = pg_reply_i64(reply, i, PLATFORM_TENANT_ROW_COL_ADDED_US),
    };

    memcpy(r.name, name.ptr, name.len < TENANT_NAME_MAX ? name.len : TENANT_NAME_MAX);
    return r;
}

static void on_directory_found(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct directory_find *d = call->owner;

    pg_params_free(&d->params);
    if (status != 0 || pg_reply_rows(reply) == 0) {
        d->found(d, status, NULL);
        return;
    }
    struct tenant_row row = directory_row(reply, 0);
    d->found(d, 0, &row);
    tenant_row_deinit(&row);
}

void directory_find(struct pg_pool *control, struct directory_find *d, span name)
{
    d->params = (struct pg_params){0};
    pg_param_text(&d->params, name);
    d->call = (struct pg_call){.statement = &pg_stmt_platform_tenant_find,
                               .params = &d->params,
                               .done = on_directory_found,
                               .owner = d};
    pg_pool_exec(control, &d->call);
}

static void on_changes(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct directory_changes *d = call->owner;

    pg_params_free(&d->params);
    for (unsigned i = 0; status == 0 && i < pg_reply_rows(reply); i++) {
        struct tenant_row row = directory_row(reply, i);
        d->changed(d, &row, pg_reply_bool(reply, i, PLATFORM_TENANT_CHANGES_COL_GONE));
        tenant_row_deinit(&row);
    }
    d->done(d, status);
}

void directory_changes(struct pg_pool *control, struct directory_changes *d, unsigned seconds)
{
    d->params = (struct pg_params){0};
    if (seconds > 0)
        pg_param_i32(&d->params, (int32_t)seconds);
    else
        pg_param_null(&d->params, PG_INT4);
    d->call = (struct pg_call){.statement = &pg_stmt_platform_tenant_changes,
                               .params = &d->params,
                               .done = on_changes,
                               .owner = d};
    pg_pool_exec(control, &d->call);
}
