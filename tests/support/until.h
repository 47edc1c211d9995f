// until.h: threads of a test wait for one another without sleeping.
//
//      one                              another
//      wait_until(n_told == 3);         n_told++;
//                                       state_changed();
//
// The variables of the condition are atomic, or have a lock of their own. The thread that
// changes them calls state_changed() afterwards.
#ifndef QUEEN_TESTS_UNTIL_H
#define QUEEN_TESTS_UNTIL_H

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

// Weak: all files of one test program share one lock and one condition.
__attribute__((weak)) pthread_mutex_t until_lock = PTHREAD_MUTEX_INITIALIZER;
__attribute__((weak)) pthread_cond_t until_changed = PTHREAD_COND_INITIALIZER;

static inline void state_changed(void)
{
    // Under the lock, so that it cannot fall between a waiter's check and its wait.
    pthread_mutex_lock(&until_lock);
    pthread_cond_broadcast(&until_changed);
    pthread_mutex_unlock(&until_lock);
}

// A condition that takes two minutes will never hold: the test program ends, in any thread.
#define wait_until(condition)                                                                  \
    do {                                                                                       \
        struct timespec until_at;                                                              \
        clock_gettime(CLOCK_REALTIME, &until_at);                                              \
        until_at.tv_sec += 120;                                                                \
        pthread_mutex_lock(&until_lock);                                                       \
        while (!(condition)) {                                                                 \
            if (pthread_cond_timedwait(&until_changed, &until_lock, &until_at) == ETIMEDOUT) { \
                fprintf(stderr, "%s:%d: not within 120 s: %s\n", __FILE__, __LINE__,           \
                        #condition);                                                           \
                abort();                                                                       \
            }                                                                                  \
        }                                                                                      \
        pthread_mutex_unlock(&until_lock);                                                     \
    } while (0)

#endif
