// out.h: output of a command: format, colours, errors.
//
// On a terminal a command prints tables and colours; a pipe gets one JSON object per line,
// exactly as the server sent it. Results go to stdout, everything else to stderr.
#ifndef QUEEN_CLI_OUT_H
#define QUEEN_CLI_OUT_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/span.h"

struct out {
    bool json;      // NDJSON instead of tables
    bool colour;    // stdout supports it
    bool quiet;     // no notes
    unsigned width; // columns of the terminal; 0: no terminal, nothing is cut
};

enum out_style { OUT_PLAIN, OUT_BOLD, OUT_DIM, OUT_GREEN, OUT_YELLOW, OUT_RED, OUT_CYAN };

// json, table: the requested format; with neither it depends on stdout. NO_COLOR and TERM=dumb
// count as no_colour.
struct out out_init(bool json, bool table, bool no_colour, bool quiet);

// Prints one JSON object as one line. Line breaks in it (only possible as white space) become
// spaces.
void out_line(span raw);
// Prints a confirmation: on a terminal to stdout, else to stderr; not when quiet.
void out_note(const struct out *o, const char *fmt, ...) PRINTF_LIKE(2, 3);
// Escape sequences that start and end a style; "" without colour.
const char *out_on(const struct out *o, enum out_style style);
const char *out_off(const struct out *o);

// Flushes the output. Returns 0, or an exit code after printing the error. A closed pipe
// (EPIPE) is the normal end and not an error.
int out_finish(void);
// Whether stdout can no longer be written (closed pipe, full disk). For long-running commands.
bool out_is_broken(void);

#endif
