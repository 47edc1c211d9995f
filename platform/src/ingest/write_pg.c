// write_pg.c: a transaction in PostgreSQL: one call of crm.ingest.
#include "base/attrs.h"
#include "ingest/write.h"
#include "tenant/sql.gen.h"

// The server times out first, so that a slow write does not cost the connection.
enum { DEADLINE_AFTER_MS = 2000 };

static void on_pg_written(struct pg_call *call, int status, const struct pg_reply *reply);

static void pg_put_ids(struct pg_params *p, const struct fold_id *ids)
{
    const uint8_t *id;

    pg_begin_array(p, PG_UUID);
    while ((id = fold_next(&ids)))
        pg_put_uuid(p, id);
    pg_end_array(p);
}

static void pg_put_marks(struct write *w)
{
    struct pg_params *p = &w->params;
    const struct write_mark *marks = w->marks;
    unsigned n = w->n_marks;

    pg_begin_array(p, PG_TEXT);
    for (unsigned i = 0; i < n; i++)
        pg_put_text(p, marks[i].partition);
    pg_end_array(p);
    pg_begin_array(p, PG_INT8);
    for (unsigned i = 0; i < n; i++)
        pg_put_i64(p, marks[i].position_us);
    pg_end_array(p);
    pg_param_i64(p, w->stamp_us);
    pg_begin_array(p, PG_INT8);
    for (unsigned i = 0; i < n; i++)
        pg_put_i64(p, marks[i].seen_us);
    pg_end_array(p);
}

static void pg_put_rows(struct write *w, enum event_table table)
{
    struct buf rows = {0};

    if (!fold_has(&w->fold, table)) {
        pg_param_null(&w->params, PG_TEXT);
        return;
    }
    fold_put_rows(&w->fold, table, &rows);
    pg_param_text(&w->params, buf_span(&rows));
    buf_free(&rows);
}

static void put_customers(struct write *w, enum event_table table)
{
    const struct fold_row *at = fold_rows(&w->fold, table);
    const uint8_t *customer;

    pg_begin_array(&w->params, PG_UUID);
    while ((customer = fold_next_customer(&at)))
        pg_put_uuid(&w->params, customer);
    pg_end_array(&w->params);
}

void write_pg(struct write *w, struct pg_pool *pool, unsigned limit_ms)
{
    struct pg_params *p = &w->params;

    write_make_marks(w);
    pg_params_reset(p);
    pg_param_text(p, span_of(w->queue));
    pg_put_marks(w);
    pg_put_ids(p, fold_events(&w->fold));
    pg_put_ids(p, fold_deleted(&w->fold));
    for (unsigned t = 0; t < N_TABLES; t++)
        pg_put_rows(w, t);
    for (unsigned t = 0; t < N_TABLES; t++)
        put_customers(w, t);
    w->call.pg = (struct pg_call){.statement = &pg_stmt_tenant_ingest,
                                  .params = p,
                                  .done = on_pg_written,
                                  .owner = w,
                                  .deadline_ms = limit_ms + DEADLINE_AFTER_MS,
                                  .statement_timeout_ms = limit_ms};
    pg_pool_exec(pool, &w->call.pg);
}

// An error is caused by the event unless its class is about the connection, the state of the
// transaction, privileges, the schema, resources, an operator or the server itself: those
// affect every event.  A tenant's triggers may raise any other state.
static bool pg_is_error_of_event(const char *state)
{
    static const char *const others[] = {"08", "0A", "0L", "0P", "0Z", "25", "26", "28", "2D",
                                         "2F", "34", "39", "3B", "3D", "3F", "40", "42", "53",
                                         "55", "57", "58", "72", "F0", "HV", "XX"};

    for (size_t i = 0; i < countof(others); i++)
        if (strncmp(state, others[i], 2) == 0)
            return false;
    return state[0] != '\0';
}

static void on_pg_written(struct pg_call *call, int status, const struct pg_reply *reply)
{
    struct write *w = call->owner;
    unsigned n_duplicates = 0;
    const char *state = pg_reply_sqlstate(reply);

    for (unsigned i = 0; status == 0 && i < pg_reply_rows(reply); i++) {
        const uint8_t *id = pg_reply_uuid(reply, i, TENANT_INGEST_COL_DUPLICATE);
        n_duplicates += id ? write_mark_duplicate(w, id) : 0;
    }
    // Of the errors that allow a retry, only a conflict is worth retrying immediately.  A
    // unique violation is also a conflict: two transactions applied the same event, and the
    // retry finds a duplicate.
    w->is_unique_violation = strcmp(state, "23505") == 0;
    if (status == QE_PG_RETRY && !pg_reply_is_conflict(reply))
        status = QE_TIMEOUT;
    else if (write_is_behind(w, state))
        status = QE_CONFLICT;
    else if (w->is_unique_violation)
        status = QE_PG_RETRY;
    else if (status == QE_PG_FAILED && pg_is_error_of_event(state))
        status = QE_PG_DATA;
    write_done(w, status, n_duplicates, pg_reply_message(reply));
}
