// main.c: the program `queen`: finds a command in the table and runs it.
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <queen/client.h>

#include "base/attrs.h"
#include "base/span.h"
#include "base/str.h"
#include "bench/load/bench.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/commit.h"
#include "cli/common.h"
#include "cli/help.h"

static int show_version(struct cli *cli);
static int show_help(int argc, char **argv);

static const struct cli_command cli_bench_command = {
    .name = "bench",
    .args = "",
    .summary = "generate load and check that every message arrives once, in order",
    .run_raw = cli_bench,
};

static const struct cli_command cli_version = {
    .name = "version",
    .args = "",
    .summary = "print the version",
    .examples = "queen version|of this program",
    .offline = true,
    .run = show_version,
};

static const struct cli_command cli_help = {
    .name = "help",
    .args = "[COMMAND]...",
    .summary = "explain a command",
    .offline = true,
    .run_raw = show_help,
};

// clang-format off
const struct cli_command *const cli_commands[] = {
    &cli_init,
    &cli_serve,
    &cli_platform,
    &cli_push,
    &cli_pop,
    &cli_tail,
    &cli_ack,
    &cli_queue,
    &cli_partition,
    &cli_group,
    &cli_owners,
    &cli_dlq,
    &cli_timeline,
    &cli_schedule,
    &cli_refresh,
    &cli_segment,
    &cli_campaign,
    &cli_cron,
    &cli_export,
    &cli_import,
    &cli_top,
    &cli_doctor,
    &cli_key,
    &cli_audit,
    &cli_stream,
    &cli_whoami,
    &cli_tenant,
    &cli_pools,
    &cli_context,
    &cli_bench_command,
    &cli_completion,
    &cli_manual,
    &cli_version,
    &cli_help,
    NULL,
};
// clang-format on

static const struct cli_command *cli_find(const struct cli_command *const *in, const char *name)
{
    for (; *in; in++)
        if (strcmp(name, (*in)->name) == 0)
            return *in;
    return NULL;
}

// Suggests the nearest command, if one is similar.
static int complain(const struct cli_command *const *in, const char *parent, const char *name)
{
    const char *nearest = NULL;
    unsigned best = 3; // at a larger distance it is a different word

    for (unsigned i = 0; in[i]; i++) {
        unsigned d = str_distance(span_of(name), span_of(in[i]->name));
        if (d < best) {
            best = d;
            nearest = in[i]->name;
        }
    }
    const char *space = parent ? " " : "";
    parent = parent ? parent : "";
    if (nearest)
        fprintf(stderr, "queen%s%s: no command \"%s\"; did you mean \"%s\"?\n", space, parent,
                name, nearest);
    else
        fprintf(stderr, "queen%s%s: no command \"%s\"; see queen help%s%s\n", space, parent,
                name, space, parent);
    return CLI_USAGE;
}

static bool is_help(const char *word)
{
    return strcmp(word, "--help") == 0 || strcmp(word, "-h") == 0;
}

static int show_version(struct cli *cli)
{
    if (cli->out.json && args_has(&cli->args, "json"))
        printf("{\"version\":\"" QUEEN_VERSION "\",\"commit\":\"%s\"}\n", cli_commit);
    else
        printf("queen " QUEEN_VERSION " (commit %s)\n", cli_commit);
    return CLI_OK;
}

static int show_help(int argc, char **argv)
{
    if (argc > 1 && is_help(argv[1])) {
        help_command(stdout, NULL, &cli_help);
        return CLI_OK;
    }
    if (argc < 2) {
        help_list(stdout);
        return CLI_OK;
    }
    const struct cli_command *c = cli_find(cli_commands, argv[1]);
    if (!c)
        return complain(cli_commands, NULL, argv[1]);
    if (c->run_raw && c != &cli_help) {
        char option[] = "--help";
        char *args[] = {argv[1], option, NULL};
        return c->run_raw(2, args);
    }
    const struct cli_command *sub = c->subs && argc > 2 ? cli_find(c->subs, argv[2]) : NULL;
    if (c->subs && argc > 2 && !sub)
        return complain(c->subs, c->name, argv[2]);
    help_command(stdout, sub ? c->name : NULL, sub ? sub : c);
    return CLI_OK;
}

// argv: the arguments after the name of the command.
static int cli_run(const char *parent, const struct cli_command *c, int argc, char **argv)
{
    struct cli cli = {.command = c, .parent = parent};
    struct fault f;
    int rc;

    cli.args.tables[0] = c->options;
    cli.args.sizes[0] = c->n_options;
    common_options(c, &cli.args.tables[1], &cli.args.sizes[1]);
    if (args_parse(&cli.args, argc, argv, &f) != 0) {
        rc = ask_complain(&cli, CLI_USAGE, "%s; see --help", f.text);
    } else if (args_has(&cli.args, "help")) {
        help_command(stdout, parent, c);
        rc = CLI_OK;
    } else if (args_check_count(&cli.args, c->args, &f) != 0) {
        rc = ask_complain(&cli, CLI_USAGE, "%s; see --help", f.text);
    } else {
        cli.out = out_init(args_has(&cli.args, "json"), args_has(&cli.args, "table"),
                           args_has(&cli.args, "no-color"), args_has(&cli.args, "quiet"));
        arena_init(&cli.arena);
        rc = c->offline ? CLI_OK : ask_connect(&cli);
        if (rc == CLI_OK)
            rc = c->run(&cli);
        if (cli.client)
            queen_client_free(cli.client);
        arena_deinit(&cli.arena);
    }
    int written = out_finish();
    return rc != CLI_OK ? rc : written;
}

static int run_below(const struct cli_command *c, int argc, char **argv)
{
    if (argc < 1) {
        help_command(stderr, NULL, c);
        return CLI_USAGE;
    }
    if (is_help(argv[0])) {
        help_command(stdout, NULL, c);
        return CLI_OK;
    }
    const struct cli_command *sub = cli_find(c->subs, argv[0]);
    return sub ? cli_run(c->name, sub, argc - 1, argv + 1)
               : complain(c->subs, c->name, argv[0]);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        help_list(stderr);
        return CLI_USAGE;
    }
    if (is_help(argv[1]))
        return show_help(1, argv);
    const char *name = strcmp(argv[1], "--version") == 0 ? "version" : argv[1];

    const struct cli_command *c = cli_find(cli_commands, name);
    if (!c)
        return complain(cli_commands, NULL, name);
    if (c->run_raw)
        return c->run_raw(argc - 1, argv + 1);
    // A closed pipe is noticed when writing to it, and ends the command in an orderly way.
    signal(SIGPIPE, SIG_IGN);
    return c->subs ? run_below(c, argc - 2, argv + 2) : cli_run(NULL, c, argc - 2, argv + 2);
}
