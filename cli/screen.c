// screen.c: a full-screen view that is redrawn in place.
#include "cli/screen.h"

#include <poll.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <termios.h>
#include <unistd.h>

#include "base/str.h"
#include "cli/stop.h"

static struct termios before;
static bool has_before;

static void screen_measure(struct screen *s)
{
    struct winsize size;
    bool known = ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;

    s->columns = known ? size.ws_col : 80;
    s->rows = known && size.ws_row > 0 ? size.ws_row : 24;
}

void screen_open(struct screen *s)
{
    screen_measure(s);
    has_before = tcgetattr(STDIN_FILENO, &before) == 0;
    if (has_before) {
        struct termios keys = before;
        keys.c_lflag &= ~(tcflag_t)(ICANON | ECHO);
        tcsetattr(STDIN_FILENO, TCSANOW, &keys);
    }
    fputs("\033[?1049h\033[?25l\033[2J", stdout);
}

void screen_close(struct screen *s)
{
    (void)s;
    if (has_before)
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    fputs("\033[?25h\033[?1049l", stdout);
    fflush(stdout);
}

// The bytes of a line that fit; escape sequences have no width.
static size_t fitting(span line, unsigned columns)
{
    unsigned used = 0;
    bool escape = false;

    for (size_t i = 0; i < line.len; i++) {
        char c = line.ptr[i];
        if (escape) {
            escape = c != 'm';
        } else if (c == '\033') {
            escape = true;
        } else if (((unsigned char)c & 0xc0) != 0x80 && used++ == columns) {
            return i;
        }
    }
    return line.len;
}

void screen_draw(struct screen *s, span lines)
{
    span line;
    unsigned row = 0;

    screen_measure(s);
    fputs("\033[H", stdout);
    while (row < s->rows && str_split(&lines, '\n', &line)) {
        printf("%s%.*s\033[0m\033[K", row > 0 ? "\n" : "", (int)fitting(line, s->columns),
               line.ptr ? line.ptr : "");
        row++;
    }
    fputs("\033[J", stdout);
    fflush(stdout);
}

char screen_key(unsigned ms)
{
    struct pollfd in = {.fd = STDIN_FILENO, .events = POLLIN};
    char key;

    // In small steps: a signal may be delivered to another thread, and poll() here would not
    // return.
    for (unsigned waited = 0; waited < ms && !stop_was_asked(); waited += 50)
        if (poll(&in, 1, 50) > 0)
            return read(STDIN_FILENO, &key, 1) == 1 ? key : 'q'; // the terminal is gone
    return 0;
}
