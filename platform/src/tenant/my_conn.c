// my_conn.c: one connection.  Each step of the connector starts, waits for the socket and
// continues.
#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/mem.h"
#include "net/received.h"
#include "tenant/my_int.h"

// In the order they run.
static void on_looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *found);
static void take_address(struct my_conn *c);
static void on_begin(uv_timer_t *timer);
static void my_conn_begin(struct my_conn *c, enum my_step step);
static int start_step(struct my_conn *c);
static int go_on(struct my_conn *c, int ready);
static void my_conn_run(struct my_conn *c, int wait);
static bool step_over(struct my_conn *c);
static void try_next_address(struct my_conn *c);
static void drop_poll(struct my_conn *c);
static void watch_socket(struct my_conn *c, int wait);
static void on_socket(uv_poll_t *poll, int status, int events);
static void on_timeout(uv_timer_t *timer);
static void finish_command(struct my_conn *c);
static void on_my_conn_handle_closed(uv_handle_t *handle);

struct my_conn *my_conn_dial(uv_loop_t *loop, const struct my_place *place, unsigned timeout_ms,
                             unsigned statement_timeout_ms, const struct my_events *on,
                             void *owner)
{
    struct my_conn *c = mem_new(struct my_conn);
    struct sockaddr_storage ignored;

    c->step = MY_LOOKUP;
    c->on = on;
    c->owner = owner;
    c->loop = loop;
    c->place = place;
    c->timeout_ms = c->attempt_ms = timeout_ms;
    c->statement_timeout_ms = statement_timeout_ms;
    uv_timer_init(loop, &c->timer);
    c->timer.data = c->lookup.data = c;
    c->n_handles = 1;
    snprintf(c->address, sizeof c->address, "%s", place->host);
    bool numeric = uv_ip4_addr(place->host, 1, (struct sockaddr_in *)&ignored) == 0 ||
                   uv_ip6_addr(place->host, 1, (struct sockaddr_in6 *)&ignored) == 0;
    // The connector would resolve the name synchronously.
    if (!numeric && !place->socket) {
        struct addrinfo hints = {.ai_socktype = SOCK_STREAM};
        c->address[0] = '\0';
        if (uv_getaddrinfo(loop, &c->lookup, on_looked_up, place->host, NULL, &hints) == 0) {
            c->n_handles++;
            return c;
        }
    }
    uv_timer_start(&c->timer, on_begin, 0, 0);
    return c;
}

// A name may have several addresses: use the first that accepts a connection.
static void take_address(struct my_conn *c)
{
    const struct addrinfo *a = c->next;

    c->address[0] = '\0';
    if (!a)
        return;
    c->next = a->ai_next;
    if (a->ai_family == AF_INET)
        uv_ip4_name((struct sockaddr_in *)a->ai_addr, c->address, sizeof c->address);
    else
        uv_ip6_name((struct sockaddr_in6 *)a->ai_addr, c->address, sizeof c->address);
}

static void on_looked_up(uv_getaddrinfo_t *req, int status, struct addrinfo *found)
{
    struct my_conn *c = req->data;

    unsigned n = 0;

    c->found = c->next = status == 0 ? found : NULL;
    for (const struct addrinfo *a = c->found; a; a = a->ai_next)
        n++;
    c->attempt_ms = n > 1 ? c->timeout_ms / n : c->timeout_ms;
    take_address(c);
    if (c->step == MY_LOOKUP)
        on_begin(&c->timer);
    on_my_conn_handle_closed((uv_handle_t *)&c->timer); // the lookup was counted as a handle
}

static void on_begin(uv_timer_t *timer)
{
    struct my_conn *c = timer->data;

    if (c->address[0] == '\0' && !c->place->socket) {
        c->doomed = true;
        c->on->broken(c, "the host has no address");
        return;
    }
    unsigned seconds = (c->attempt_ms + 999) / 1000;
    char init[256];
    snprintf(init, sizeof init,
             "set time_zone = '+00:00', sql_mode = '" MY_SQL_MODE
             "' /*M!100101 , max_statement_time = %u.%03u */",
             c->statement_timeout_ms / 1000, c->statement_timeout_ms % 1000);
    mysql_init(&c->my);
    c->has_my = true;
    mysql_options(&c->my, MYSQL_OPT_NONBLOCK, 0);
    mysql_options(&c->my, MYSQL_OPT_CONNECT_TIMEOUT, &seconds);
    mysql_options(&c->my, MYSQL_SET_CHARSET_NAME, "utf8mb4");
    mysql_options(&c->my, MYSQL_INIT_COMMAND, init);
    my_place_secure(c->place, &c->my);
    my_conn_begin(c, MY_CONNECT);
}

static void my_conn_begin(struct my_conn *c, enum my_step step)
{
    c->step = step;
    c->ret = 0;
    my_conn_run(c, start_step(c));
}

// Returns the events that the connector waits for; 0: the step is complete.
static int start_step(struct my_conn *c)
{
    const struct my_place *p = c->place;

    switch (c->step) {
    case MY_CONNECT:
        return mysql_real_connect_start(&c->connected, &c->my, p->socket ? NULL : c->address,
                                        p->user, p->password, p->db, p->port, p->socket,
                                        CLIENT_MULTI_RESULTS);
    case MY_PREPARE:
        return mysql_stmt_prepare_start(&c->ret, c->stmt, c->text.ptr,
                                        (unsigned long)c->text.len);
    case MY_EXECUTE:
        return mysql_stmt_execute_start(&c->ret, c->stmt);
    case MY_STORE:
        return mysql_stmt_store_result_start(&c->ret, c->stmt);
    case MY_NEXT:
        return mysql_stmt_next_result_start(&c->ret, c->stmt);
    case MY_FREE:
        return mysql_stmt_close_start(&c->freed, c->stmt);
    default:
        BUG("no such step: %d", (int)c->step);
    }
}

static int go_on(struct my_conn *c, int ready)
{
    switch (c->step) {
    case MY_CONNECT:
        return mysql_real_connect_cont(&c->connected, &c->my, ready);
    case MY_PREPARE:
        return mysql_stmt_prepare_cont(&c->ret, c->stmt, ready);
    case MY_EXECUTE:
        return mysql_stmt_execute_cont(&c->ret, c->stmt, ready);
    case MY_STORE:
        return mysql_stmt_store_result_cont(&c->ret, c->stmt, ready);
    case MY_NEXT:
        return mysql_stmt_next_result_cont(&c->ret, c->stmt, ready);
    case MY_FREE:
        return mysql_stmt_close_cont(&c->freed, c->stmt, ready);
    default:
        BUG("no such step: %d", (int)c->step);
    }
}

static void my_conn_run(struct my_conn *c, int wait)
{
    while (wait == 0 && step_over(c))
        wait = start_step(c);
    if (wait != 0)
        watch_socket(c, wait);
}

static void my_conn_fail(struct my_conn *c)
{
    if (c->status != 0)
        return; // the first error is the most informative
    unsigned number = mysql_stmt_errno(c->stmt);
    const char *state = mysql_stmt_sqlstate(c->stmt);

    my_reply_fail(&c->reply, number, state,
                  c->too_large ? "the result is larger than permitted"
                               : mysql_stmt_error(c->stmt));
    c->status = my_code(number, state);
    // Read-only: the next connection may reach the server that has become the primary.  An
    // error with the SQLSTATE of a warning (1265 in strict mode) is not caught by the handlers
    // of our procedures, so the transaction is still open: closing the connection rolls it
    // back.
    bool is_uncaught = strncmp(state, "01", 2) == 0 || strncmp(state, "02", 2) == 0;
    if (c->status == QE_PG_GONE || c->status == QE_PG_READ_ONLY || is_uncaught)
        c->doomed = true;
}

// Returns false if the server counts other parameters than the statement was written with.
static bool bind_params(struct my_conn *c)
{
    MYSQL_BIND binds[MY_MAX_PARAMS] = {0};
    const struct my_params *p = c->call->params;
    unsigned n = p ? p->n : 0;

    if (mysql_stmt_param_count(c->stmt) != n) {
        my_reply_fail(&c->reply, 0, "", "the server counts other parameters than we do");
        c->status = QE_PG_SHAPE;
        return false;
    }
    for (unsigned i = 0; i < n; i++) {
        MYSQL_BIND *b = &binds[i];
        switch (p->param[i].type) {
        case MY_NULL:
            b->buffer_type = MYSQL_TYPE_NULL;
            break;
        case MY_TEXT:
            b->buffer_type = MYSQL_TYPE_STRING;
            b->buffer = p->param[i].len > 0 ? p->data.ptr + p->param[i].at : (char *)&c->ret;
            b->buffer_length = (unsigned long)p->param[i].len;
            break;
        case MY_INT:
            b->buffer_type = MYSQL_TYPE_LONGLONG;
            memcpy(&b->buffer, &(const void *){&p->param[i].i}, sizeof b->buffer);
            break;
        case MY_FLOAT:
            b->buffer_type = MYSQL_TYPE_DOUBLE;
            memcpy(&b->buffer, &(const void *){&p->param[i].f}, sizeof b->buffer);
            break;
        }
    }
    if (n > 0)
        mysql_stmt_bind_param(c->stmt, binds);
    return true;
}

// From the loop: no deeper stack for each address.
static void try_next_address(struct my_conn *c)
{
    drop_poll(c);
    mysql_close(&c->my);
    c->has_my = false;
    take_address(c);
    uv_timer_start(&c->timer, on_begin, 0, 0);
}

// Completes a step.  Returns true if c->step must be started next.
static bool step_over(struct my_conn *c)
{
    switch (c->step) {
    case MY_CONNECT:
        uv_timer_stop(&c->timer);
        if (!c->connected && c->next) {
            try_next_address(c);
            return false;
        }
        if (!c->connected) {
            c->doomed = true;
            c->on->broken(c, mysql_error(&c->my));
            return false;
        }
        c->step = MY_IDLE;
        c->on->ready(c);
        return false;
    case MY_PREPARE:
        c->prepared = c->ret == 0 && bind_params(c);
        c->step = c->prepared ? MY_EXECUTE : MY_FREE;
        break;
    case MY_EXECUTE:
    case MY_NEXT:
        if (c->ret != 0) { // -1 after the last result never occurs: see more_results below
            c->step = MY_FREE;
            break;
        }
        if (mysql_stmt_field_count(c->stmt) > 0) {
            c->step = MY_STORE;
            return true;
        }
        c->reply.affected += mysql_stmt_affected_rows(c->stmt);
        c->step = mysql_stmt_more_results(c->stmt) ? MY_NEXT : MY_FREE;
        break;
    case MY_STORE:
        if (c->ret == 0) {
            my_reply_take(&c->reply, c->stmt);
            mysql_stmt_free_result(c->stmt);
        }
        c->step = c->ret == 0 && mysql_stmt_more_results(c->stmt) ? MY_NEXT : MY_FREE;
        break;
    case MY_FREE:
        c->stmt = NULL;
        finish_command(c);
        return false;
    default:
        BUG("no such step: %d", (int)c->step);
    }
    if (c->ret != 0)
        my_conn_fail(c);
    return true;
}

// ---- the socket ----

static void on_poll_closed(uv_handle_t *poll)
{
    struct my_conn *c = poll->data;

    free(poll);
    on_my_conn_handle_closed((uv_handle_t *)&c->timer);
}

// Before the connector closes the socket, or the number may be that of another one.
static void drop_poll(struct my_conn *c)
{
    if (c->poll)
        uv_close((uv_handle_t *)c->poll, on_poll_closed);
    c->poll = NULL;
}

static void watch_socket(struct my_conn *c, int wait)
{
    int events = (wait & MYSQL_WAIT_READ ? UV_READABLE : 0) |
                 (wait & MYSQL_WAIT_WRITE ? UV_WRITABLE : 0);

    if (!c->poll) {
        c->poll = mem_new(uv_poll_t);
        int rc = uv_poll_init(c->loop, c->poll, (int)mysql_get_socket(&c->my));
        if (rc != 0)
            BUG("uv_poll_init: %s", uv_strerror(rc)); // a new socket of our own
        c->poll->data = c;
        c->n_handles++;
    }
    uv_poll_start(c->poll, events != 0 ? events : UV_READABLE, on_socket);
    if (wait & MYSQL_WAIT_TIMEOUT)
        uv_timer_start(&c->timer, on_timeout, mysql_get_timeout_value_ms(&c->my), 0);
}

static void resume_command(struct my_conn *c, int ready)
{
    // The connector may close the socket: it must have left epoll before.
    uv_poll_stop(c->poll);
    uv_timer_stop(&c->timer);
    my_conn_run(c, go_on(c, ready));
}

static void on_socket(uv_poll_t *poll, int status, int events)
{
    struct my_conn *c = poll->data;
    int ready = (events & UV_READABLE ? MYSQL_WAIT_READ : 0) |
                (events & UV_WRITABLE ? MYSQL_WAIT_WRITE : 0);

    // The connector keeps all rows in memory, and the server may be hostile.
    if (c->call && !c->doomed && c->max_result_bytes > 0 &&
        net_received((int)mysql_get_socket(&c->my)) - c->received > c->max_result_bytes) {
        c->too_large = true;
        my_conn_abort(c);
    }
    // On an error the connector finds the reason itself.
    resume_command(c, status != 0 ? MYSQL_WAIT_READ | MYSQL_WAIT_WRITE : ready);
}

static void on_timeout(uv_timer_t *timer) { resume_command(timer->data, MYSQL_WAIT_TIMEOUT); }

// ---- calls ----

// MariaDB accepts a time limit with the statement.  MySQL has none for writes and treats it as
// a comment.
static void my_conn_put_text(struct my_conn *c)
{
    unsigned ms = c->call->statement_timeout_ms;

    buf_reset(&c->text);
    if (ms > 0)
        buf_printf(&c->text, "/*M!100101 set statement max_statement_time = %u.%03u for */ ",
                   ms / 1000, ms % 1000);
    buf_put(&c->text, span_of(c->call->statement->text));
}

void my_conn_send(struct my_conn *c, struct my_call *call)
{
    assert(c->step == MY_IDLE && !c->doomed);
    c->call = call;
    c->status = 0;
    c->prepared = false;
    my_conn_put_text(c);
    my_reply_reset(&c->reply);
    call->sent_us = clock_mono_us();
    c->received = net_received((int)mysql_get_socket(&c->my));
    c->stmt = mysql_stmt_init(&c->my);
    if (!c->stmt)
        BUG("no memory for a statement");
    my_conn_begin(c, MY_PREPARE);
}

static void finish_command(struct my_conn *c)
{
    struct my_call *call = c->call;

    c->call = NULL;
    c->step = MY_IDLE;
    c->on->answered(c, call, c->status, &c->reply);
    // c may have been closed.
}

void my_conn_abort(struct my_conn *c)
{
    c->doomed = true;
    shutdown((int)mysql_get_socket(&c->my), SHUT_RDWR); // the step in progress fails
}

void my_conn_close(struct my_conn *c)
{
    assert(!c->call && c->step != MY_CLOSED);
    if (c->step == MY_LOOKUP)
        uv_cancel((uv_req_t *)&c->lookup); // its callback runs anyway and is counted until then
    c->step = MY_CLOSED;
    drop_poll(c);
    if (c->has_my) {
        // Sending COM_QUIT must not wait for a peer that does not read.
        my_socket fd = mysql_get_socket(&c->my);
        if (c->doomed && fd != (my_socket)-1)
            shutdown((int)fd, SHUT_RDWR);
        mysql_close(&c->my);
    }
    uv_close((uv_handle_t *)&c->timer, on_my_conn_handle_closed);
}

static void on_my_conn_handle_closed(uv_handle_t *handle)
{
    struct my_conn *c = handle->data;

    if (--c->n_handles > 0)
        return;
    c->on->closed(c);
    uv_freeaddrinfo(c->found);
    my_reply_deinit(&c->reply);
    buf_free(&c->text);
    free(c);
}
