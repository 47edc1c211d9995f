// my_reply.c: parameters, rows and error numbers.
#include <errmsg.h>
#include <mysqld_error.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "tenant/my_int.h"

// ---- parameters ----

void my_params_reset(struct my_params *p)
{
    buf_reset(&p->data);
    p->n = 0;
}

void my_params_free(struct my_params *p)
{
    buf_free(&p->data);
    p->n = 0;
}

#define NEXT(p) \
    (&(p)->param[(p)->n < MY_MAX_PARAMS ? (p)->n++ : (BUG("too many parameters"), 0)])

void my_param_null(struct my_params *p) { NEXT(p)->type = MY_NULL; }

void my_param_text(struct my_params *p, span v)
{
    unsigned i = (unsigned)(NEXT(p) - p->param);

    p->param[i].type = MY_TEXT;
    p->param[i].at = p->data.len;
    p->param[i].len = v.len;
    buf_put(&p->data, v);
}

void my_param_i64(struct my_params *p, int64_t v)
{
    unsigned i = (unsigned)(NEXT(p) - p->param);

    p->param[i].type = MY_INT;
    p->param[i].i = v;
}

void my_param_f64(struct my_params *p, double v)
{
    unsigned i = (unsigned)(NEXT(p) - p->param);

    p->param[i].type = MY_FLOAT;
    p->param[i].f = v;
}

void my_param_bool(struct my_params *p, bool v) { my_param_i64(p, v); }

// ---- rows ----

void my_reply_reset(struct my_reply *r)
{
    buf_reset(&r->data);
    r->n_cells = 0;
    r->cols = 0;
    r->affected = 0;
    r->number = 0;
    r->sqlstate[0] = r->message[0] = '\0';
}

void my_reply_deinit(struct my_reply *r)
{
    buf_free(&r->data);
    free(r->cells);
}

static struct my_cell *next_cell(struct my_reply *r)
{
    if (r->n_cells == r->room) {
        r->room = r->room > 0 ? 2 * r->room : 16;
        r->cells = mem_realloc(r->cells, r->room * sizeof r->cells[0]);
    }
    return &r->cells[r->n_cells++];
}

// A cell of unknown length takes two reads: the length, then the text.
static void take_cell(struct my_reply *r, MYSQL_STMT *stmt, unsigned col)
{
    unsigned long len = 0;
    my_bool is_null = 0;
    char probe[64];
    MYSQL_BIND bind = {.buffer_type = MYSQL_TYPE_STRING,
                       .buffer = probe,
                       .buffer_length = sizeof probe,
                       .length = &len,
                       .is_null = &is_null};
    struct my_cell *cell = next_cell(r);

    mysql_stmt_fetch_column(stmt, &bind, col, 0);
    *cell = (struct my_cell){r->data.len, is_null ? SIZE_MAX : len};
    if (is_null)
        return;
    if (!buf_reserve(&r->data, len)) {
        cell->len = SIZE_MAX; // too large
        return;
    }
    if (len <= sizeof probe) {
        buf_put_bytes(&r->data, probe, len);
        return;
    }
    bind.buffer = r->data.ptr + r->data.len;
    bind.buffer_length = len;
    mysql_stmt_fetch_column(stmt, &bind, col, 0);
    r->data.len += len;
}

void my_reply_take(struct my_reply *r, MYSQL_STMT *stmt)
{
    r->cols = mysql_stmt_field_count(stmt);
    r->n_cells = 0;
    buf_reset(&r->data);
    while (true) {
        int rc = mysql_stmt_fetch(stmt);
        if (rc != 0 && rc != MYSQL_DATA_TRUNCATED)
            break;
        for (unsigned col = 0; col < r->cols; col++)
            take_cell(r, stmt, col);
    }
}

unsigned my_reply_rows(const struct my_reply *r)
{
    return r->cols > 0 ? (unsigned)(r->n_cells / r->cols) : 0;
}

unsigned my_reply_cols(const struct my_reply *r) { return r->cols; }

span my_reply_text(const struct my_reply *r, unsigned row, unsigned col)
{
    // The owner of the database may have replaced our procedures, so a result may have any
    // shape.
    if (row >= my_reply_rows(r) || col >= r->cols)
        return SPAN_NONE;
    const struct my_cell *cell = &r->cells[(size_t)row * r->cols + col];
    if (cell->len == SIZE_MAX)
        return SPAN_NONE;
    return (span){cell->len > 0 ? r->data.ptr + cell->at : "", cell->len};
}

bool my_reply_is_null(const struct my_reply *r, unsigned row, unsigned col)
{
    return my_reply_text(r, row, col).ptr == NULL;
}

int64_t my_reply_i64(const struct my_reply *r, unsigned row, unsigned col)
{
    int64_t v = 0;

    return str_parse_i64(my_reply_text(r, row, col), &v) ? v : 0;
}

double my_reply_f64(const struct my_reply *r, unsigned row, unsigned col)
{
    double v = 0;

    return str_parse_double(my_reply_text(r, row, col), &v) ? v : 0;
}

uint64_t my_reply_affected(const struct my_reply *r) { return r->affected; }
unsigned my_reply_errno(const struct my_reply *r) { return r->number; }
const char *my_reply_sqlstate(const struct my_reply *r) { return r->sqlstate; }
const char *my_reply_message(const struct my_reply *r) { return r->message; }

// ---- errors ----

void my_reply_fail(struct my_reply *r, unsigned number, const char *sqlstate,
                   const char *message)
{
    r->cols = 0;
    r->n_cells = 0;
    r->number = number;
    snprintf(r->sqlstate, sizeof r->sqlstate, "%s", sqlstate);
    str_clean_utf8(r->message, sizeof r->message, span_of(message)); // it may be longer
}

int my_code(unsigned number, const char *sqlstate)
{
    switch (number) {
    case 0:
        return 0;
    case CR_SERVER_GONE_ERROR:
    case CR_SERVER_LOST:
    case CR_COMMANDS_OUT_OF_SYNC:
    case ER_CONNECTION_KILLED:
        return QE_PG_GONE;
    case ER_LOCK_DEADLOCK:
    case ER_LOCK_WAIT_TIMEOUT:
    case ER_QUERY_INTERRUPTED:
    case ER_STATEMENT_TIMEOUT:
    case ER_CON_COUNT_ERROR:
    case ER_TOO_MANY_USER_CONNECTIONS:
        return QE_PG_RETRY;
    case ER_OPTION_PREVENTS_STATEMENT: // --read-only
    case ER_READ_ONLY_MODE:
    case ER_CANT_EXECUTE_IN_READ_ONLY_TRANSACTION:
        return QE_PG_READ_ONLY;
    case ER_RECORD_FILE_FULL:
    case ER_DISK_FULL:
        return QE_PG_FULL;
    default:
        break;
    }
    if (strncmp(sqlstate, "08", 2) == 0) // the server ends the connection
        return QE_PG_GONE;
    // 22: data, 23: constraints, 45: signalled by our procedures.
    if (strncmp(sqlstate, "22", 2) == 0 || strncmp(sqlstate, "23", 2) == 0 ||
        strncmp(sqlstate, "45", 2) == 0)
        return QE_PG_DATA;
    return QE_PG_FAILED;
}
