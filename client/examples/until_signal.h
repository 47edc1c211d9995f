// until_signal.h: programs that work on other threads until somebody ends them.
#ifndef EXAMPLES_UNTIL_SIGNAL_H
#define EXAMPLES_UNTIL_SIGNAL_H

#include <signal.h>
#include <stddef.h>

// Before any thread is started: then no thread is interrupted by these.
static inline sigset_t hold_signals(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    return signals;
}

static inline void wait_for_signal(const sigset_t *signals)
{
    int number;

    sigwait(signals, &number);
}

#endif
