// client_int.h: the fields of a client; private to this folder.
#ifndef QUEEN_CLIENT_CLIENT_INT_H
#define QUEEN_CLIENT_CLIENT_INT_H

#include <pthread.h>
#include <sys/queue.h>
#include <uv.h>

#include "call.h"
#include "net/mailbox.h"
#include "pool.h"
#include "queen/client.h"
#include "servers.h"
#include "token.h"

struct client_conf {
    unsigned request_timeout_ms;
    unsigned attempts;
    unsigned retry_delay_ms;
    bool compress;
    char *user_agent;
};

struct queen_client {
    struct client_conf conf;
    struct servers servers;
    struct pool *pools; // one per server
    struct token token;
    struct ssl_ctx_st *tls; // NULL: no server needs it

    uv_loop_t *loop;
    bool has_thread;
    pthread_t thread;
    uv_loop_t own_loop;
    struct mailbox mailbox;
    struct mailbox_item stop; // sent to the client's own thread
    pthread_mutex_t late_lock;
    struct mailbox_queue late; // posted after the mailbox was closed

    TAILQ_HEAD(, call) calls; // begun and not done
    unsigned n_draining;      // pools with connections, while closing
    bool closing, pools_closed, mailbox_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// Whether this thread may access the loop's data.
bool client_is_here(const struct queen_client *c);
// QUEEN_E_MISUSE if this thread must not wait for the loop.
int client_may_block(const struct queen_client *c, struct queen_error *err);
// Posts to the mailbox. Items posted while the client's thread is about to end are delivered
// by the thread that runs queen_client_free(): none is lost, and none is delivered from inside
// this function.
void client_post(struct queen_client *c, struct mailbox_item *item);
// Posts `close` to the loop and blocks until the loop has set *closed under the lock and
// signalled it, and until *n_inside threads have left. Returns at once if the client is
// closed.
void client_await_close(struct queen_client *c, struct mailbox_item *close,
                        pthread_mutex_t *lock, pthread_cond_t *changed, bool *closed,
                        const unsigned *n_inside);
// Closes all idle connections; busy ones are closed after their calls.
void client_drop_conns(struct queen_client *c);
// Long polls that one server is sent at the same time, at most.
unsigned client_max_parked(const struct queen_client *c);
// A call has ended; a closing client may continue to close.
void client_call_gone(struct queen_client *c);

#endif
