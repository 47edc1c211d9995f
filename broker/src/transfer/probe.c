// probe.c: libpq without blocking calls, driven by poll() on one thread.
#include "transfer/probe.h"

#include <assert.h>
#include <errno.h>
#include <libpq-fe.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/str.h"
#include "db/sql.gen.h"

enum {
    SLICE_MS = 200, // how soon a probe notices that the server stops
    // libpq reads as long as data arrive, into a buffer as large as the sender says its message
    // is. With a small window the sender falls behind, and the probe can count.
    WINDOW_BYTES = 64 << 10,
};

// Steps of a probe, in order.
static void probe_run(void *arg);
static PGconn *probe_dial(struct probe *p, const char *conninfo);
static void read_version(struct probe *p, const PGconn *conn);
static void read_counts(struct probe *p, PGconn *conn, struct probe_count *out, unsigned *n);
static void on_probe_finished(uv_async_t *async);
static void on_probe_closed(uv_handle_t *handle);

static _Atomic unsigned n_running;

static void probe_fail(struct probe *p, int code, const char *text)
{
    if (p->rc == 0)
        p->rc = fault_set(&p->fault, code, "%.200s", text);
}

int probe_start(struct probe *p, uv_loop_t *loop)
{
    if (atomic_fetch_add(&n_running, 1) >= PROBE_MAX_RUNNING) {
        atomic_fetch_sub(&n_running, 1);
        return fault_set(&p->fault, QE_BUSY, "%d other connections are being tested",
                         PROBE_MAX_RUNNING);
    }
    p->until_us = clock_mono_us() + p->timeout_ms * 1000ull;
    p->finished.data = p;
    if (uv_async_init(loop, &p->finished, on_probe_finished) != 0)
        BUG("no async handle");
    p->has_thread = uv_thread_create(&p->thread, probe_run, p) == 0;
    if (!p->has_thread) {
        probe_fail(p, QE_INTERNAL, "the system has no thread to spare");
        uv_async_send(&p->finished);
    }
    return 0;
}

static void probe_run(void *arg)
{
    struct probe *p = arg;
    PGconn *conn = probe_dial(p, p->target);

    if (conn) {
        read_version(p, conn);
        if (p->source)
            read_counts(p, conn, p->there, &p->n_there);
        PQfinish(conn);
    }
    if (p->source && p->rc == 0) {
        conn = probe_dial(p, p->source);
        if (conn) {
            read_counts(p, conn, p->here, &p->n_here);
            PQfinish(conn);
        }
    }
    uv_async_send(&p->finished);
}

// Bytes that the connection has received. 0 for a Unix socket, whose server is local.
static uint64_t probe_received(int fd)
{
    struct { // the C library's structure ends before the counters of the kernel's
        struct tcp_info head;
        uint64_t pacing_rate, max_pacing_rate, bytes_acked, bytes_received;
    } info = {0};
    socklen_t len = sizeof info;

    static_assert(sizeof info.head == 104, "the counters follow at offset 104");
    if (getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len) != 0 || len < sizeof info)
        return 0;
    return info.bytes_received;
}

// Waits for the socket. False: the probe has failed.
static bool probe_wait(struct probe *p, const PGconn *conn, short events)
{
    struct pollfd fd = {.fd = PQsocket(conn), .events = events};
    int window = WINDOW_BYTES;

    (void)setsockopt(fd.fd, SOL_SOCKET, SO_RCVBUF, &window, sizeof window); // or it is larger

    while (p->rc == 0) {
        uint64_t now = clock_mono_us();
        if (probe_received(fd.fd) > PROBE_MAX_BYTES)
            probe_fail(p, QE_PG_SHAPE, "the database sent more data than expected");
        else if (atomic_load(p->stopping))
            probe_fail(p, QE_STOPPING, "the server is stopping");
        else if (now >= p->until_us)
            probe_fail(p, QE_TIMEOUT, "the database did not answer in time");
        if (p->rc != 0)
            break;
        uint64_t left_ms = (p->until_us - now) / 1000 + 1;
        int n = poll(&fd, 1, (int)(left_ms < SLICE_MS ? left_ms : SLICE_MS));
        if (n < 0 && errno != EINTR)
            probe_fail(p, QE_PG_AWAY, strerror(errno));
        if (n > 0)
            return true;
    }
    return false;
}

// By default libpq prints notices of the server to our stderr.
static void drop_notice(void *ctx, const char *text) { (void)ctx, (void)text; }

static PGconn *probe_dial(struct probe *p, const char *conninfo)
{
    PGconn *conn = PQconnectStart(conninfo);
    PostgresPollingStatusType next = PGRES_POLLING_WRITING;

    if (conn && PQstatus(conn) != CONNECTION_BAD) {
        PQsetNoticeProcessor(conn, drop_notice, NULL);
        while (next == PGRES_POLLING_READING || next == PGRES_POLLING_WRITING) {
            if (!probe_wait(p, conn, next == PGRES_POLLING_READING ? POLLIN : POLLOUT))
                break;
            next = PQconnectPoll(conn);
        }
    }
    if (conn && p->rc == 0 && next == PGRES_POLLING_OK && PQstatus(conn) == CONNECTION_OK)
        return conn;
    probe_fail(p, QE_PG_AWAY, conn ? PQerrorMessage(conn) : "no memory");
    PQfinish(conn);
    return NULL;
}

static void read_version(struct probe *p, const PGconn *conn)
{
    const char *text = PQparameterStatus(conn, "server_version");

    if (!text || !str_is_utf8(span_of(text)))
        text = "of unknown version";
    snprintf(p->version, sizeof p->version, "PostgreSQL %.40s", text);
}

// The owner of the database may have replaced the function: nothing about its rows is certain.
static void take_row(struct probe *p, const PGresult *res, struct probe_count *out, unsigned *n)
{
    char *end;

    if (PQnfields(res) != 2) {
        probe_fail(p, QE_PG_SHAPE, "queen.table_counts() did not return 2 columns");
        return;
    }
    for (int row = 0; row < PQntuples(res) && p->rc == 0; row++) {
        const char *name = PQgetvalue(res, row, 0), *count = PQgetvalue(res, row, 1);
        if (*n == PROBE_MAX_COUNTS || PQgetisnull(res, row, 0) || PQgetisnull(res, row, 1) ||
            strlen(name) >= sizeof out->name || !str_is_utf8(span_of(name))) {
            probe_fail(p, QE_PG_SHAPE, "queen.table_counts() returned an unexpected row");
            return;
        }
        errno = 0;
        out[*n].n = strtoll(count, &end, 10);
        if (errno != 0 || *count == '\0' || *end != '\0') {
            probe_fail(p, QE_PG_SHAPE,
                       "queen.table_counts() returned something that is no number");
            return;
        }
        snprintf(out[*n].name, sizeof out[*n].name, "%s", name);
        ++*n;
    }
}

// A database without our schema has no tables to count.
static bool is_missing_function(const PGresult *res)
{
    const char *state = PQresultErrorField(res, PG_DIAG_SQLSTATE);

    return state && (strcmp(state, "42883") == 0 || strcmp(state, "3F000") == 0);
}

static void read_counts(struct probe *p, PGconn *conn, struct probe_count *out, unsigned *n)
{
    bool more = p->rc == 0;

    *n = 0;
    if (more &&
        (PQsendQuery(conn, pg_stmt_table_counts.text) != 1 || PQsetSingleRowMode(conn) != 1))
        probe_fail(p, QE_PG_AWAY, PQerrorMessage(conn));
    while (more && p->rc == 0) {
        if (PQflush(conn) < 0)
            probe_fail(p, QE_PG_AWAY, PQerrorMessage(conn));
        if (PQisBusy(conn)) {
            if (probe_wait(p, conn, POLLIN) && PQconsumeInput(conn) != 1)
                probe_fail(p, QE_PG_AWAY, PQerrorMessage(conn));
            continue;
        }
        PGresult *res = PQgetResult(conn);
        more = res != NULL;
        ExecStatusType status = PQresultStatus(res);
        if (more && (status == PGRES_SINGLE_TUPLE || status == PGRES_TUPLES_OK)) {
            take_row(p, res, out, n);
        } else if (more && !is_missing_function(res)) {
            const char *text = PQresultErrorMessage(res);
            probe_fail(p, QE_PG_FAILED,
                       text && *text ? text : "unexpected answer of the database");
        } else if (more) {
            more = false;
        }
        PQclear(res);
    }
}

static void on_probe_finished(uv_async_t *async)
{
    struct probe *p = async->data;

    if (p->has_thread)
        uv_thread_join(&p->thread);
    atomic_fetch_sub(&n_running, 1);
    uv_close((uv_handle_t *)async, on_probe_closed);
}

static void on_probe_closed(uv_handle_t *handle)
{
    struct probe *p = handle->data;

    p->done(p);
}
