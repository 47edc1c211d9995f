// reader.c: waits for the error condition that a pipe reports when its reader closes it.
#include "cli/reader.h"

#include <poll.h>
#include <pthread.h>
#include <stdint.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/err.h"

static pthread_t watcher;
static int ended = -1; // eventfd
static void (*on_gone)(void *ctx);
static void *on_gone_ctx;

static void *reader_wait(void *unused)
{
    // No events are requested: only errors and hang-ups are reported.
    struct pollfd fds[] = {{.fd = STDOUT_FILENO}, {.fd = ended, .events = POLLIN}};

    (void)unused;
    while (poll(fds, 2, -1) < 0)
        ; // EINTR
    if (fds[0].revents & (POLLERR | POLLHUP))
        on_gone(on_gone_ctx);
    return NULL;
}

void reader_watch(void (*gone)(void *ctx), void *ctx)
{
    on_gone = gone;
    on_gone_ctx = ctx;
    ended = eventfd(0, EFD_CLOEXEC);
    if (ended < 0 || pthread_create(&watcher, NULL, reader_wait, NULL) != 0)
        BUG("no thread for the reader of the output");
}

void reader_unwatch(void)
{
    uint64_t one = 1;

    if (write(ended, &one, sizeof one) != (ssize_t)sizeof one)
        BUG("the thread for the reader of the output cannot be ended");
    pthread_join(watcher, NULL);
    close(ended);
    ended = -1;
}
