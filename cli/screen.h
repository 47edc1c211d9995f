// screen.h: a full-screen view that is drawn again in its place.
#ifndef QUEEN_CLI_SCREEN_H
#define QUEEN_CLI_SCREEN_H

#include <stdbool.h>

#include "base/span.h"

struct screen {
    unsigned columns, rows; // as of the last frame
};

void screen_open(struct screen *s);  // the terminal's other page; keys come without Enter
void screen_close(struct screen *s); // everything as it was
// lines: text with line breaks; what does not fit is left out.
void screen_draw(struct screen *s, span lines);
// Waits so long for a key; 0: none came.  Ends early when a signal asked for the end.
char screen_key(unsigned ms);

#endif
