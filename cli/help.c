// help.c: prints help from the descriptors of commands.
#include "cli/help.h"

#include <string.h>

#include "base/attrs.h"
#include "base/span.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/common.h"

enum { WIDTH = 80 };

// Prints paragraphs (lines of text), wrapped at spaces.
static void put_wrapped(FILE *to, const char *text, unsigned indent)
{
    span lines = span_of(text), line;

    while (str_split(&lines, '\n', &line)) {
        span words = line, word;
        size_t column = 0;
        while (str_split(&words, ' ', &word)) {
            if (column > 0 && column + 1 + word.len > WIDTH - indent) {
                fputc('\n', to);
                column = 0;
            }
            fprintf(to, "%*s" SPAN_FMT, column == 0 ? (int)indent : 1, "", SPAN_ARG(word));
            column += word.len + (column > 0);
        }
        fputc('\n', to);
    }
}

void help_list(FILE *to)
{
    fputs("usage: queen <command> [options]\n\n", to);
    for (unsigned i = 0; cli_commands[i]; i++)
        fprintf(to, "  %-11s %s\n", cli_commands[i]->name, cli_commands[i]->summary);
    fputs("\nSee queen help <command> for details.\n", to);
}

static void put_subs(FILE *to, const struct cli_command *c)
{
    fprintf(to, "usage: queen %s <command> [options]\n\n%s\n\n", c->name, c->summary);
    for (unsigned i = 0; c->subs[i]; i++)
        fprintf(to, "  %-11s %s\n", c->subs[i]->name, c->subs[i]->summary);
    if (c->about) {
        fputc('\n', to);
        put_wrapped(to, c->about, 0);
    }
    fprintf(to, "\nSee queen help %s <command> for details.\n", c->name);
}

static void put_options(FILE *to, const char *title, const struct cli_option *o, size_t n)
{
    if (n == 0)
        return;
    fprintf(to, "\n%s:\n", title);
    for (size_t i = 0; i < n; i++) {
        char left[40];
        snprintf(left, sizeof left, "%s%c%s--%s%s%s", o[i].letter ? "-" : " ",
                 o[i].letter ? o[i].letter : ' ', o[i].letter ? ", " : "  ", o[i].name,
                 o[i].value ? " " : "", o[i].value ? o[i].value : "");
        fprintf(to, "  %-26s %s\n", left, o[i].help);
    }
}

void help_each_example(const char *examples, help_example_cb each, void *ctx)
{
    span rest = span_of(examples), line;

    while (examples && str_split(&rest, '\n', &line)) {
        // The last bar separates, because the command may contain a pipe.
        const char *bar = memrchr(line.ptr, '|', line.len);
        int command_len = bar ? (int)(bar - line.ptr) : (int)line.len;
        each(line.ptr, command_len, bar ? bar + 1 : "",
             bar ? (int)line.len - command_len - 1 : 0, ctx);
    }
}

static void put_example(const char *command, int command_len, const char *what, int what_len,
                        void *ctx)
{
    FILE *to = ctx;

    if (command_len + what_len + 6 < WIDTH + 10)
        fprintf(to, "  %.*s  # %.*s\n", command_len, command, what_len, what);
    else
        fprintf(to, "  # %.*s\n  %.*s\n", what_len, what, command_len, command);
}

void help_command(FILE *to, const char *parent, const struct cli_command *c)
{
    const struct cli_option *common;
    size_t n_common;

    if (c->subs) {
        put_subs(to, c);
        return;
    }
    fprintf(to, "usage: queen %s%s%s%s%s [options]\n\n%s\n", parent ? parent : "",
            parent ? " " : "", c->name, c->args[0] ? " " : "", c->args, c->summary);
    if (c->about) {
        fputc('\n', to);
        put_wrapped(to, c->about, 0);
    }
    put_options(to, "options", c->options, c->n_options);
    common_options(c, &common, &n_common);
    put_options(to, "common options", common, n_common);
    if (c->examples) {
        fputs("\nexamples:\n", to);
        help_each_example(c->examples, put_example, to);
    }
}
