// screen.h: a full-screen view that is redrawn in place.
#ifndef QUEEN_CLI_SCREEN_H
#define QUEEN_CLI_SCREEN_H

#include <stdbool.h>

#include "base/span.h"

struct screen {
    unsigned columns, rows; // as of the last frame
};

// the terminal's alternate screen; keys are read without Enter
void screen_open(struct screen *s);
void screen_close(struct screen *s); // restores the terminal
// lines: text with line breaks; excess lines and columns are cut off.
void screen_draw(struct screen *s, span lines);
// Waits this long for a key; 0: none. Returns early after a signal.
char screen_key(unsigned ms);

#endif
