// `queen platform`: runs the program queen-platform, which is a separate product.
#include "cli/cli.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int platform_exec(int argc, char **argv);

const struct cli_command cli_platform = {
    .name = "platform",
    .args = "[--option VALUE]...",
    .summary = "run the event platform: tenants, their data and segments, on top of a broker",
    .run_raw = platform_exec,
};

// Tries the folder of this program first, so that a build directory works without installing.
static void try_beside(char **argv)
{
    static const char name[] = "queen-platform";
    char path[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", path, sizeof path - 1);

    if (len <= 0)
        return;
    path[len] = '\0';
    char *slash = strrchr(path, '/');
    if (!slash || (size_t)(slash + 1 - path) + sizeof name > sizeof path)
        return;
    memcpy(slash + 1, name, sizeof name);
    execv(path, argv);
}

static int platform_exec(int argc, char **argv)
{
    (void)argc;
    try_beside(argv);
    execvp("queen-platform", argv);
    fprintf(stderr,
            "queen platform: cannot start queen-platform: %s; install the package of the "
            "platform, or build it with `make`\n",
            strerror(errno));
    return CLI_FAILED;
}
