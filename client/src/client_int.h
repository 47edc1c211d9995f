// client_int.h: what a client is made of; for this folder only.
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
    struct pool *pools; // one for each server
    struct token token;
    struct ssl_ctx_st *tls; // NULL: no server needs it

    uv_loop_t *loop;
    bool has_thread;
    pthread_t thread;
    uv_loop_t own_loop;
    struct mailbox mailbox;
    struct mailbox_item stop; // to the own thread
    pthread_mutex_t late_lock;
    struct mailbox_queue late; // came after the mailbox had closed

    TAILQ_HEAD(, call) calls; // begun and not done
    unsigned n_draining;      // pools with links, while closing
    bool closing, pools_closed, mailbox_closed;
    void (*closed)(void *ctx);
    void *closed_ctx;
};

// May this thread touch what belongs to the loop?
bool client_is_here(const struct queen_client *c);
// May it wait for the loop?  QUEEN_E_MISUSE if not.
int client_may_block(const struct queen_client *c, struct queen_error *err);
// Into the mailbox.  Items that come when the own thread is about to end are delivered by the
// thread that runs queen_client_free(): none is lost, and none is delivered from in here.
void client_post(struct queen_client *c, struct mailbox_item *item);
// Sends what closes something to the loop, and blocks until the loop has set *closed, with the
// lock, and told so, and until *n_inside threads have left.  If the client is closed there is
// nobody to wait for.
void client_await_close(struct queen_client *c, struct mailbox_item *close,
                        pthread_mutex_t *lock, pthread_cond_t *changed, bool *closed,
                        const unsigned *n_inside);
// Closes all connections that are idle; those in use end with their calls.
void client_drop_links(struct queen_client *c);
// Long polls that one server is sent at the same time, at most.
unsigned client_max_parked(const struct queen_client *c);
// A call is done; a closing client may go on.
void client_call_gone(struct queen_client *c);

#endif
