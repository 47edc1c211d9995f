// envelope.h: whole messages, as pop, tail and export write them, to be pushed again.
#ifndef QUEEN_CLI_ENVELOPE_H
#define QUEEN_CLI_ENVELOPE_H

#include <queen/message.h>

#include "base/arena.h"
#include "base/span.h"

// Fills payload, partition and correlation id (unless they are set) and the ids of m; the
// payload is borrowed from value, the rest lives in the arena.  false: value holds neither
// "data" nor "payload".
bool envelope_read(struct queen_message *m, span value, struct arena *a);

#endif
