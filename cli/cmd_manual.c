// `queen manual`: the commands as scdoc, for docs/reference/man/queen-commands.1.scd (make
// docs).
#include <stdio.h>

#include "base/attrs.h"
#include "cli/cli.h"
#include "cli/common.h"
#include "cli/help.h"

// Escapes characters that are special in scdoc.
static void manual_put_escaped(const char *text, int len)
{
    for (int i = 0; i < len && text[i]; i++) {
        if (text[i] == '_' || text[i] == '*' || text[i] == '\\' || text[i] == '<' ||
            text[i] == '#')
            putchar('\\');
        putchar(text[i]);
    }
}

static void put_manual_text(const char *text) { manual_put_escaped(text, 1 << 20); }

static void put_option(const struct cli_option *o)
{
    if (o->letter)
        printf("*-%c*, ", o->letter);
    printf("*--%s*", o->name);
    if (o->value) {
        fputs(" _", stdout);
        fputs(o->value, stdout);
        fputs("_", stdout);
    }
    fputs("\n\t", stdout);
    put_manual_text(o->help);
    fputs("\n\n", stdout);
}

static void put_example(const char *command, int command_len, const char *what, int what_len,
                        void *ctx)
{
    (void)ctx;
    putchar('\t');
    manual_put_escaped(command, command_len);
    fputs("++\n\t", stdout);
    manual_put_escaped(what, what_len);
    fputs("\n\n", stdout);
}

static void put_command(const char *parent, const struct cli_command *c)
{
    printf("## queen %s%s%s ", parent ? parent : "", parent ? " " : "", c->name);
    put_manual_text(c->args);
    fputs("\n\n", stdout);
    put_manual_text(c->summary);
    fputs(".\n\n", stdout);
    if (c->about) {
        put_manual_text(c->about);
        fputs("\n\n", stdout);
    }
    for (size_t i = 0; i < c->n_options; i++)
        put_option(&c->options[i]);
    help_each_example(c->examples, put_example, NULL);
}

static int manual(struct cli *cli)
{
    static const struct cli_command online = {0};
    const struct cli_option *common;
    size_t n;
    (void)cli;

    puts("queen-commands(1)\n\n# NAME\n\nqueen-commands - the commands of queen that talk to a "
         "server\n\n# DESCRIPTION\n\nWritten by *queen manual* from the table that --help is "
         "made of.\n\n# COMMANDS\n");
    for (unsigned i = 0; cli_commands[i]; i++) {
        const struct cli_command *c = cli_commands[i];
        if (c->run_raw)
            continue; // has a page of its own
        if (!c->subs)
            put_command(NULL, c);
        for (unsigned k = 0; c->subs && c->subs[k]; k++)
            put_command(c->name, c->subs[k]);
    }
    puts("# OPTIONS OF ALL COMMANDS\n");
    common_options(&online, &common, &n);
    for (size_t i = 0; i < n; i++)
        put_option(&common[i]);
    puts("# EXIT STATUS\n\n"
         "*0*\n\tDone.\n\n*1*\n\tInvalid command line; nothing was changed.\n\n"
         "*2*\n\tNo server could be reached, or there was no answer in time.\n\n"
         "*3*\n\tRefused by the server, or some of many messages were.\n\n"
         "*4*\n\tNot found, or no message available.\n\n"
         "*5*\n\tThe server failed, or a local file could not be read or written.\n\n"
         "# SEE ALSO\n\n*queen*(1), *queen-serve*(8), *queen-bench*(1)");
    return CLI_OK;
}

const struct cli_command cli_manual = {
    .name = "manual",
    .args = "",
    .summary = "print the manual page of all commands, as scdoc",
    .examples = "queen manual | scdoc > queen-commands.1|make the page",
    .offline = true,
    .run = manual,
};
