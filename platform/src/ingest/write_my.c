// write_my.c: a transaction in MySQL: one call of the procedure ingest.
#include <inttypes.h>

#include "base/attrs.h"
#include "base/id.h"
#include "ingest/write.h"
#include "tenant/sql.gen.h"
#include "json/write.h"

// The server times out first, so that a slow write does not cost the connection.
enum { DEADLINE_AFTER_MS = 2000 };

enum { // error numbers
    DUPLICATE_KEY = 1062,
    DEADLOCK = 1213,
};

static void on_my_written(struct my_call *call, int status, const struct my_reply *reply);

// All lists are JSON, for JSON_TABLE.
static void my_put_ids(struct my_params *p, const struct fold_id *ids)
{
    struct buf b = {0};
    const uint8_t *id;
    char sep = '[';

    if (!ids)
        buf_putc(&b, '[');
    while ((id = fold_next(&ids))) {
        buf_putc(&b, sep);
        sep = ',';
        buf_putc(&b, '"');
        buf_put_uuid(&b, id);
        buf_putc(&b, '"');
    }
    buf_putc(&b, ']');
    my_param_text(p, buf_span(&b));
    buf_free(&b);
}

static void my_put_marks(struct write *w)
{
    const struct write_mark *marks = w->marks;
    unsigned n = w->n_marks;
    struct buf b = {0};

    for (unsigned i = 0; i < n; i++) {
        buf_put(&b, i == 0 ? SPAN("[{\"name\":") : SPAN(",{\"name\":"));
        js_put_text(&b, marks[i].partition);
        buf_printf(&b, ",\"position\":%" PRIi64 ",\"stamp\":%" PRIi64 ",\"seen\":%" PRIi64 "}",
                   marks[i].position_us, w->stamp_us, marks[i].seen_us);
    }
    buf_putc(&b, ']');
    my_param_text(&w->my_params, buf_span(&b));
    buf_free(&b);
}

static void my_put_rows(struct write *w, enum event_table table)
{
    struct buf rows = {0};

    if (!fold_has(&w->fold, table)) {
        my_param_null(&w->my_params);
        return;
    }
    fold_put_rows(&w->fold, table, &rows);
    my_param_text(&w->my_params, buf_span(&rows));
    buf_free(&rows);
}

void write_my(struct write *w, struct my_pool *pool, unsigned limit_ms)
{
    struct my_params *p = &w->my_params;

    write_make_marks(w);
    my_params_reset(p);
    my_param_text(p, span_of(w->queue));
    my_put_marks(w);
    my_put_ids(p, fold_events(&w->fold));
    my_put_ids(p, fold_deleted(&w->fold));
    for (unsigned t = 0; t < N_TABLES; t++)
        my_put_rows(w, t);
    w->call.my = (struct my_call){.statement = &my_stmt_tenant_ingest,
                                  .params = p,
                                  .done = on_my_written,
                                  .owner = w,
                                  .deadline_ms = limit_ms + DEADLINE_AFTER_MS,
                                  .statement_timeout_ms = limit_ms};
    my_pool_exec(pool, &w->call.my);
}

// Errors that the values of an event cause.  Most have SQLSTATE 22xxx or 23xxx (my_code()
// returns QE_PG_DATA); these have a general one (HY000, 42000, 01000).  Every other error
// concerns all events: the connection, locks, privileges, the schema, resources, the server.
static bool my_is_error_of_event(unsigned number)
{
    static const unsigned numbers[] = {
        1118,       // row too big
        1265,       // value truncated
        1300,       // invalid character string
        1301,       // result of a function too long
        1366,       // incorrect value
        1411,       // incorrect value for a function
        1526,       // no partition of the table for the value
        1644,       // signalled by a trigger
        1748,       // not in the partitions that are named
        3140,       // MySQL: invalid JSON text
        3819,       // MySQL: check constraint
        4025,       // MariaDB: check constraint
        4035, 4036, // MariaDB: broken JSON text
        4037, 4038, 4039,
        4040, // and too deep
    };

    for (size_t i = 0; i < countof(numbers); i++)
        if (number == numbers[i])
            return true;
    return false;
}

static void on_my_written(struct my_call *call, int status, const struct my_reply *reply)
{
    struct write *w = call->owner;
    unsigned n_duplicates = 0;
    uint8_t id[16];

    for (unsigned i = 0; status == 0 && i < my_reply_rows(reply); i++)
        if (id_parse_uuid(my_reply_text(reply, i, MY_TENANT_INGEST_COL_DUPLICATE), id))
            n_duplicates += write_mark_duplicate(w, id);
    unsigned number = my_reply_errno(reply);
    if (write_is_behind(w, my_reply_sqlstate(reply)))
        status = QE_CONFLICT;
    else if (number == DUPLICATE_KEY || number == DEADLOCK)
        status = QE_PG_RETRY;
    else if (status == QE_PG_RETRY)
        status = QE_TIMEOUT;
    else if (status == QE_PG_FAILED && my_is_error_of_event(number))
        status = QE_PG_DATA;
    w->is_unique_violation = number == DUPLICATE_KEY;
    write_done(w, status, n_duplicates, my_reply_message(reply));
}
