// cli.h: a command of the program `queen` is a descriptor.
//
// Commands form a tree of two levels (`queue`, `queue ls`). Parsing, --help, completion and
// the manual pages all come from the descriptors.
#ifndef QUEEN_CLI_CLI_H
#define QUEEN_CLI_CLI_H

#include "base/arena.h"
#include "cli/args.h"
#include "cli/out.h"

struct queen_client;

// Exit codes that scripts can rely on; docs/reference/cli.md documents them.
enum cli_exit {
    CLI_OK = 0,
    CLI_USAGE = 1,       // invalid command line; no request was sent
    CLI_UNREACHABLE = 2, // no server could be reached, or it did not answer in time
    CLI_REFUSED = 3,     // the server refused the request (4xx), or some of several messages
    CLI_NOTHING = 4,     // not found: 404, or nothing to pop
    CLI_FAILED = 5, // the server failed (5xx), or a local file could not be read or written
};

struct cli;

struct cli_command {
    const char *name;
    const char *args;     // "QUEUE [PAYLOAD...]"; also defines their number
    const char *summary;  // one line, lower case, no full stop
    const char *about;    // paragraphs for --help and the manual; may be NULL
    const char *examples; // lines "command|what it does"; may be NULL
    const struct cli_option *options;
    size_t n_options;
    bool offline;  // uses no server: has no --url and related options
    bool platform; // uses a platform (PLATFORM_URL), not a broker

    int (*run)(struct cli *cli);
    int (*run_raw)(int argc, char **argv); // instead: parses its own options, including --help
    const struct cli_command *const *subs; // instead: subcommands, NULL at the end
};

#define CLI_OPTIONS(table) .options = (table), .n_options = countof(table)

// A running command.
struct cli {
    const struct cli_command *command;
    const char *parent; // name of the parent command, or NULL
    struct args args;
    struct out out;
    struct arena arena; // freed after the command
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
extern const struct cli_command cli_campaign;
extern const struct cli_command cli_cron;
extern const struct cli_command cli_timeline;
extern const struct cli_command cli_key;
extern const struct cli_command cli_audit;
extern const struct cli_command cli_stream;
extern const struct cli_command cli_whoami;
extern const struct cli_command cli_init;
extern const struct cli_command cli_owners;
extern const struct cli_command cli_export;
extern const struct cli_command cli_import;
extern const struct cli_command cli_top;
extern const struct cli_command cli_doctor;
extern const struct cli_command cli_completion;
extern const struct cli_command cli_manual;

#endif
