// The program `queen`: a table of commands.
#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "base/span.h"
#include "base/str.h"
#include "cli/bench.h"
#include "cli/cli.h"

static int show_version(int argc, char **argv);
static int show_help(int argc, char **argv);

static const struct cli_command cli_bench_command = {
    .name = "bench",
    .usage = "[options]",
    .summary = "put load on a broker and check that every message arrives once, in order",
    .run = cli_bench,
};

static const struct cli_command cli_version = {
    .name = "version",
    .usage = "",
    .summary = "print the version",
    .run = show_version,
};

static const struct cli_command cli_help = {
    .name = "help",
    .usage = "[command]",
    .summary = "explain a command",
    .run = show_help,
};

static const struct cli_command *const commands[] = {
    &cli_serve,
    &cli_bench_command,
    &cli_version,
    &cli_help,
};

static const struct cli_command *command_find(const char *name)
{
    for (unsigned i = 0; i < countof(commands); i++)
        if (strcmp(name, commands[i]->name) == 0)
            return commands[i];
    return NULL;
}

// Says what the user may have meant, if anything is near.
static int complain(const char *name)
{
    const struct cli_command *nearest = NULL;
    unsigned best = 3; // more mistakes than that are another word

    for (unsigned i = 0; i < countof(commands); i++) {
        unsigned d = str_distance(span_of(name), span_of(commands[i]->name));
        if (d < best) {
            best = d;
            nearest = commands[i];
        }
    }
    if (nearest)
        fprintf(stderr, "queen: no command \"%s\"; did you mean \"%s\"?\n", name,
                nearest->name);
    else
        fprintf(stderr, "queen: no command \"%s\"; see queen help\n", name);
    return CLI_USAGE;
}

static void put_commands(FILE *to)
{
    fputs("usage: queen <command> [options]\n\n", to);
    for (unsigned i = 0; i < countof(commands); i++)
        fprintf(to, "  %-10s %s\n", commands[i]->name, commands[i]->summary);
    fputs("\nqueen help <command> tells more about one.\n", to);
}

static bool asks_for_help(int argc, char **argv)
{
    return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

static int show_usage(const struct cli_command *c)
{
    printf("usage: queen %s%s%s\n\n%s\n", c->name, c->usage[0] ? " " : "", c->usage,
           c->summary);
    return CLI_OK;
}

static int show_version(int argc, char **argv)
{
    if (asks_for_help(argc, argv))
        return show_usage(&cli_version);
    puts("queen " QUEEN_VERSION);
    return CLI_OK;
}

static int show_help(int argc, char **argv)
{
    if (asks_for_help(argc, argv))
        return show_usage(&cli_help);
    if (argc < 2) {
        put_commands(stdout);
        return CLI_OK;
    }
    const struct cli_command *c = command_find(argv[1]);
    if (!c)
        return complain(argv[1]);
    char option[] = "--help";
    char *args[] = {argv[1], option, NULL};
    return c->run(2, args);
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        put_commands(stderr);
        return CLI_USAGE;
    }
    if (asks_for_help(argc, argv))
        return show_help(1, argv);
    if (strcmp(argv[1], "--version") == 0)
        return show_version(1, argv);

    const struct cli_command *c = command_find(argv[1]);
    return c ? c->run(argc - 1, argv + 1) : complain(argv[1]);
}
