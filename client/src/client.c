// client.c: the client handle: options, thread, requests, closing.
#include "client_int.h"

#include <ctype.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/id.h"
#include "base/mem.h"
#include "call_int.h"
#include "fail.h"
#include "tls.h"

enum {
    DEFAULT_REQUEST_TIMEOUT_MS = 30000,
    DEFAULT_CONNECT_TIMEOUT_MS = 5000,
    DEFAULT_ATTEMPTS = 3,
    DEFAULT_RETRY_DELAY_MS = 1000,
    DEFAULT_UNHEALTHY_MS = 5000,
    DEFAULT_MAX_CONNECTIONS = 256,
    DEFAULT_MAX_RESPONSE = 256 << 20,
};

static int open_parts(struct queen_client *c, const struct queen_options *o,
                      struct queen_error *err);
static void open_pools(struct queen_client *c, const struct queen_options *o);
static int start_thread(struct queen_client *c, struct queen_error *err);
static void *run_thread(void *arg);
static void begin_close(struct queen_client *c);
static void close_pools_if_quiet(struct queen_client *c);
static void on_pool_drained(void *ctx);
static void on_mailbox_closed(void *ctx);
static void end_if_quiet(struct queen_client *c);
static void client_dispose(struct queen_client *c);

const char *queen_version(void) { return QUEEN_VERSION; }

static unsigned or_default(unsigned value, unsigned otherwise)
{
    return value > 0 ? value : otherwise;
}

struct queen_client *queen_client_new(const struct queen_options *o, struct queen_error *err)
{
    struct queen_client *c = mem_new(struct queen_client);
    const char *agent = o->user_agent ? o->user_agent : "libqueenclient/" QUEEN_VERSION;

    TAILQ_INIT(&c->calls);
    STAILQ_INIT(&c->late);
    pthread_mutex_init(&c->late_lock, NULL);
    c->conf = (struct client_conf){
        .request_timeout_ms = or_default(o->request_timeout_ms, DEFAULT_REQUEST_TIMEOUT_MS),
        .attempts = or_default(o->attempts, DEFAULT_ATTEMPTS),
        .retry_delay_ms = or_default(o->retry_delay_ms, DEFAULT_RETRY_DELAY_MS),
        .compress = o->compress,
        .user_agent = mem_strndup(agent, strlen(agent)),
    };
    if (open_parts(c, o, err) != 0) {
        client_dispose(c);
        return NULL;
    }
    c->has_thread = !o->loop;
    c->loop = o->loop ? o->loop : &c->own_loop;
    if (c->has_thread && uv_loop_init(c->loop) != 0) {
        fail_set(err, QUEEN_E_MEMORY, "cannot create an event loop");
        client_dispose(c);
        return NULL;
    }
    if (mailbox_open(&c->mailbox, c->loop) != 0) {
        fail_set(err, QUEEN_E_MEMORY, "cannot create an event loop");
        if (c->has_thread)
            uv_loop_close(c->loop);
        client_dispose(c);
        return NULL;
    }
    open_pools(c, o);
    if (c->has_thread && start_thread(c, err) != 0)
        return NULL;
    return c;
}

static bool needs_tls(const struct servers *s)
{
    for (unsigned i = 0; i < s->n; i++)
        if (s->list[i].address.tls)
            return true;
    return false;
}

static int open_parts(struct queen_client *c, const struct queen_options *o,
                      struct queen_error *err)
{
    if (!o->url)
        return fail_set(err, QUEEN_E_ARGUMENT, "url is missing");
    if (!request_is_line(o->user_agent))
        return fail_set(err, QUEEN_E_ARGUMENT, "user_agent has a control character");
    int rc = servers_init(&c->servers, o->url, o->strategy,
                          or_default(o->unhealthy_ms, DEFAULT_UNHEALTHY_MS), err);
    if (rc != 0) {
        c->servers = (struct servers){0};
        return rc;
    }
    rc = token_init(&c->token, o->token, o->token_file, err);
    if (rc == 0 && needs_tls(&c->servers)) {
        c->tls = tls_context_new(o->ca_file, o->fingerprint, o->insecure, err);
        rc = c->tls ? 0 : QUEEN_E_ARGUMENT;
    }
    return rc;
}

static void open_pools(struct queen_client *c, const struct queen_options *o)
{
    c->pools = mem_new_array(struct pool, c->servers.n);
    for (unsigned i = 0; i < c->servers.n; i++) {
        struct server_conn_conf conf = {
            .loop = c->loop,
            .address = &c->servers.list[i].address,
            .tls = c->tls,
            .insecure = o->insecure,
            .connect_timeout_ms = or_default(o->connect_timeout_ms, DEFAULT_CONNECT_TIMEOUT_MS),
            .max_response_bytes =
                o->max_response_bytes > 0 ? o->max_response_bytes : DEFAULT_MAX_RESPONSE,
        };
        pool_init(&c->pools[i], &conf, or_default(o->max_connections, DEFAULT_MAX_CONNECTIONS),
                  on_pool_drained, c);
    }
}

unsigned client_max_parked(const struct queen_client *c) { return c->pools[0].max_parked; }

// Signals belong to the program: block all of them in our thread.
static int start_thread(struct queen_client *c, struct queen_error *err)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int rc = pthread_create(&c->thread, NULL, run_thread, c);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (rc == 0)
        return 0;
    fail_set(err, QUEEN_E_MEMORY, "cannot create a thread: %s", strerror(rc));
    mailbox_close(&c->mailbox, NULL, NULL);
    run_thread(c);
    client_dispose(c);
    return QUEEN_E_MEMORY;
}

static void *run_thread(void *arg)
{
    struct queen_client *c = arg;

    uv_run(c->loop, UV_RUN_DEFAULT);
    return NULL;
}

bool client_is_here(const struct queen_client *c)
{
    return !c->has_thread || pthread_equal(pthread_self(), c->thread);
}

int client_may_block(const struct queen_client *c, struct queen_error *err)
{
    if (!client_is_here(c))
        return 0;
    return fail_set(
        err, QUEEN_E_MISUSE,
        "a blocking call on the thread of the loop; use the one that ends in _start");
}

void client_post(struct queen_client *c, struct mailbox_item *item)
{
    if (mailbox_post(&c->mailbox, item) == 0)
        return;
    pthread_mutex_lock(&c->late_lock);
    STAILQ_INSERT_TAIL(&c->late, item, link);
    pthread_mutex_unlock(&c->late_lock);
}

static struct mailbox_item *take_late(struct queen_client *c)
{
    pthread_mutex_lock(&c->late_lock);
    struct mailbox_item *item = STAILQ_FIRST(&c->late);
    if (item)
        STAILQ_REMOVE_HEAD(&c->late, link);
    pthread_mutex_unlock(&c->late_lock);
    return item;
}

void client_await_close(struct queen_client *c, struct mailbox_item *close,
                        pthread_mutex_t *lock, pthread_cond_t *changed, bool *closed,
                        const unsigned *n_inside)
{
    pthread_mutex_lock(lock);
    if (mailbox_post(&c->mailbox, close) != 0)
        *closed = true;
    while (!*closed || *n_inside > 0)
        pthread_cond_wait(changed, lock);
    pthread_mutex_unlock(lock);
}

// ---- requests ----

void queen_request_start(struct queen_client *c, const struct queen_request *req,
                         queen_response_cb done, void *ctx)
{
    call_submit(call_new(c, req, done, ctx));
}

struct waiter {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool is_done;
    struct queen_response *response;
    struct queen_error err;
};

static void on_waited(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct waiter *w = ctx;

    pthread_mutex_lock(&w->lock);
    w->response = r;
    w->err = *err;
    w->is_done = true;
    pthread_cond_signal(&w->changed);
    pthread_mutex_unlock(&w->lock);
}

struct queen_response *queen_request(struct queen_client *c, const struct queen_request *req,
                                     struct queen_error *err)
{
    struct waiter w = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

    if (client_may_block(c, err) != 0)
        return NULL;
    queen_request_start(c, req, on_waited, &w);
    pthread_mutex_lock(&w.lock);
    while (!w.is_done)
        pthread_cond_wait(&w.changed, &w.lock);
    pthread_mutex_unlock(&w.lock);
    pthread_cond_destroy(&w.changed);
    pthread_mutex_destroy(&w.lock);
    if (err)
        *err = w.err;
    return w.response;
}

// ---- closing: calls first, then connections, then the mailbox ----

static void on_client_stop(struct mailbox_item *item)
{
    begin_close(container_of(item, struct queen_client, stop));
}

void queen_client_free(struct queen_client *c)
{
    struct mailbox_item *item;

    if (!c || client_may_block(c, NULL) != 0)
        return;
    c->stop.deliver = on_client_stop;
    // Cannot fail: only we close the mailbox.
    if (mailbox_post(&c->mailbox, &c->stop) != 0)
        return;
    pthread_join(c->thread, NULL);
    c->thread = pthread_self();
    while ((item = take_late(c))) { // the loop belongs to this thread now
        item->deliver(item);
        run_thread(c);
    }
    client_dispose(c);
}

void queen_client_close(struct queen_client *c, void (*closed)(void *ctx), void *ctx)
{
    c->closed = closed;
    c->closed_ctx = ctx;
    begin_close(c);
}

static void begin_close(struct queen_client *c)
{
    struct call *call, *next;

    c->closing = true;
    for (call = TAILQ_FIRST(&c->calls); call; call = next) {
        next = call_next(call);
        call_cancel(call);
    }
    close_pools_if_quiet(c);
}

void client_call_gone(struct queen_client *c)
{
    if (c->mailbox_closed)
        end_if_quiet(c);
    else if (c->closing)
        close_pools_if_quiet(c);
}

void client_drop_conns(struct queen_client *c)
{
    for (unsigned i = 0; i < c->servers.n; i++)
        pool_drop_idle(&c->pools[i]);
}

static void close_pools_if_quiet(struct queen_client *c)
{
    if (c->pools_closed || !TAILQ_EMPTY(&c->calls))
        return;
    c->pools_closed = true;
    c->n_draining = 1; // one reference of our own, until all pools are closing
    for (unsigned i = 0; i < c->servers.n; i++) {
        c->n_draining += c->pools[i].n_conns > 0;
        pool_close(&c->pools[i]);
    }
    on_pool_drained(c);
}

static void on_pool_drained(void *ctx)
{
    struct queen_client *c = ctx;

    if (--c->n_draining == 0)
        mailbox_close(&c->mailbox, on_mailbox_closed, c);
}

static void on_mailbox_closed(void *ctx)
{
    struct queen_client *c = ctx;

    c->mailbox_closed = true;
    end_if_quiet(c);
}

// A client with its own thread ends the loop here, and queen_client_free() continues.
// Callbacks may have started more calls until now.
static void end_if_quiet(struct queen_client *c)
{
    if (c->has_thread || !TAILQ_EMPTY(&c->calls))
        return;
    void (*closed)(void *) = c->closed;
    void *closed_ctx = c->closed_ctx;
    client_dispose(c);
    if (closed)
        closed(closed_ctx);
}

static void client_dispose(struct queen_client *c)
{
    if (c->pools) { // the loop was opened
        mailbox_deinit(&c->mailbox);
        if (c->has_thread)
            uv_loop_close(c->loop);
    }
    if (c->servers.list)
        servers_deinit(&c->servers);
    token_deinit(&c->token);
    tls_context_free(c->tls);
    pthread_mutex_destroy(&c->late_lock);
    free(c->conf.user_agent);
    free(c->pools);
    free(c);
}

// ---- small things ----

char *queen_escape(const char *text)
{
    static const char hex[] = "0123456789ABCDEF";
    struct buf out = {0};

    for (; *text; text++) {
        unsigned char ch = (unsigned char)*text;
        if ((ch < 128 && isalnum(ch)) || strchr("-._~", ch)) {
            buf_putc(&out, (char)ch);
        } else {
            buf_putc(&out, '%');
            buf_putc(&out, hex[ch >> 4]);
            buf_putc(&out, hex[ch & 15]);
        }
    }
    buf_putc(&out, '\0');
    return out.ptr;
}

void queen_new_id(char out[37])
{
    uint8_t id[16];

    id_uuid7(id);
    id_format_uuid(id, out);
    out[36] = '\0';
}
