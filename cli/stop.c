// stop.c: an orderly end on a signal: the handler wakes a thread, which does the work.
#include "cli/stop.h"

#include <errno.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>
#include <time.h>

#include "base/attrs.h"
#include "base/err.h"

static const int signals[] = {SIGINT, SIGTERM, SIGHUP};
static sem_t wake;
static atomic_bool asked_by_signal;
static volatile time_t first_at;
static pthread_t watcher;
static void (*on_asked)(void *ctx);
static void *on_asked_ctx;

static void on_signal(int number)
{
    int saved = errno;
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    if (!atomic_exchange(&asked_by_signal, true)) {
        first_at = now.tv_sec;
        sem_post(&wake);
    } else if (now.tv_sec >
               first_at +
                   1) { // two signals at the same moment count as one: timeout(1) sends two
        signal(number, SIG_DFL);
        raise(number);
    }
    errno = saved;
}

static void *stop_watch_signals(void *ctx)
{
    (void)ctx;
    while (sem_wait(&wake) != 0)
        ; // EINTR
    if (atomic_load(&asked_by_signal) && on_asked)
        on_asked(on_asked_ctx);
    return NULL;
}

void stop_watch(void (*asked)(void *ctx), void *ctx)
{
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};

    on_asked = asked;
    on_asked_ctx = ctx;
    sem_init(&wake, 0, 0);
    if (pthread_create(&watcher, NULL, stop_watch_signals, NULL) != 0)
        BUG("no thread for signals");
    for (unsigned i = 0; i < countof(signals); i++)
        sigaction(signals[i], &action, NULL);
}

void stop_unwatch(void)
{
    // After the first signal, a second one of the same moment may still be pending.
    for (unsigned i = 0; i < countof(signals) && !stop_was_asked(); i++)
        signal(signals[i], SIG_DFL);
    sem_post(&wake); // in case no signal did
    pthread_join(watcher, NULL);
    sem_destroy(&wake);
}

bool stop_was_asked(void) { return atomic_load(&asked_by_signal); }

// In small steps: the signal may be delivered to another thread, and this one would not wake.
void stop_sleep(unsigned ms)
{
    for (unsigned slept = 0; slept < ms && !stop_was_asked(); slept += 50)
        nanosleep(&(struct timespec){.tv_nsec = 50000000}, NULL);
}
