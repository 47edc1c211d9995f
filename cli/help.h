// help.h: prints help from the descriptors of commands.
#ifndef QUEEN_CLI_HELP_H
#define QUEEN_CLI_HELP_H

#include <stdio.h>

struct cli_command;

void help_list(FILE *to);                                                     // all commands
void help_command(FILE *to, const char *parent, const struct cli_command *c); // one of them

// Called for each line of cli_command.examples (may be NULL): the command and its description.
typedef void (*help_example_cb)(const char *command, int command_len, const char *what,
                                int what_len, void *ctx);
void help_each_example(const char *examples, help_example_cb each, void *ctx);

#endif
