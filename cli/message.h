// message.h: delivered messages, as people and as programs read them.
#ifndef QUEEN_CLI_MESSAGE_H
#define QUEEN_CLI_MESSAGE_H

#include <queen/message.h>

#include "base/buf.h"
#include "base/span.h"

struct cli;

// One message of a pop, the server's own JSON: a line of JSON, or of time, partition, id and
// payload; with data_only the payload alone.
void message_show(struct cli *cli, span object, bool data_only);

// A delivery of the library in the shape of the server's JSON.
void message_write(struct buf *b, const struct queen_delivery *d);

#endif
