// cell.c: formats values for people.
#include <math.h>
#include <stdio.h>
#include <time.h>

#include "base/moment.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/pick.h"
#include "cli/table.h"

void cell_put_count(struct buf *b, int64_t n)
{
    char digits[24];
    int len = snprintf(digits, sizeof digits, "%lld", (long long)(n < 0 ? -n : n));

    if (n < 0)
        buf_putc(b, '-');
    for (int i = 0; i < len; i++) {
        if (i > 0 && (len - i) % 3 == 0)
            buf_putc(b, ',');
        buf_putc(b, digits[i]);
    }
}

void cell_put_seconds(struct buf *b, double seconds)
{
    static const struct {
        int64_t seconds;
        char unit;
    } units[] = {{86400, 'd'}, {3600, 'h'}, {60, 'm'}, {1, 's'}};

    if (seconds < 10 && seconds > floor(seconds)) {
        buf_printf(b, "%.1fs", seconds);
        return;
    }
    // The two largest units are sufficient.
    int64_t left = (int64_t)seconds;
    for (unsigned i = 0; i < countof(units); i++)
        if (left >= units[i].seconds || i + 1 == countof(units)) {
            buf_printf(b, "%lld%c", (long long)(left / units[i].seconds), units[i].unit);
            left %= units[i].seconds;
            if (i + 1 < countof(units) && left >= units[i + 1].seconds)
                buf_printf(b, " %lld%c", (long long)(left / units[i + 1].seconds),
                           units[i + 1].unit);
            return;
        }
}

void cell_put_bytes(struct buf *b, double bytes)
{
    static const char *const units[] = {"B", "KB", "MB", "GB", "TB", "PB"};
    unsigned i = 0;

    while (bytes >= 1000 && i + 1 < countof(units)) {
        bytes /= 1000;
        i++;
    }
    buf_printf(b, i == 0 || bytes >= 100 ? "%.0f %s" : "%.1f %s", bytes, units[i]);
}

static void cell_put_time(struct buf *b, span text)
{
    int64_t us;

    if (!moment_parse(text, &us)) {
        buf_put(b, text);
        return;
    }
    time_t seconds = (time_t)(us / 1000000);
    struct tm tm;
    char shown[32];
    localtime_r(&seconds, &tm);
    strftime(shown, sizeof shown, "%Y-%m-%d %H:%M:%S", &tm);
    buf_put(b, span_of(shown));
}

// Replaces control characters, which could move the cursor.
static void put_printable(struct buf *b, span text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.ptr[i];
        buf_putc(b, c < 0x20 || c == 0x7f ? ' ' : text.ptr[i]);
    }
}

void cell_put(struct buf *b, span object, const struct column *c, struct cli *cli)
{
    span text = pick_text(object, c->path, &cli->arena);
    int64_t n;
    double d;

    if (!text.ptr || text.len == 0) {
        buf_put_lit(b, "-");
        return;
    }
    switch (c->kind) {
    case CELL_COUNT:
        if (str_parse_i64(text, &n)) {
            cell_put_count(b, n);
            return;
        }
        break;
    case CELL_SECONDS:
        if (str_parse_double(text, &d)) {
            cell_put_seconds(b, d);
            return;
        }
        break;
    case CELL_BYTES:
        if (str_parse_double(text, &d)) {
            cell_put_bytes(b, d);
            return;
        }
        break;
    case CELL_TIME:
        cell_put_time(b, text);
        return;
    case CELL_YES:
        buf_put(b, span_eq(text, SPAN("true")) ? SPAN("yes") : SPAN("-"));
        return;
    case CELL_TEXT:
    case CELL_LONG:
        break;
    }
    put_printable(b, text);
}

// The bytes of the first n characters.
static size_t prefix(span text, size_t n)
{
    size_t i = 0;

    for (; i < text.len; i++) {
        bool starts_character = ((unsigned char)text.ptr[i] & 0xc0) != 0x80;
        if (starts_character && n-- == 0)
            break;
    }
    return i;
}

void cell_put_fixed(struct buf *b, span text, size_t width)
{
    size_t chars = str_utf8_chars(text);

    if (chars > width) {
        buf_put(b, (span){text.ptr, prefix(text, width - 1)});
        buf_put_lit(b, "…");
        return;
    }
    buf_put(b, text);
    for (; chars < width; chars++)
        buf_putc(b, ' ');
}
