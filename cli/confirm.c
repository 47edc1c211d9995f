// confirm.c: asks the user before an irreversible action.
#include "cli/confirm.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#include "cli/ask.h"
#include "cli/cli.h"

int confirm(struct cli *cli, const char *fmt, ...)
{
    char question[400], answer[16];
    va_list ap;

    if (args_has(&cli->args, "yes"))
        return CLI_OK;
    va_start(ap, fmt);
    vsnprintf(question, sizeof question, fmt, ap);
    va_end(ap);
    if (!isatty(STDIN_FILENO))
        return ask_complain(cli, CLI_USAGE, "this would %s; confirm with --yes", question);
    fprintf(stderr, "%s? [y/N] ", question);
    if (fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y'))
        return CLI_OK;
    return ask_complain(cli, CLI_USAGE, "cancelled");
}
