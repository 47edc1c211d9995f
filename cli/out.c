// out.c: output of a command: format, colours, errors.
#include "cli/out.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "cli/cli.h"

static int first_error; // errno of the first failed write; stdio does not keep it

static unsigned terminal_width(void)
{
    struct winsize size;

    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
        return size.ws_col;
    return 80;
}

struct out out_init(bool json, bool table, bool no_colour, bool quiet)
{
    bool terminal = isatty(STDOUT_FILENO);
    const char *term = getenv("TERM");
    const char *no = getenv("NO_COLOR");

    return (struct out){
        .json = json || (!terminal && !table),
        .colour = terminal && !no_colour && !(no && no[0]) && term && strcmp(term, "dumb") != 0,
        .quiet = quiet,
        .width = terminal ? terminal_width() : 0,
    };
}

static void out_remember(bool ok)
{
    if (!ok && first_error == 0)
        first_error = errno ? errno : EIO;
}

void out_line(span raw)
{
    const char *p = raw.ptr, *end = raw.ptr + raw.len;

    // A raw line break can only occur between tokens: in strings it is escaped.
    while (p < end) {
        const char *stop = p;
        while (stop < end && *stop != '\n' && *stop != '\r')
            stop++;
        out_remember(fwrite(p, 1, (size_t)(stop - p), stdout) == (size_t)(stop - p));
        if (stop < end)
            out_remember(putchar(' ') != EOF);
        p = stop + 1;
    }
    out_remember(putchar('\n') != EOF);
}

void out_note(const struct out *o, const char *fmt, ...)
{
    va_list ap;

    if (o->quiet)
        return;
    FILE *to = o->json ? stderr : stdout;
    va_start(ap, fmt);
    out_remember(vfprintf(to, fmt, ap) >= 0 || to == stderr);
    va_end(ap);
    out_remember(fputc('\n', to) != EOF || to == stderr);
}

const char *out_on(const struct out *o, enum out_style style)
{
    static const char *const codes[] = {
        [OUT_PLAIN] = "",         [OUT_BOLD] = "\033[1m",    [OUT_DIM] = "\033[2m",
        [OUT_GREEN] = "\033[32m", [OUT_YELLOW] = "\033[33m", [OUT_RED] = "\033[31m",
        [OUT_CYAN] = "\033[36m",
    };
    return o->colour ? codes[style] : "";
}

const char *out_off(const struct out *o) { return o->colour ? "\033[0m" : ""; }

bool out_is_broken(void)
{
    out_remember(fflush(stdout) == 0);
    return first_error != 0;
}

int out_finish(void)
{
    if (!out_is_broken() || first_error == EPIPE)
        return CLI_OK;
    fprintf(stderr, "queen: cannot write the result: %s\n", strerror(first_error));
    return CLI_FAILED;
}
