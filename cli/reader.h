// reader.h: notices that the reader of our standard output has gone, also while nothing is
// written.
#ifndef QUEEN_CLI_READER_H
#define QUEEN_CLI_READER_H

// Calls gone(ctx) once, on a thread of its own, when the other end of the pipe, socket or
// terminal is closed. Never for a file. One watch at a time.
void reader_watch(void (*gone)(void *ctx), void *ctx);
void reader_unwatch(void); // gone() has returned or will not run

#endif
