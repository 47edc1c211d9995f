// progress.h: progress of a long command, in one line that is redrawn in place.
#ifndef QUEEN_CLI_PROGRESS_H
#define QUEEN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct out;

struct progress {
    uint64_t total; // unit of the bar's scale; 0: unknown, no bar
    bool shown;
    uint64_t begin_us, drawn_us;
};

// Shown on stderr if that is a terminal, unless quiet.
void progress_begin(struct progress *p, const struct out *o, uint64_t total);
// done: of total; messages: for the rate.  Draws at most ten times a second.
void progress_update(struct progress *p, uint64_t done, uint64_t messages);
void progress_end(struct progress *p, uint64_t done, uint64_t messages); // keeps the last line

#endif
