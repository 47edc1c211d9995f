// identify.c: the first query on a new connection: when did this server start?
//
// Numbers, positions and snapshots that a caller remembers are only valid for one server
// process. After a failover to a lagging standby, or on a restored data directory, they
// describe commits that are lost. A server cannot lose commits and keep its start time, unless
// all of its connections end (pool.c treats that as another server, too).
#include "pg/conn_int.h"

#include <string.h>

static void on_identify_socket(uv_poll_t *handle, int status, int events);
static void identify_finish(struct pg_conn *c);

static const char question[] =
    "select (extract(epoch from pg_catalog.pg_postmaster_start_time()) "
    "operator(pg_catalog.*) 1000000)::pg_catalog.int8";

void conn_identify(struct pg_conn *c)
{
    if (PQsetnonblocking(c->pg, 1) != 0 ||
        !PQsendQueryParams(c->pg, question, 0, NULL, NULL, NULL, NULL, 1)) {
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
        if (PQresultStatus(r) == PGRES_TUPLES_OK && PQntuples(r) == 1 && PQnfields(r) == 1 &&
            PQgetlength(r, 0, 0) == 8) {
            uint64_t start = 0;
            for (int i = 0; i < 8; i++)
                start = start << 8 | (unsigned char)PQgetvalue(r, 0, 0)[i];
            c->server = start;
        }
        PQclear(r);
    }
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
