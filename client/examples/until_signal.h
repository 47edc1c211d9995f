// until_signal.h: for programs that work on other threads until a signal ends them.
#ifndef EXAMPLES_UNTIL_SIGNAL_H
#define EXAMPLES_UNTIL_SIGNAL_H

#include <signal.h>
#include <stddef.h>

// Call this before any thread is started, so that no thread is interrupted by these signals.
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
