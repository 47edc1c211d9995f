// str.c: parsing and formatting of numbers and dates, splitting, UTF-8 and escapes.
#include "base/str.h"

#include <errno.h>
#include <stdlib.h>

#include "base/utf8.h"

bool str_parse_u64(span s, uint64_t *v)
{
    uint64_t sum = 0;
    *v = 0;
    if (s.len == 0)
        return false;
    for (size_t i = 0; i < s.len; i++) {
        if (s.ptr[i] < '0' || s.ptr[i] > '9' || __builtin_mul_overflow(sum, 10, &sum) ||
            __builtin_add_overflow(sum, (uint64_t)(s.ptr[i] - '0'), &sum))
            return false;
    }
    *v = sum;
    return true;
}

bool str_parse_i64(span s, int64_t *v)
{
    bool minus = s.len > 0 && s.ptr[0] == '-';
    uint64_t size;
    *v = 0;
    if (!str_parse_u64(minus ? (span){s.ptr + 1, s.len - 1} : s, &size) ||
        size > (uint64_t)INT64_MAX + minus)
        return false;
    *v = minus ? (int64_t)(0 - size) : (int64_t)size;
    return true;
}

// strtod() would also accept spaces, hexadecimal, "inf" and "nan".
bool str_parse_double(span s, double *v)
{
    char copy[64];
    *v = 0;
    if (s.len == 0 || s.len >= sizeof copy)
        return false;
    for (size_t i = 0; i < s.len; i++)
        if (s.ptr[i] == '\0' || !strchr("0123456789+-.eE", s.ptr[i]))
            return false;
    memcpy(copy, s.ptr, s.len);
    copy[s.len] = '\0';

    char *end;
    errno = 0;
    double got = strtod(copy, &end);
    if (end != copy + s.len || (errno == ERANGE && (got > 1 || got < -1)))
        return false;
    *v = got;
    return true;
}

bool str_leading_i64(span s, int64_t *v)
{
    size_t n = s.len > 0 && s.ptr[0] == '-';
    while (n < s.len && s.ptr[n] >= '0' && s.ptr[n] <= '9')
        n++;
    return str_parse_i64((span){s.ptr, n}, v);
}

static char str_lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

bool str_eq_nocase(span a, span b)
{
    if (a.len != b.len)
        return false;
    for (size_t i = 0; i < a.len; i++)
        if (str_lower(a.ptr[i]) != str_lower(b.ptr[i]))
            return false;
    return true;
}

bool str_starts(span s, span prefix)
{
    return s.len >= prefix.len && span_eq((span){s.ptr, prefix.len}, prefix);
}

static bool is_blank(char c) { return c == ' ' || c == '\t'; }

span str_trim(span s)
{
    while (s.len > 0 && is_blank(s.ptr[0]))
        s.ptr++, s.len--;
    while (s.len > 0 && is_blank(s.ptr[s.len - 1]))
        s.len--;
    return s;
}

bool str_split(span *rest, char sep, span *part)
{
    *part = SPAN_NONE;
    if (!rest->ptr)
        return false;
    const char *at = memchr(rest->ptr, sep, rest->len);
    if (!at) {
        *part = *rest;
        *rest = SPAN_NONE;
        return true;
    }
    *part = (span){rest->ptr, (size_t)(at - rest->ptr)};
    *rest = (span){at + 1, rest->len - part->len - 1};
    return true;
}

span str_url_user(span url)
{
    const char *sign = url.len > 3 ? memmem(url.ptr, url.len, "://", 3) : NULL;

    if (!sign)
        return SPAN_NONE;
    const char *from = sign + 3, *end = url.ptr + url.len, *at = NULL;
    for (const char *c = from; c < end && !strchr("/?#", *c); c++)
        at = *c == '@' ? c : at;
    return at ? (span){from, (size_t)(at - from)} : SPAN_NONE;
}

bool str_is_utf8(span s)
{
    size_t i = 0;
    while (i < s.len) {
        if ((unsigned char)s.ptr[i] < 0x80) {
            i++;
            continue;
        }
        size_t n = utf8_sequence(s.ptr + i, s.len - i);
        if (n == 0)
            return false;
        i += n;
    }
    return true;
}

size_t str_utf8_chars(span s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.len; i++)
        n += ((unsigned char)s.ptr[i] & 0xc0) != 0x80;
    return n;
}

// True if the n bytes at p (p[0] >= 0x80) are an incomplete character.
static bool is_cut_off(const char *p, size_t n)
{
    unsigned char first = (unsigned char)p[0];
    size_t len = first < 0xc2 ? 0 : first < 0xe0 ? 2 : first < 0xf0 ? 3 : first < 0xf5 ? 4 : 0;

    if (n >= len)
        return false;
    for (size_t i = 1; i < n; i++)
        if (((unsigned char)p[i] & 0xc0) != 0x80)
            return false;
    return true;
}

void str_clean_utf8(char *out, size_t size, span text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.len;) {
        const char *p = text.ptr + i;
        bool ascii = (unsigned char)p[0] < 0x80;
        size_t len = ascii ? 1 : utf8_sequence(p, text.len - i);
        bool bad = len == 0 || p[0] == '\0';
        if (len == 0 && is_cut_off(p, text.len - i))
            break;
        if (bad)
            len = 1;
        if (n + len >= size)
            break;
        if (bad)
            out[n] = '?';
        else
            memmove(out + n, p, len);
        n += len;
        i += len;
    }
    out[n] = '\0';
}

static int hex_value(char c)
{
    if (c >= '0' && c <= '9')
        return c - '0';
    c = str_lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

bool str_percent_decode(span s, bool plus_is_space, struct buf *out)
{
    if (!buf_reserve(out, s.len))
        return false;
    for (size_t i = 0; i < s.len; i++) {
        char c = s.ptr[i];
        if (c == '%') {
            int high = s.len - i > 2 ? hex_value(s.ptr[i + 1]) : -1;
            int low = high >= 0 ? hex_value(s.ptr[i + 2]) : -1;
            if (low < 0)
                return false;
            c = (char)(high << 4 | low);
            i += 2;
        } else if (c == '+' && plus_is_space) {
            c = ' ';
        }
        buf_putc(out, c);
    }
    return true;
}

unsigned str_distance(span a, span b)
{
    enum { MAX = 64 };
    unsigned row[MAX + 1];
    if (a.len > MAX || b.len > MAX)
        return MAX;

    for (unsigned j = 0; j <= b.len; j++)
        row[j] = j;
    for (unsigned i = 1; i <= a.len; i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= b.len; j++) {
            unsigned change = diagonal + (a.ptr[i - 1] != b.ptr[j - 1]);
            diagonal = row[j];
            unsigned shift = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            row[j] = change < shift ? change : shift;
        }
    }
    return row[b.len];
}

static void put_digits(char *out, int n, uint64_t v)
{
    while (n-- > 0) {
        out[n] = (char)('0' + v % 10);
        v /= 10;
    }
}

// Not gmtime_r(): it takes a lock for the time zone, and this runs once per delivered message.
// Years are counted from March, so that the leap day is the last one.
static void put_seconds(int64_t unix_s, char out[19])
{
    const int64_t first = -62167219200, last = 253402300799; // years 0000 and 9999
    if (unix_s < first)
        unix_s = first;
    if (unix_s > last)
        unix_s = last;

    uint64_t s = (uint64_t)(unix_s - first) + 146037 * 86400ull; // since 1 March of year -400
    uint64_t day = s / 86400;
    s %= 86400;
    uint64_t era = day / 146097, of_era = day % 146097;
    uint64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    uint64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    uint64_t march = (5 * of_year + 2) / 153; // 0 is March
    uint64_t month = march < 10 ? march + 3 : march - 9;
    year += era * 400 + (month <= 2);

    put_digits(out, 4, year - 400);
    out[4] = out[7] = '-';
    put_digits(out + 5, 2, month);
    put_digits(out + 8, 2, of_year - (153 * march + 2) / 5 + 1);
    out[10] = 'T';
    out[13] = out[16] = ':';
    put_digits(out + 11, 2, s / 3600);
    put_digits(out + 14, 2, s / 60 % 60);
    put_digits(out + 17, 2, s % 60);
}

// Rounds down, also before 1970.
static int64_t whole_seconds(int64_t us, uint64_t *rest)
{
    int64_t s = us / 1000000, r = us % 1000000;
    if (r < 0)
        s--, r += 1000000;
    *rest = (uint64_t)r;
    return s;
}

void str_format_ts_us(int64_t unix_us, char out[STR_TS_US])
{
    uint64_t us;
    put_seconds(whole_seconds(unix_us, &us), out);
    out[19] = '.';
    put_digits(out + 20, 6, us);
    out[26] = 'Z';
}

void str_format_ts_ms(int64_t unix_us, char out[STR_TS_MS])
{
    uint64_t us;
    put_seconds(whole_seconds(unix_us, &us), out);
    out[19] = '.';
    put_digits(out + 20, 3, us / 1000);
    out[23] = 'Z';
}
