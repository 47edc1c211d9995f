// progress.h: how far a long command is, in one line that is drawn again in its place.
#ifndef QUEEN_CLI_PROGRESS_H
#define QUEEN_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct out;

struct progress {
    uint64_t total; // of what the bar measures; 0: not known, no bar
    bool shown;
    uint64_t begin_us, drawn_us;
};

// Shown on stderr when that is a terminal and nobody asked for quiet.
void progress_begin(struct progress *p, const struct out *o, uint64_t total);
// done: of total; messages: for the rate.  Draws at most ten times a second.
void progress_update(struct progress *p, uint64_t done, uint64_t messages);
void progress_end(struct progress *p, uint64_t done, uint64_t messages); // leaves the last line

#endif
