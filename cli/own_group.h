// own_group.h: a consumer group that a command makes for itself, so that nobody else's place in
// a queue changes.
#ifndef QUEEN_CLI_OWN_GROUP_H
#define QUEEN_CLI_OWN_GROUP_H

#include <queen/message.h>

#include "base/attrs.h"

struct cli;

// purpose and a new id; in the arena of the command.
const char *own_group_name(struct cli *cli, const char *purpose);
// Settles a whole batch of at most OWN_GROUP_BATCH messages.  0, or an exit code after saying
// why.  Also for a group of somebody else's.
enum { OWN_GROUP_BATCH = 500 };
MUST_USE int own_group_settle(struct cli *cli, const struct queen_batch *batch,
                              enum queen_ack_status status);
// Removes it.  Whoever may not leaves it to somebody who may, and says so.
void own_group_forget(struct cli *cli, const char *name);

#endif
