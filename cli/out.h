// out.h: where and how a command shows its result.
//
// On a terminal people get tables and colours; a pipe gets one JSON object per line, exactly
// as the server sent it.  Results go to stdout, everything else to stderr.
#ifndef QUEEN_CLI_OUT_H
#define QUEEN_CLI_OUT_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/span.h"

struct out {
    bool json;      // NDJSON instead of tables
    bool colour;    // stdout takes it
    bool quiet;     // no notes
    unsigned width; // columns of the terminal; 0: no terminal, nothing is cut
};

enum out_style { OUT_PLAIN, OUT_BOLD, OUT_DIM, OUT_GREEN, OUT_YELLOW, OUT_RED, OUT_CYAN };

// json, table: what was asked for; neither: what stdout is.  NO_COLOR and TERM=dumb count as
// no_colour.
struct out out_init(bool json, bool table, bool no_colour, bool quiet);

// Raw JSON of one object as one line.  Line breaks in it (only white space can hold them)
// become spaces.
void out_line(span raw);
// A sentence about what was done: on a terminal to stdout, else to stderr; not when quiet.
void out_note(const struct out *o, const char *fmt, ...) PRINTF_LIKE(2, 3);
// Escape sequences that begin and end a style; "" without colour.
const char *out_on(const struct out *o, enum out_style style);
const char *out_off(const struct out *o);

// Was everything written?  0, or an exit code after saying why not.  A reader that went away
// (EPIPE) is the normal end of a pipe and no error.
int out_finish(void);
// Has the reader of stdout gone, or the disk filled?  For commands that go on for long.
bool out_is_broken(void);

#endif
