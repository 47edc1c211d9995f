// cli.h: a command of the program `queen` is a descriptor.
//
// Commands form a tree of two levels (`queue`, `queue ls`).  Everything that is said about a
// command (parsing, --help, completion, man pages) comes from its descriptor.
#ifndef QUEEN_CLI_CLI_H
#define QUEEN_CLI_CLI_H

#include "base/arena.h"
#include "cli/args.h"
#include "cli/out.h"

struct queen_client;

// What a script can rely on; docs/reference/cli.md has the table for people.
enum cli_exit {
    CLI_OK = 0,
    CLI_USAGE = 1,       // the command line is wrong; nothing was asked of anybody
    CLI_UNREACHABLE = 2, // no server could be reached, or it did not answer in time
    CLI_REFUSED = 3,     // the server said no: 4xx, or single messages of many
    CLI_NOTHING = 4,     // it is not there: 404, or nothing to pop
    CLI_FAILED = 5,      // the server failed (5xx), or a file here
};

struct cli;

struct cli_command {
    const char *name;
    const char *args;     // "QUEUE [PAYLOAD...]"; says also how many there may be
    const char *summary;  // one line, lower case, no full stop
    const char *about;    // paragraphs for --help and the manual; may be NULL
    const char *examples; // lines "command|what it does"; may be NULL
    const struct cli_option *options;
    size_t n_options;
    bool offline;  // talks to no server: knows no --url and the like
    bool platform; // talks to a platform (PLATFORM_URL), not to a broker

    int (*run)(struct cli *cli);
    int (*run_raw)(int argc, char **argv); // instead: reads its own options, --help among them
    const struct cli_command *const *subs; // instead: commands below, NULL at the end
};

#define CLI_OPTIONS(table) .options = (table), .n_options = countof(table)

// A command that runs.
struct cli {
    const struct cli_command *command;
    const char *parent; // name of the command above, or NULL
    struct args args;
    struct out out;
    struct arena arena; // for as long as the command runs
    struct queen_client *client;
};

extern const struct cli_command *const cli_commands[]; // main.c; NULL at the end

extern const struct cli_command cli_serve;
extern const struct cli_command cli_platform;
extern const struct cli_command cli_tenant, cli_pools;
extern const struct cli_command cli_context;
extern const struct cli_command cli_push;
extern const struct cli_command cli_pop;
extern const struct cli_command cli_tail;
extern const struct cli_command cli_ack;
extern const struct cli_command cli_queue;
extern const struct cli_command cli_group;
extern const struct cli_command cli_partition;
extern const struct cli_command cli_dlq;
extern const struct cli_command cli_schedule;
extern const struct cli_command cli_refresh;
extern const struct cli_command cli_segment;
extern const struct cli_command cli_cron;
extern const struct cli_command cli_timeline;
extern const struct cli_command cli_owners;
extern const struct cli_command cli_export;
extern const struct cli_command cli_import;
extern const struct cli_command cli_top;
extern const struct cli_command cli_doctor;
extern const struct cli_command cli_completion;
extern const struct cli_command cli_manual;

#endif
