// `queen completion`: shell completion from the table of commands.
#include <stdio.h>
#include <string.h>

#include "base/attrs.h"
#include "cli/ask.h"
#include "cli/cli.h"
#include "cli/common.h"

typedef void (*option_cb)(const struct cli_option *o);

static void each_option(const struct cli_command *c, option_cb each)
{
    const struct cli_option *common;
    size_t n;

    if (c->run_raw)
        return; // parses its own options; they are in no table
    for (size_t i = 0; i < c->n_options; i++)
        each(&c->options[i]);
    common_options(c, &common, &n);
    for (size_t i = 0; i < n; i++)
        each(&common[i]);
}

// ---- bash ----

static void bash_option(const struct cli_option *o)
{
    printf("--%s ", o->name);
    if (o->letter)
        printf("-%c ", o->letter);
}

static void bash_names(const struct cli_command *const *list)
{
    for (; *list; list++)
        printf("%s ", (*list)->name);
}

static void bash(void)
{
    puts("# Completion for bash: source <(queen completion bash)\n"
         "_queen()\n{\n"
         "    local cur=${COMP_WORDS[COMP_CWORD]} words=\n"
         "    if [ \"$COMP_CWORD\" -eq 1 ]; then");
    printf("        words=\"");
    bash_names(cli_commands);
    puts("\"\n    else\n        case \"${COMP_WORDS[1]} ${COMP_WORDS[2]}\" in");
    for (unsigned i = 0; cli_commands[i]; i++)
        for (unsigned k = 0; cli_commands[i]->subs && cli_commands[i]->subs[k]; k++) {
            const struct cli_command *c = cli_commands[i]->subs[k];
            printf("        \"%s %s\") [ \"$COMP_CWORD\" -eq 2 ] && words=%s || words=\"",
                   cli_commands[i]->name, c->name, c->name);
            each_option(c, bash_option);
            puts("\" ;;");
        }
    for (unsigned i = 0; cli_commands[i]; i++) {
        printf("        %s\\ *) words=\"", cli_commands[i]->name);
        if (cli_commands[i]->subs)
            bash_names(cli_commands[i]->subs);
        else if (strcmp(cli_commands[i]->name, "help") == 0)
            bash_names(cli_commands);
        else
            each_option(cli_commands[i], bash_option);
        puts("\" ;;");
    }
    puts("        esac\n    fi\n"
         "    COMPREPLY=($(compgen -W \"$words\" -- \"$cur\"))\n}\n"
         "complete -o default -F _queen queen");
}

// ---- zsh ----

// 'name:description', escaped for zsh.
static void zsh_entry(const char *dashes, const char *name, const char *text)
{
    printf("'%s%s:", dashes, name);
    for (; *text; text++)
        if (*text == '\'')
            fputs("'\\''", stdout);
        else
            putchar(*text == ':' ? ',' : *text);
    fputs("' ", stdout);
}

static void zsh_option(const struct cli_option *o)
{
    char letter[2] = {o->letter, '\0'};

    zsh_entry("--", o->name, o->help);
    if (o->letter)
        zsh_entry("-", letter, o->help);
}

static void zsh_names(const struct cli_command *const *list)
{
    for (; *list; list++)
        zsh_entry("", (*list)->name, (*list)->summary);
}

static void zsh(void)
{
    puts("#compdef queen\n# Completion for zsh: a file _queen in a folder of $fpath\n"
         "_queen() {\n    local -a list\n    if (( CURRENT == 2 )); then");
    printf("        list=(");
    zsh_names(cli_commands);
    puts(")\n    else\n        case \"$words[2] $words[3]\" in");
    for (unsigned i = 0; cli_commands[i]; i++)
        for (unsigned k = 0; cli_commands[i]->subs && cli_commands[i]->subs[k]; k++) {
            printf("        '%s %s') list=(", cli_commands[i]->name,
                   cli_commands[i]->subs[k]->name);
            each_option(cli_commands[i]->subs[k], zsh_option);
            puts(") ;;");
        }
    for (unsigned i = 0; cli_commands[i]; i++) {
        printf("        %s\\ *) list=(", cli_commands[i]->name);
        if (cli_commands[i]->subs)
            zsh_names(cli_commands[i]->subs);
        else
            each_option(cli_commands[i], zsh_option);
        puts(") ;;");
    }
    puts("        esac\n    fi\n    _describe queen list || _files\n}\n"
         "# As a file of $fpath this is the body of _queen when it is first asked; sourced, it "
         "is not.\n"
         "if [[ $funcstack[1] == _queen ]]; then\n    _queen \"$@\"\nelse\n"
         "    compdef _queen queen\nfi");
}

// ---- fish ----

static const char *fish_parent, *fish_name; // the command whose options are being written

static void fish_text(const char *text)
{
    fputs(" -d '", stdout);
    for (; *text; text++) {
        if (*text == '\'' || *text == '\\')
            putchar('\\');
        putchar(*text);
    }
    puts("'");
}

static void fish_option(const struct cli_option *o)
{
    printf("complete -c queen -n '__fish_seen_subcommand_from %s", fish_name);
    if (fish_parent)
        printf("; and __fish_seen_subcommand_from %s", fish_parent);
    printf("' -l %s", o->name);
    if (o->letter)
        printf(" -s %c", o->letter);
    fputs(o->value ? " -r" : "", stdout);
    fish_text(o->help);
}

static void fish(void)
{
    puts(
        "# Completion for fish: queen completion fish > ~/.config/fish/completions/queen.fish");
    for (unsigned i = 0; cli_commands[i]; i++) {
        const struct cli_command *c = cli_commands[i];
        printf("complete -c queen -f -n __fish_use_subcommand -a %s", c->name);
        fish_text(c->summary);
        for (unsigned k = 0; c->subs && c->subs[k]; k++) {
            printf("complete -c queen -f -n '__fish_seen_subcommand_from %s' -a %s", c->name,
                   c->subs[k]->name);
            fish_text(c->subs[k]->summary);
            fish_parent = c->name;
            fish_name = c->subs[k]->name;
            each_option(c->subs[k], fish_option);
        }
        fish_parent = NULL;
        fish_name = c->name;
        if (!c->subs)
            each_option(c, fish_option);
    }
}

static int completion(struct cli *cli)
{
    static const struct {
        const char *shell;
        void (*put)(void);
    } shells[] = {{"bash", bash}, {"zsh", zsh}, {"fish", fish}};

    for (unsigned i = 0; i < countof(shells); i++)
        if (strcmp(cli->args.rest[0], shells[i].shell) == 0) {
            shells[i].put();
            return CLI_OK;
        }
    return ask_complain(cli, CLI_USAGE, "SHELL must be bash, zsh or fish, not \"%s\"",
                        cli->args.rest[0]);
}

const struct cli_command cli_completion = {
    .name = "completion",
    .args = "SHELL",
    .summary = "print a completion script for bash, zsh or fish",
    .examples = "source <(queen completion bash)|in ~/.bashrc\n"
                "queen completion fish > ~/.config/fish/completions/queen.fish|for fish",
    .offline = true,
    .run = completion,
};
