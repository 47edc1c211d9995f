// conn.c: one connection: sends a call, collects its result, detects the loss of the server.
//
// The first use of a statement on a connection sends Prepare and Execute together, in libpq's
// pipeline mode, so it costs one round trip like any other; later uses send Execute only. If
// the time limit of a call differs from that of the previous call, it is set in the same
// pipeline. Behind a transaction pooler all settings are part of each call (pooler_int.h).
#include <assert.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "net/received.h"
#include "pg/conn_int.h"
#include "pg/reply_int.h"

// Steps of a call, in order.
static bool is_prepared(const struct pg_conn *c, unsigned index);
static bool send_statement(struct pg_conn *c, const struct pg_call *call);
static bool send_settings(struct pg_conn *c);
static bool send_limit(struct pg_conn *c, unsigned ms);
static void on_pg_conn_socket(uv_poll_t *handle, int status, int events);
static bool gather(struct pg_conn *c);
static bool pg_conn_keep(struct pg_conn *c, PGresult *r);
static void pg_conn_complete(struct pg_conn *c, bool complete);
static void on_pg_conn_timer_closed(uv_handle_t *handle);

enum { LIMIT_UNKNOWN = -1, UNEXPECTED_EVERY_US = 1000 * 1000 };

// A call's parameters in the form libpq expects; on the stack, so a call allocates nothing
// here.
struct wire {
    Oid types[PG_MAX_PARAMS];
    const char *values[PG_MAX_PARAMS];
    int lengths[PG_MAX_PARAMS], formats[PG_MAX_PARAMS];
    int n;
};

static bool follow_writes(struct pg_conn *c)
{
    int pending = PQflush(c->pg);

    if (pending < 0)
        return false;
    conn_watch(c, pending > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE, on_pg_conn_socket);
    return true;
}

void conn_ready(struct pg_conn *c)
{
    uv_timer_stop(&c->timer);
    if (!follow_writes(c)) {
        c->doomed = true;
        c->on->broken(c, conn_error(c));
        return;
    }
    c->state = CONN_IDLE;
    c->on->ready(c);
}

static void wire_fill(struct wire *w, const struct pg_params *p)
{
    w->n = p != NULL ? (int)p->n : 0;
    for (int i = 0; i < w->n; i++) {
        size_t len = p->param[i].len;
        w->types[i] = p->param[i].oid;
        w->formats[i] = 1;
        w->lengths[i] = len == SIZE_MAX ? 0 : (int)len;
        // libpq takes a NULL pointer for SQL NULL, so an empty value needs an address.
        w->values[i] = len == SIZE_MAX ? NULL : len == 0 ? "" : p->data.ptr + p->param[i].at;
    }
}

int conn_send(struct pg_conn *c, struct pg_call *call)
{
    assert(c->state == CONN_IDLE && !c->doomed && c->call == NULL);

    if (call->params != NULL && pg_params_failed(call->params))
        return QE_TOO_LARGE;
    if (!send_statement(c, call) || !follow_writes(c)) {
        c->doomed = true;
        return QE_PG_GONE;
    }
    c->state = CONN_BUSY;
    c->call = call;
    c->received = c->target->max_result_bytes > 0 ? net_received(PQsocket(c->pg)) : 0;
    call->sent = true;
    call->sent_us = clock_mono_us();
    return 0;
}

// Settings for this transaction, and the guard.
static bool send_settings(struct pg_conn *c)
{
    static const Oid types[] = {PG_TIMESTAMPTZ, PG_TIMESTAMPTZ};
    static const int lengths[] = {8, 8}, formats[] = {1, 1};
    const char *values[] = {c->ident[0], c->has_reset ? c->ident[1] : NULL};
    char text[80];

    if (c->isolate) { // a function would come too late for it
        snprintf(text, sizeof text, "set transaction isolation level %s", c->target->isolation);
        if (!PQsendQueryParams(c->pg, text, 0, NULL, NULL, NULL, NULL, 1))
            return false;
    }
    c->n_limit += 1 + c->isolate;
    return PQsendQueryParams(c->pg, c->target->settings, 2, types, values, lengths, formats, 1);
}

// A call with a limit of its own may run long, so the server also checks whether the client is
// still connected (since PostgreSQL 14; set inside the call it would come too late).
static bool send_limit(struct pg_conn *c, unsigned ms)
{
    bool looks = PQserverVersion(c->pg) >= 140000;
    const char *values[2];
    char text[16];

    if (ms == 0) { // back to the connection's initial value
        c->n_limit += 1 + looks;
        return PQsendQueryParams(c->pg, "reset statement_timeout", 0, NULL, NULL, NULL, NULL,
                                 1) &&
               (!looks || PQsendQueryParams(c->pg, "reset client_connection_check_interval", 0,
                                            NULL, NULL, NULL, NULL, 1));
    }
    snprintf(text, sizeof text, "%u", ms);
    values[0] = text;
    // Behind a proxy the next call may reach another server, so the setting is local to this
    // call (a whole pipeline is one transaction).
    values[1] = c->pooled ? "true" : "false";
    c->n_limit++;
    return PQsendQueryParams(c->pg,
                             looks
                                 ? "select set_config('statement_timeout', $1::text, $2::bool),"
                                   " set_config('client_connection_check_interval', '2s', $2)"
                                 : "select set_config('statement_timeout', $1::text, $2::bool)",
                             2, NULL, values, NULL, NULL, 1);
}

static bool send_statement(struct pg_conn *c, const struct pg_call *call)
{
    const struct pg_statement *s = call->statement;
    bool unnamed = c->pooled || s->index == PG_UNPREPARED;
    bool limiting = call->statement_timeout_ms != c->limit_ms;
    struct wire w;

    wire_fill(&w, call->params);
    c->n_results = c->n_limit = 0;
    c->preparing = !unnamed && !is_prepared(c, s->index);
    c->piped = limiting || c->preparing || c->pooled;
    if (c->piped && !PQenterPipelineMode(c->pg))
        return false;
    if (c->pooled && !send_settings(c))
        return false;
    if (limiting && !send_limit(c, call->statement_timeout_ms))
        return false;
    if (c->preparing && !PQsendPrepare(c->pg, s->name, s->text, w.n, w.types))
        return false;
    int sent =
        unnamed
            ? PQsendQueryParams(c->pg, s->text, w.n, w.types, w.values, w.lengths, w.formats, 1)
            : PQsendQueryPrepared(c->pg, s->name, w.n, w.values, w.lengths, w.formats, 1);
    return sent && (!c->piped || PQpipelineSync(c->pg));
}

// A failed transaction also rolls back the setting.
static void note_limit(struct pg_conn *c, const struct pg_call *call, bool done)
{
    if (c->n_limit > 0 && !c->pooled)
        c->limit_ms = done ? (int64_t)call->statement_timeout_ms : LIMIT_UNKNOWN;
}

static bool is_prepared(const struct pg_conn *c, unsigned index)
{
    unsigned word = index / 64;

    return word < c->n_prepared && (c->prepared[word] >> index % 64 & 1);
}

static void set_prepared(struct pg_conn *c, unsigned index)
{
    unsigned word = index / 64;

    if (word >= c->n_prepared) {
        c->prepared = mem_realloc(c->prepared, (word + 1) * sizeof c->prepared[0]);
        while (c->n_prepared <= word)
            c->prepared[c->n_prepared++] = 0;
    }
    c->prepared[word] |= UINT64_C(1) << index % 64;
}

// libpq keeps notifications until they are taken.
static void take_notifications(struct pg_conn *c)
{
    PGnotify *n;

    while ((n = PQnotifies(c->pg)) != NULL) {
        if (c->on_notified != NULL)
            c->on_notified(c->notified_ctx, span_of(n->extra));
        PQfreemem(n);
    }
}

// libpq keeps all rows in memory, and the server may be hostile.
static bool receives_too_much(const struct pg_conn *c)
{
    return c->target->max_result_bytes > 0 && c->state == CONN_BUSY &&
           net_received(PQsocket(c->pg)) - c->received > c->target->max_result_bytes;
}

static void on_pg_conn_socket(uv_poll_t *handle, int status, int events)
{
    struct pg_conn *c = ((struct conn_poll *)handle->data)->conn;
    bool alive = status == 0;

    if (receives_too_much(c)) {
        c->doomed = c->too_large = true;
        pg_conn_complete(c, false);
        return;
    }

    if (status != 0)
        c->poll->events = 0; // libuv stops the handle when it reports an error
    // Read even then: the server may have sent the reason for closing.
    if (status != 0 || (events & UV_READABLE))
        alive = PQconsumeInput(c->pg) && alive;
    if (alive && (c->poll->events & UV_WRITABLE))
        alive = follow_writes(c);

    bool complete = c->state == CONN_BUSY ? gather(c) : false;
    if (c->state == CONN_IDLE)
        PQisBusy(c->pg); // parses unsolicited messages: notices, parameters, a shutdown message
    take_notifications(c);
    if (!alive || PQstatus(c->pg) == CONNECTION_BAD)
        c->doomed = true;

    if (complete || (c->doomed && c->state == CONN_BUSY)) {
        pg_conn_complete(c, complete);
    } else if (c->doomed) {
        conn_watch(c, 0, NULL);
        c->on->broken(c, conn_error(c));
    }
}

// True when the whole result has arrived, including ReadyForQuery.
static bool gather(struct pg_conn *c)
{
    while (!PQisBusy(c->pg)) {
        PGresult *r = PQgetResult(c->pg);
        if (r == NULL) {
            if (PQstatus(c->pg) == CONNECTION_BAD)
                return false;
            if (!c->piped)
                return true;
            // In a pipeline NULL only ends one command's results; the sync ends all.
        } else if (pg_conn_keep(c, r)) {
            return true;
        }
    }
    return false;
}

static bool has_state(const PGresult *r, const char *state)
{
    const char *is = PQresultErrorField(r, PG_DIAG_SQLSTATE);

    return is != NULL && strcmp(is, state) == 0;
}

// Takes r.  True when r ends a pipeline.
static bool pg_conn_keep(struct pg_conn *c, PGresult *r)
{
    ExecStatusType s = PQresultStatus(r);

    if (s == PGRES_PIPELINE_SYNC) {
        PQclear(r);
        if (!PQexitPipelineMode(c->pg))
            c->doomed = true;
        return true;
    }
    if (s == PGRES_COPY_IN || s == PGRES_COPY_OUT || s == PGRES_COPY_BOTH)
        c->doomed = true; // none of our statements copies, and libpq offers no other way to
                          // leave COPY mode
    unsigned place = c->n_results++;
    if (place < c->n_limit && (s == PGRES_TUPLES_OK || s == PGRES_COMMAND_OK)) {
        PQclear(r);
    } else if (c->preparing && place == c->n_limit && s == PGRES_COMMAND_OK) {
        set_prepared(c, c->call->statement->index);
        PQclear(r);
    } else if (c->result != NULL && PQresultStatus(c->result) == PGRES_FATAL_ERROR) {
        PQclear(r); // keep the first failure; later ones are "pipeline aborted"
    } else {
        PQclear(c->result);
        c->result = r;
        // 25001: another isolation level than when the connection was identified.
        c->other_server =
            c->pooled && place < c->n_limit && (has_state(r, "22012") || has_state(r, "25001"));
    }
    return c->doomed;
}

// At most once a second for all connections.
void conn_log_unexpected(const char *statement, const char *why)
{
    static _Atomic uint64_t last_us;
    uint64_t now = clock_mono_us(), last = atomic_load(&last_us);

    if ((last == 0 || now - last >= UNEXPECTED_EVERY_US) &&
        atomic_compare_exchange_strong(&last_us, &last, now))
        log_error("pg.unexpected_result", "statement=%s detail=\"%s\"", statement, why);
}

// The server commits after it has sent the rows and before ReadyForQuery. Rows without the end
// of the result therefore prove nothing, and an error after them is the outcome.
static void pg_conn_complete(struct pg_conn *c, bool complete)
{
    struct pg_call *call = c->call;
    PGresult *result = c->result;
    int status = result != NULL ? reply_status(result) : QE_PG_GONE;
    if (status == 0 && !complete) {
        PQclear(result);
        result = NULL;
        status = QE_PG_GONE;
    }
    const char *why = status != 0 ? conn_error(c) : "";
    if (status == 0 && call->statement->returns != NULL &&
        (status = reply_check(result, call->statement->returns, c->why, sizeof c->why)) != 0) {
        PQclear(result);
        result = NULL;
        why = c->why;
        conn_log_unexpected(call->statement->name, why);
    }

    if (c->other_server) { // the statement did not run
        PQclear(result);
        result = NULL;
        status = QE_PG_RETRY;
        why = "the pooler uses another server";
        call->sent = false;
    }
    // A new connection resolves all of these: a standby in place of the primary, statements
    // that a proxy dropped, and plans made before a column changed (0A000).
    if (status == QE_PG_GONE || status == QE_PG_READ_ONLY || c->other_server ||
        has_state(result, "26000") || has_state(result, "0A000"))
        c->doomed = true;

    note_limit(c, call, status == 0);
    c->call = NULL;
    c->result = NULL;
    c->state = CONN_IDLE;
    if (c->doomed)
        conn_watch(c, 0, NULL);
    c->on->answered(c, call, status, &(struct pg_reply){.result = result, .message = why});
    PQclear(result);
    // c may have been closed.
}

const char *conn_error(struct pg_conn *c)
{
    const char *text = PQerrorMessage(c->pg);
    size_t n = strcspn(text, "\r\n");

    if (c->too_large) {
        snprintf(c->why, sizeof c->why, "the result is larger than %zu bytes",
                 c->target->max_result_bytes);
        return c->why;
    }
    if (n >= sizeof c->why)
        n = sizeof c->why - 1;
    memcpy(c->why, text, n);
    c->why[n] = '\0';
    return c->why;
}

void conn_close(struct pg_conn *c)
{
    assert(c->state != CONN_CLOSED);
    c->state = CONN_CLOSED;
    c->call = NULL;
    PQclear(c->result);
    c->result = NULL;
    if (c->looking_up)
        lookup_cancel(&c->lookup); // counted as a handle until it has answered
    // Stop polling first: libuv must not poll a socket that libpq has closed.
    conn_unwatch(c);
    PQfinish(c->pg);
    c->pg = NULL;
    uv_close((uv_handle_t *)&c->timer, on_pg_conn_timer_closed);
}

static void on_pg_conn_timer_closed(uv_handle_t *handle) { conn_handle_gone(handle->data); }

void conn_handle_gone(struct pg_conn *c)
{
    if (--c->n_handles > 0)
        return;
    c->on->closed(c);
    lookup_deinit(&c->lookup);
    free(c->prepared);
    free(c);
}
