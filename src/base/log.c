// log.c: formats a fact and writes it whole.
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/str.h"

enum { MAX_FIELDS = 3000, MAX_LINE = 4096 }; // a line of this length is one atomic pipe write
// JSON doubles quotes and backslashes at worst; MAX_LINE cuts what is still too long.

static const struct level {
    const char *name;
    const char *colour;
    int priority; // syslog's
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
static enum log_format shape = LOG_TEXT;
enum log_level log_threshold = LOG_INFO;

static void put_logfmt(struct buf *line, const struct level *level, const char *event,
                       span fields);
static void put_terminal(struct buf *line, const struct level *level, const char *event,
                         span fields);
static void put_json(struct buf *line, const struct level *level, const char *event,
                     span fields);
static bool next_field(span *rest, span *key, span *value, bool *quoted);
static void write_all(const char *bytes, size_t n);

// The journal names its socket, so that a redirected stderr is not mistaken for it.
static bool is_journal(void)
{
    span name = span_of(getenv("JOURNAL_STREAM")), dev_text;
    uint64_t dev, ino;
    struct stat st;
    return str_split(&name, ':', &dev_text) && str_parse_u64(dev_text, &dev) &&
           str_parse_u64(name, &ino) && fstat(STDERR_FILENO, &st) == 0 && st.st_dev == dev &&
           st.st_ino == ino;
}

void log_setup(enum log_level level, enum log_format format)
{
    log_threshold = level;
    shape = format;
    place = isatty(STDERR_FILENO) ? TO_TERMINAL : is_journal() ? TO_JOURNAL : TO_FILE;
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

void log_line(enum log_level level, const char *event, const char *fmt, ...)
{
    char text[MAX_FIELDS], bytes[MAX_LINE];
    int saved = errno;

    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    size_t len = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    // A value that came from outside must not be able to start a line of its own.
    for (size_t i = 0; i < len; i++)
        if ((unsigned char)text[i] < 0x20 || text[i] == 0x7f)
            text[i] = ' ';

    // On the stack and never grown: cap equals max, and one byte is kept for the line's end.
    struct buf line = {.ptr = bytes, .cap = sizeof bytes - 1, .max = sizeof bytes - 1};
    span fields = str_trim((span){text, len});
    if (shape == LOG_JSON)
        put_json(&line, &levels[level], event, fields);
    else if (place == TO_TERMINAL)
        put_terminal(&line, &levels[level], event, fields);
    else
        put_logfmt(&line, &levels[level], event, fields);
    bytes[line.len++] = '\n';
    write_all(bytes, line.len);
    errno = saved;
}

static void put_time(struct buf *line)
{
    char now[STR_TS_MS];
    str_format_ts_ms((int64_t)clock_wall_us(), now);
    buf_put_bytes(line, now, sizeof now);
}

static void put_logfmt(struct buf *line, const struct level *level, const char *event,
                       span fields)
{
    if (place == TO_JOURNAL) { // which keeps its own time
        buf_printf(line, "<%d>", level->priority);
    } else {
        buf_put_lit(line, "ts=");
        put_time(line);
        buf_putc(line, ' ');
    }
    buf_printf(line, "level=%s event=%s%s", level->name, event, fields.len > 0 ? " " : "");
    buf_put(line, fields);
}

static void put_terminal(struct buf *line, const struct level *level, const char *event,
                         span fields)
{
    char now[STR_TS_MS];
    str_format_ts_ms((int64_t)clock_wall_us(), now);
    buf_printf(line, "\033[2m%.12s\033[0m %s%-5s\033[0m \033[1m%s\033[0m ", now + 11,
               level->colour, level->name, event);
    buf_put(line, fields);
}

static void put_quoted(struct buf *line, span text)
{
    buf_putc(line, '"');
    for (size_t i = 0; i < text.len; i++) {
        if (text.ptr[i] == '"' || text.ptr[i] == '\\')
            buf_putc(line, '\\');
        buf_putc(line, text.ptr[i]);
    }
    buf_putc(line, '"');
}

// A number of logfmt that is a number of JSON as well: no leading zero, no lone dot.
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

// A field that does not fit in any more is left out whole, so the line stays JSON.
static void put_json(struct buf *line, const struct level *level, const char *event,
                     span fields)
{
    span key, value;
    bool quoted;

    buf_put_lit(line, "{\"ts\":\"");
    put_time(line);
    buf_printf(line, "\",\"level\":\"%s\",\"event\":\"%s\"", level->name, event);
    while (next_field(&fields, &key, &value, &quoted)) {
        if (line->len + 2 * (key.len + value.len) + 8 > line->cap)
            break;
        buf_putc(line, ',');
        put_quoted(line, key);
        buf_putc(line, ':');
        if (!quoted &&
            (is_number(value) || span_eq(value, SPAN("true")) || span_eq(value, SPAN("false"))))
            buf_put(line, value);
        else
            put_quoted(line, str_is_utf8(value) ? value : SPAN("(not UTF-8)"));
    }
    buf_putc(line, '}');
}

// Nothing more, or a space and the next "key=".
static bool ends_here(const char *p, const char *end)
{
    if (p == end)
        return true;
    if (*p++ != ' ')
        return false;
    const char *key = p;
    while (p < end && (*p == '_' || *p == '.' || (*p >= '0' && *p <= '9') ||
                       ((*p | 32) >= 'a' && (*p | 32) <= 'z')))
        p++;
    return p > key && p < end && *p == '=';
}

// key=value or key="value with spaces"; callers do not escape, so a quoted value ends at a
// quote after which another field (or nothing) comes.  Words without '=' are the field
// "message".
static bool next_field(span *rest, span *key, span *value, bool *quoted)
{
    *rest = str_trim(*rest);
    if (rest->len == 0)
        return false;

    const char *end = rest->ptr + rest->len, *p = rest->ptr;
    while (p < end && *p != '=' && *p != ' ')
        p++;
    if (p == end || *p == ' ') {
        *key = SPAN("message");
        *value = *rest;
        *quoted = true;
        *rest = SPAN_NONE;
        return true;
    }
    *key = (span){rest->ptr, (size_t)(p - rest->ptr)};
    p++;
    *quoted = p < end && *p == '"';
    const char *from = *quoted ? ++p : p;
    while (p < end && !(*quoted ? *p == '"' && ends_here(p + 1, end) : *p == ' '))
        p++;
    *value = (span){from, (size_t)(p - from)};
    if (*quoted && p < end)
        p++;
    *rest = (span){p, (size_t)(end - p)};
    return true;
}

// Nowhere to complain if stderr fails; a full pipe is the reader's business.
static void write_all(const char *bytes, size_t n)
{
    while (n > 0) {
        ssize_t done = write(STDERR_FILENO, bytes, n);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return;
        bytes += done;
        n -= (size_t)done;
    }
}
