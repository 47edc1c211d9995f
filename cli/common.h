// common.h: options that all commands share.
#ifndef QUEEN_CLI_COMMON_H
#define QUEEN_CLI_COMMON_H

#include <stddef.h>

#include "cli/args.h"

struct cli_command;

// The options of a command: all, or without those for servers if it uses none.
void common_options(const struct cli_command *c, const struct cli_option **table, size_t *n);

#endif
