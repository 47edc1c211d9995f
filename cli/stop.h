// stop.h: an orderly end on SIGINT, SIGTERM and SIGHUP.
#ifndef QUEEN_CLI_STOP_H
#define QUEEN_CLI_STOP_H

#include <stdbool.h>

// From now on the first signal calls asked(ctx, may be NULL) once, on a thread of its own. A
// signal more than a second later ends the process at once. One watch at a time.
void stop_watch(void (*asked)(void *ctx), void *ctx);
void stop_unwatch(void); // asked() has returned or will not run; signals end the process again
bool stop_was_asked(void);
void stop_sleep(unsigned ms); // or until a signal arrives

#endif
