// own_group.h: a temporary consumer group of a command, so that other consumers are not
// affected.
#ifndef QUEEN_CLI_OWN_GROUP_H
#define QUEEN_CLI_OWN_GROUP_H

#include <queen/message.h>

#include "base/attrs.h"

struct cli;

// purpose and a new id; in the arena of the command.
const char *own_group_name(struct cli *cli, const char *purpose);
// Settles a whole batch of at most OWN_GROUP_BATCH messages. Returns 0, or an exit code after
// printing the error. Also works for a group named by the user.
enum { OWN_GROUP_BATCH = 500 };
MUST_USE int own_group_settle(struct cli *cli, const struct queen_batch *batch,
                              enum queen_ack_status status);
// Removes the group. Without the permission to do so, it prints a note instead.
void own_group_forget(struct cli *cli, const char *name);

#endif
