// message.h: formats delivered messages for people and programs.
#ifndef QUEEN_CLI_MESSAGE_H
#define QUEEN_CLI_MESSAGE_H

#include <queen/message.h>

#include "base/buf.h"
#include "base/span.h"

struct cli;

// Prints one message of a pop, in the server's JSON: as a line of JSON, or as time, partition,
// id and payload; with data_only the payload alone.
void message_show(struct cli *cli, span object, bool data_only);

// Writes a delivery of the library as the server's JSON.
void message_write(struct buf *b, const struct queen_delivery *d);

#endif
