// signals.c: signals as events of the main loop.
#include "net/signals.h"

#include <signal.h>
#include <stdbool.h>

#include "base/err.h"

static const int watched[SIGNALS_N] = {SIGTERM, SIGINT, SIGHUP, SIGUSR1};

static void on_signal(uv_signal_t *handle, int signum);
static void on_signals_handle_closed(uv_handle_t *handle);

// nohup(1) and some shells ignore HUP on purpose; keep it ignored.
static bool is_ignored(int signum)
{
    struct sigaction now;

    return sigaction(signum, NULL, &now) == 0 && now.sa_handler == SIG_IGN;
}

int signals_open(struct signals *s, uv_loop_t *loop, void (*on_stop)(void *ctx, int signum),
                 void (*on_dump)(void *ctx), void *ctx)
{
    *s = (struct signals){.on_stop = on_stop, .on_dump = on_dump, .ctx = ctx};
    signal(SIGPIPE, SIG_IGN);
    for (unsigned i = 0; i < SIGNALS_N; i++) {
        if (watched[i] == SIGHUP && is_ignored(SIGHUP))
            continue;
        uv_signal_t *handle = &s->handle[s->n_open];
        int rc = uv_signal_init(loop, handle);
        if (rc != 0)
            return rc;
        handle->data = s;
        s->n_open++;
        rc = uv_signal_start(handle, on_signal, watched[i]);
        if (rc != 0)
            return rc;
    }
    return 0;
}

static void on_signal(uv_signal_t *handle, int signum)
{
    struct signals *s = handle->data;

    if (signum == SIGHUP && s->on_reload)
        s->on_reload(s->ctx);
    else if (signum == SIGUSR1)
        s->on_dump(s->ctx);
    else
        s->on_stop(s->ctx, signum);
}

void signals_close(struct signals *s, void (*closed)(void *ctx))
{
    s->closed = closed;
    for (unsigned i = 0, n = s->n_open; i < n; i++)
        uv_close((uv_handle_t *)&s->handle[i], on_signals_handle_closed);
}

static void on_signals_handle_closed(uv_handle_t *handle)
{
    struct signals *s = handle->data;

    if (--s->n_open == 0 && s->closed)
        s->closed(s->ctx);
}
