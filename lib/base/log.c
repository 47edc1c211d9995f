// log.c: formats one event and writes it in one piece, parseable whatever its values contain.
#include "base/log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

enum {
    MAX_FIELDS = 3000, // bytes of all fields before escaping
    MAX_LINE = 4096,   // PIPE_BUF: a pipe takes a line of this length in one atomic write
    MAX_FMT = 1024,
    LINE_RESERVE = 12,  // room for a character, its escape and the end of the line
    KEY_RESERVE = 32,   // the same, plus the colour of the key and a value of a useful length
    EVENT_COLUMNS = 20, // on a terminal, so that fields begin in one column
};

// One "key=value" of a format, and the position of its value in the formatted text.
struct field {
    span key;
    span value;
    bool quoted;
};

// Iterates over the fields. The format alone determines where a value begins and ends, never
// the contents of the values, because those come from databases and clients.
struct fields {
    const char *fmt;
    va_list args;
    size_t at;  // in fmt
    char *text; // fmt and args, formatted
    size_t len;
};

static const struct level {
    const char *name;
    const char *colour;
    int priority; // syslog priority
} levels[] = {
    [LOG_TRACE] = {"trace", "\033[2m", 7},
    [LOG_DEBUG] = {"debug", "\033[2m", 7},
    [LOG_INFO] = {"info", "\033[32m", 6},
    [LOG_WARN] = {"warn", "\033[33m", 4},
    [LOG_ERROR] = {"error", "\033[31m", 3},
    [LOG_CRITICAL] = {"critical", "\033[1;31m", 2},
    [LOG_OFF] = {"off", "", 7},
};

static enum { TO_FILE, TO_TERMINAL, TO_JOURNAL } place;
static bool has_colours; // of the terminal
static enum log_format shape = LOG_TEXT;
// stderr. If it could block, it is a second open file description of the same file: O_NONBLOCK
// is a property of the description, which we may share with other processes.
static int out = STDERR_FILENO;
static bool out_is_socket;
static atomic_ullong n_dropped;  // lines, since the start
static atomic_ullong n_reported; // lines already reported by the event log.dropped
static atomic_bool is_torn;      // only a part of the last line was written
enum log_level log_threshold = LOG_INFO;

static void open_again(void);
static void put_start(struct buf *line, const struct level *level, const char *event);
static void put_fields(struct buf *line, struct fields *w);
static bool next_field(struct fields *w, struct field *f);
static void put_value(struct buf *line, const struct field *f);
static bool write_line(const char *bytes, size_t n);

// systemd puts the device and inode of its socket into JOURNAL_STREAM, so that a redirected
// stderr is not mistaken for the journal.
static bool is_journal(void)
{
    span name = span_of(getenv("JOURNAL_STREAM")), dev_text;
    uint64_t dev, ino;
    struct stat st;
    return str_split(&name, ':', &dev_text) && str_parse_u64(dev_text, &dev) &&
           str_parse_u64(name, &ino) && fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev &&
           st.st_ino == ino;
}

static void open_again(void)
{
    struct stat st = {0};

    if (out != STDERR_FILENO)
        close(out);
    out = STDERR_FILENO;
    if (fstat(STDERR_FILENO, &st) != 0)
        return;
    out_is_socket = S_ISSOCK(st.st_mode);
    if (!S_ISFIFO(st.st_mode) && place != TO_TERMINAL)
        return;
    int fd = open("/proc/self/fd/2", O_WRONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
    if (fd >= 0)
        out = fd; // without /proc, out stays as it was
}

void log_setup(enum log_level level, enum log_format format)
{
    log_threshold = level;
    shape = format;
    place = isatty(STDERR_FILENO) ? TO_TERMINAL : is_journal() ? TO_JOURNAL : TO_FILE;
    const char *no_color = getenv("NO_COLOR"), *term = getenv("TERM");
    has_colours = !(no_color && no_color[0] != '\0') && !(term && strcmp(term, "dumb") == 0);
    open_again();
}

bool log_parse_level(span text, enum log_level *level)
{
    for (unsigned i = 0; i < countof(levels); i++) {
        if (str_eq_nocase(text, span_of(levels[i].name))) {
            *level = (enum log_level)i;
            return true;
        }
    }
    return false;
}

static PRINTF_LIKE(3, 0) bool log_write(enum log_level level, const char *event,
                                        const char *fmt, va_list args)
{
    char text[MAX_FIELDS], bytes[MAX_LINE];
    struct fields w = {.fmt = fmt, .text = text};
    // On the stack and never grown: cap equals max, and one byte is reserved for the line feed.
    struct buf line = {.ptr = bytes, .cap = sizeof bytes - 1, .max = sizeof bytes - 1};

    va_copy(w.args, args);
    int n = vsnprintf(text, sizeof text, fmt, w.args);
    va_end(w.args);
    w.len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;

    put_start(&line, &levels[level], event);
    va_copy(w.args, args);
    put_fields(&line, &w);
    va_end(w.args);
    if (shape == LOG_JSON)
        buf_putc(&line, '}');
    bytes[line.len++] = '\n';
    return write_line(bytes, line.len);
}

static PRINTF_LIKE(3, 4) bool try_line(enum log_level level, const char *event, const char *fmt,
                                       ...)
{
    va_list args;

    va_start(args, fmt);
    bool written = log_write(level, event, fmt, args);
    va_end(args);
    return written;
}

uint64_t log_dropped(void) { return atomic_load_explicit(&n_dropped, memory_order_relaxed); }

void log_report_dropped(void)
{
    unsigned long long reported = atomic_load_explicit(&n_reported, memory_order_relaxed);
    unsigned long long dropped = atomic_load_explicit(&n_dropped, memory_order_relaxed);

    // Only one thread reports. If its line is dropped as well, the next line reports again.
    if (reported < dropped && atomic_compare_exchange_strong(&n_reported, &reported, dropped) &&
        !try_line(LOG_WARN, "log.dropped", "lines=%llu total=%llu", dropped - reported,
                  dropped))
        atomic_fetch_sub(&n_reported, dropped - reported);
}

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
    int saved = errno;
    va_list args;

    log_report_dropped();
    va_start(args, fmt);
    if (!log_write(level, event, fmt, args))
        atomic_fetch_add(&n_dropped, 1);
    va_end(args);
    errno = saved;
}

// The time of day is enough for a person who watches. Padding follows the colour, so that an
// underline or a background would not show it.
static void put_terminal_start(struct buf *line, const struct level *level, const char *event,
                               const char *time)
{
    size_t len = strlen(event);
    int pad = len < EVENT_COLUMNS ? (int)(EVENT_COLUMNS - len) : 0;

    if (has_colours)
        buf_printf(line, "\033[2m%.12s\033[0m %s%-5s\033[0m \033[1m%s\033[0m%*s", time,
                   level->colour, level->name, event, pad, "");
    else
        buf_printf(line, "%.12s %-5s %s%*s", time, level->name, event, pad, "");
}

// Time, level and event, in the form of each destination.
static void put_start(struct buf *line, const struct level *level, const char *event)
{
    char ts[STR_TS_MS];
    str_format_ts_ms((int64_t)clock_wall_us(), ts);
    int n = (int)sizeof ts;

    if (shape == LOG_JSON)
        buf_printf(line, "{\"ts\":\"%.*s\",\"level\":\"%s\",\"event\":\"%s\"", n, ts,
                   level->name, event);
    else if (place == TO_TERMINAL)
        put_terminal_start(line, level, event, ts + 11);
    else if (place == TO_JOURNAL) // the journal adds its own time
        buf_printf(line, "<%d>level=%s event=%s", level->priority, level->name, event);
    else
        buf_printf(line, "ts=%.*s level=%s event=%s", n, ts, level->name, event);
}

static void put_fields(struct buf *line, struct fields *w)
{
    struct field f;

    while (next_field(w, &f)) {
        if (line->len + f.key.len + KEY_RESERVE > line->cap)
            break; // the field is left out as a whole
        if (shape == LOG_JSON)
            buf_printf(line, ",\"" SPAN_FMT "\":", SPAN_ARG(f.key));
        else if (place == TO_TERMINAL && has_colours)
            buf_printf(line, " \033[2m" SPAN_FMT "=\033[0m", SPAN_ARG(f.key));
        else
            buf_printf(line, " " SPAN_FMT "=", SPAN_ARG(f.key));
        put_value(line, &f);
    }
}

// Length of the output of the first n bytes of the format.
static size_t length_until(struct fields *w, size_t n)
{
    char head[MAX_FMT];
    memcpy(head, w->fmt, n);
    head[n] = '\0';

    va_list args;
    va_copy(args, w->args);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral" // a prefix of a literal format
    int len = vsnprintf(NULL, 0, head, args);
#pragma GCC diagnostic pop
    va_end(args);
    return len < 0 ? 0 : (size_t)len < w->len ? (size_t)len : w->len;
}

// Fields are key=... and key="..." in the format. From the first word without '=' on, the rest
// is the field "message".
static bool next_field(struct fields *w, struct field *f)
{
    const char *fmt = w->fmt;
    size_t at = w->at;

    while (fmt[at] == ' ')
        at++;
    size_t word = at;
    while (fmt[at] != '\0' && !strchr(" =%\"", fmt[at]))
        at++;
    bool has_key = fmt[at] == '=' && at > word;
    if (fmt[word] == '\0' || at + 2 >= MAX_FMT)
        return false;

    f->key = has_key ? (span){fmt + word, at - word} : SPAN("message");
    size_t from = has_key ? at + 1 : word;
    f->quoted = !has_key || fmt[from] == '"';
    if (has_key && f->quoted)
        from++;
    size_t to = from;
    while (fmt[to] != '\0' && to < MAX_FMT - 1 &&
           (!has_key || fmt[to] != (f->quoted ? '"' : ' ')))
        to++;
    w->at = to + (has_key && fmt[to] == '"');

    size_t begin = length_until(w, from), end = length_until(w, to);
    f->value = (span){w->text + begin, end - begin};
    return begin < w->len || from == to; // leave out a field that vsnprintf had to cut off
}

// Uses only escapes that are valid both in logfmt and in JSON.
static void put_quoted(struct buf *line, span text)
{
    bool is_utf8 = str_is_utf8(text);

    buf_putc(line, '"');
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        bool within = is_utf8 && (c & 0xc0) == 0x80; // never cut within a character
        if (!within && line->len + LINE_RESERVE > line->cap)
            break;
        if (c == '"' || c == '\\')
            buf_putc(line, '\\');
        if (c == '\n')
            buf_put_lit(line, "\\n");
        else if (c < 0x20 || c == 0x7f)
            buf_putc(line, ' ');
        else
            buf_putc(line, c < 0x80 || is_utf8 ? (char)c : '?');
    }
    buf_putc(line, '"');
}

// The text needs no quotes in logfmt.
static bool is_plain(span s)
{
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] <= ' ' || s.ptr[i] >= 0x7f || strchr("\"\\=", s.ptr[i]))
            return false;
    return true;
}

// A number in logfmt that is a number in JSON as well: no leading zero, no lone dot.
static bool is_number(span s)
{
    size_t i = s.len > 0 && s.ptr[0] == '-', dots = 0;
    if (s.len == i || s.len - i > 18 ||
        (s.ptr[i] == '0' && s.len - i > 1 && s.ptr[i + 1] != '.'))
        return false;
    if (s.ptr[i] == '.' || s.ptr[s.len - 1] == '.')
        return false;
    for (; i < s.len; i++) {
        dots += s.ptr[i] == '.';
        if (s.ptr[i] != '.' && (s.ptr[i] < '0' || s.ptr[i] > '9'))
            return false;
    }
    return dots <= 1;
}

static void put_value(struct buf *line, const struct field *f)
{
    bool bare = shape == LOG_JSON ? is_number(f->value) || span_eq(f->value, SPAN("true")) ||
                                        span_eq(f->value, SPAN("false"))
                                  : is_plain(f->value);

    if (bare && !f->quoted && line->len + f->value.len + LINE_RESERVE <= line->cap)
        buf_put(line, f->value);
    else
        put_quoted(line, f->value);
}

static ssize_t write_some(const char *bytes, size_t n)
{
    ssize_t done;

    do
        done = out_is_socket ? send(out, bytes, n, MSG_DONTWAIT | MSG_NOSIGNAL)
                             : write(out, bytes, n);
    while (done < 0 && errno == EINTR);
    return done;
}

// Drops a line for which a pipe, a socket or a terminal has no room: logging never waits for a
// reader. A pipe takes a line as a whole or not at all. After a partial write the next line
// starts with a line feed.
static bool write_line(const char *bytes, size_t n)
{
    ssize_t done;

    if (atomic_exchange(&is_torn, false) && write_some("\n", 1) < 1) {
        atomic_store(&is_torn, true);
        return false;
    }
    while (n > 0) {
        done = write_some(bytes, n);
        if (done <= 0)
            return false;
        bytes += done;
        n -= (size_t)done;
        atomic_store(&is_torn, n > 0);
    }
    return true;
}
