// identify.c: the first query on a new connection: when did this server start, and does it
// answer itself?
//
// Numbers, positions and snapshots that a caller remembers are only valid for one server
// process. After a failover to a lagging standby, or on a restored data directory, they
// describe commits that are lost. A server cannot lose commits and keep its start time, unless
// all of its connections end (pool.c treats that as another server, too).
//
// Behind a pooler the server may crash or change while the connection stays. PostgreSQL 15 and
// later reset statistics after a crash, and the time of that tells servers before and after it
// apart. Each call compares both times (pooler_int.h). A server sends its process id when a
// session begins; if another process answers the query, there is a pooler in between.
#include "pg/conn_int.h"

#include <string.h>

#include "pg/pooler_int.h"

// Columns of the query. PostgreSQL 14 would read a file for the time of the reset.
enum { COL_START, COL_RESET, COL_PID, COL_ISOLATION, N_COLS };

static void on_identify_socket(uv_poll_t *handle, int status, int events);
static void identify_read(struct pg_conn *c, const PGresult *r);
static void identify_finish(struct pg_conn *c);

#define EPOCH_2000_US UINT64_C(946684800000000)
#define QUESTION(reset)                                    \
    "select pg_catalog.pg_postmaster_start_time(), " reset \
    ", pg_catalog.pg_backend_pid(), pg_catalog.current_setting('transaction_isolation')"
static const char question[] = QUESTION("pg_catalog.pg_stat_get_bgwriter_stat_reset_time()");
static const char old_question[] = QUESTION("null::pg_catalog.timestamptz");

void conn_identify(struct pg_conn *c)
{
    const char *text = PQserverVersion(c->pg) >= 150000 ? question : old_question;

    if (PQsetnonblocking(c->pg, 1) != 0 ||
        !PQsendQueryParams(c->pg, text, 0, NULL, NULL, NULL, NULL, 1)) {
        conn_dial_failed(c, conn_error(c));
        return;
    }
    int pending = PQflush(c->pg);
    if (pending < 0)
        conn_dial_failed(c, conn_error(c));
    else
        conn_watch(c, pending > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE,
                   on_identify_socket);
}

static void on_identify_socket(uv_poll_t *handle, int status, int events)
{
    struct pg_conn *c = ((struct conn_poll *)handle->data)->conn;

    (void)events;
    if (status != 0)
        c->poll->events = 0; // libuv stops the handle when it reports an error
    if (!PQconsumeInput(c->pg)) {
        conn_dial_failed(c, conn_error(c));
        return;
    }
    int pending = PQflush(c->pg);
    if (pending < 0 || status != 0) {
        conn_dial_failed(c, conn_error(c));
        return;
    }
    conn_watch(c, pending > 0 ? UV_READABLE | UV_WRITABLE : UV_READABLE, on_identify_socket);

    while (!PQisBusy(c->pg)) {
        PGresult *r = PQgetResult(c->pg);
        if (r == NULL) {
            identify_finish(c);
            return;
        }
        identify_read(c, r);
        PQclear(r);
    }
}

static uint64_t identify_number(const PGresult *r, int col)
{
    uint64_t n = 0;

    for (int i = 0; i < PQgetlength(r, 0, col); i++)
        n = n << 8 | (unsigned char)PQgetvalue(r, 0, col)[i];
    return n;
}

static void identify_read(struct pg_conn *c, const PGresult *r)
{
    if (PQresultStatus(r) != PGRES_TUPLES_OK || PQntuples(r) != 1 || PQnfields(r) != N_COLS ||
        PQgetlength(r, 0, COL_START) != 8 || PQgetlength(r, 0, COL_PID) != 4)
        return;
    c->server = identify_number(r, COL_START) + EPOCH_2000_US;
    if (c->target->mode == PG_POOLER_AUTO && !c->pooled &&
        identify_number(r, COL_PID) != (uint64_t)PQbackendPID(c->pg)) {
        pooler_log("another process answers than the one that began the session");
        c->pooled = c->target->pooled = true;
    }
    if (!c->pooled)
        return;
    memcpy(c->ident[0], PQgetvalue(r, 0, COL_START), 8);
    c->has_reset = PQgetlength(r, 0, COL_RESET) == 8;
    if (c->has_reset) {
        memcpy(c->ident[1], PQgetvalue(r, 0, COL_RESET), 8);
        c->server = c->server * 31 + identify_number(r, COL_RESET);
    }
    c->isolate = c->target->isolation != NULL &&
                 strcmp(c->target->isolation, PQgetvalue(r, 0, COL_ISOLATION)) != 0;
}

static void identify_finish(struct pg_conn *c)
{
    conn_watch(c, 0, NULL); // conn.c watches the socket from here on
    if (c->server == 0 || PQstatus(c->pg) == CONNECTION_BAD)
        conn_dial_failed(c, *PQerrorMessage(c->pg)
                                ? conn_error(c)
                                : "the server did not report its start time");
    else
        conn_ready(c);
}
