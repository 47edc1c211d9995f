// shell.c: commands, and as whom.
#include "support/shell.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void shell_run(const char *fmt, ...)
{
    char command[1024];
    va_list args;

    va_start(args, fmt);
    vsnprintf(command, sizeof command, fmt, args);
    va_end(args);
    if (system(command) != 0) {
        fprintf(stderr, "failed: %s\n", command);
        abort();
    }
}

const char *shell_as_another(void)
{
    return geteuid() == 0 ? "setpriv --reuid=postgres --regid=postgres --clear-groups" : "env";
}
