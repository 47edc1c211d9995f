// cli.h: a command of the program `queen` is a descriptor.
#ifndef QUEEN_CLI_CLI_H
#define QUEEN_CLI_CLI_H

struct cli_command {
    const char *name;
    const char *usage;   // what follows the name: "[options]"
    const char *summary; // one line
    // argv[0] is the command's name.  Must know --help.  Returns the program's exit code.
    int (*run)(int argc, char **argv);
};

enum { CLI_OK = 0, CLI_USAGE = 1 };

extern const struct cli_command cli_serve; // serve.c

#endif
