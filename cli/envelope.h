// envelope.h: parses whole messages, as written by pop, tail and export, to be pushed again.
#ifndef QUEEN_CLI_ENVELOPE_H
#define QUEEN_CLI_ENVELOPE_H

#include <queen/message.h>

#include "base/arena.h"
#include "base/span.h"

// Fills payload, partition and correlation id (unless they are set) and the ids of m. The
// payload is borrowed from value, the rest lives in the arena. false: value has neither "data"
// nor "payload".
bool envelope_read(struct queen_message *m, span value, struct arena *a);

#endif
