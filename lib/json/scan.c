// scan.c: the cursor and the JSON grammar.
//
// One pass, no allocation. The grammar is that of jsonb in PostgreSQL 15: PostgreSQL must
// never reject a value that passes here, because the error would fail a call that other
// requests share.
#include "json/scan.h"

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "base/err.h"
#include "base/utf8.h"

// numeric holds 131072 digits before the point and 16383 after it.
enum { MAX_POWER = 131071, MAX_SCALE = 16383 };

static void skip_value(struct js *j);
static void open_container(struct js *j, char bracket, const char *why);
static bool next_element(struct js *j, char bracket);
static void skip_key(struct js *j, span *key);
static void skip_scalar(struct js *j);
static void skip_string(struct js *j);
static const char *skip_plain(const char *p, const char *end);
static void skip_escape(struct js *j);
static void skip_number(struct js *j);
static void skip_word(struct js *j, span word);

static inline const char *skip_space(const char *p, const char *end)
{
    while (p < end && (*p == ' ' || *p == '\n' || *p == '\r' || *p == '\t'))
        p++;
    return p;
}

// The next byte that is not white space; 0 at the end (a NUL in the text is never valid).
static inline char next_byte(struct js *j)
{
    j->pos = skip_space(j->pos, j->end);
    return j->pos < j->end ? *j->pos : '\0';
}

struct js js_read(span text)
{
    const char *p = text.ptr ? text.ptr : "";
    return (struct js){.pos = p, .start = p, .end = p + text.len};
}

void js_fail(struct js *j, int code, const char *why)
{
    if (j->rc != 0)
        return;
    j->rc = code;
    j->why = why;
}

static inline void scan_bad(struct js *j, const char *why) { js_fail(j, QE_BAD_JSON, why); }

int js_finish(const struct js *j)
{
    if (j->rc != 0)
        return j->rc;
    bool nothing_read = j->pos == j->start;
    return nothing_read || j->depth > 0 || skip_space(j->pos, j->end) < j->end ? QE_BAD_JSON
                                                                               : 0;
}

size_t js_offset(const struct js *j) { return (size_t)(j->pos - j->start); }

static enum js_type type_of(char first)
{
    switch (first) {
    case '{':
        return JS_OBJECT;
    case '[':
        return JS_ARRAY;
    case '"':
        return JS_STRING;
    case 't':
    case 'f':
        return JS_BOOL;
    case 'n':
        return JS_NULL;
    default:
        return first == '-' || (first >= '0' && first <= '9') ? JS_NUMBER : JS_NONE;
    }
}

enum js_type js_type_of(span raw) { return raw.len > 0 ? type_of(raw.ptr[0]) : JS_NONE; }

enum js_type js_peek(struct js *j) { return j->rc != 0 ? JS_NONE : type_of(next_byte(j)); }

void js_enter_object(struct js *j) { open_container(j, '{', "an object was expected"); }
void js_enter_array(struct js *j) { open_container(j, '[', "an array was expected"); }

static void open_container(struct js *j, char bracket, const char *why)
{
    if (j->rc != 0)
        return;
    if (next_byte(j) != bracket) {
        scan_bad(j, why);
    } else if (j->depth == JS_MAX_DEPTH) {
        scan_bad(j, "nested too deeply");
    } else {
        j->pos++;
        j->depth++;
        j->fresh = true;
    }
}

bool js_next_key(struct js *j, span *key)
{
    *key = SPAN_NONE;
    if (!next_element(j, '}'))
        return false;
    skip_key(j, key);
    return j->rc == 0;
}

bool js_next_item(struct js *j) { return next_element(j, ']'); }

// Moves past the comma to the next element, or past the closing bracket.
static bool next_element(struct js *j, char bracket)
{
    if (j->rc != 0)
        return false;
    char c = next_byte(j);
    if (c == bracket) {
        j->pos++;
        j->depth--;
        j->fresh = false;
        return false;
    }
    if (!j->fresh) {
        if (c != ',') {
            scan_bad(j, bracket == '}' ? "a comma or } was expected"
                                       : "a comma or ] was expected");
            return false;
        }
        j->pos++;
        next_byte(j);
    }
    j->fresh = false;
    return true;
}

static void skip_key(struct js *j, span *key)
{
    if (next_byte(j) != '"') {
        scan_bad(j, "a key in quotes was expected");
        return;
    }
    const char *from = j->pos + 1;
    skip_string(j);
    *key = (span){from, (size_t)(j->pos - from - 1)};
    if (j->rc == 0 && next_byte(j) != ':')
        scan_bad(j, "a colon was expected");
    else if (j->rc == 0)
        j->pos++;
}

span js_skip(struct js *j)
{
    if (j->rc != 0)
        return SPAN_NONE;
    next_byte(j);
    const char *from = j->pos;
    skip_value(j);
    if (j->rc != 0)
        return SPAN_NONE;
    return (span){from, (size_t)(j->pos - from)};
}

// Not recursive, because the sender chooses the depth. One bit per level distinguishes objects
// from arrays.
static void skip_value(struct js *j)
{
    uint64_t is_object[(JS_MAX_DEPTH + 64) / 64] = {0};
    const int outer = j->depth;

    for (;;) {
        char c = next_byte(j);
        if (c == '{' || c == '[') {
            open_container(j, c, "");
            uint64_t bit = (uint64_t)1 << (j->depth & 63), *word = &is_object[j->depth / 64];
            *word = c == '{' ? *word | bit : *word & ~bit;
        } else {
            skip_scalar(j);
        }

        // Close the levels that end here, until one has a next element.
        for (;;) {
            if (j->rc != 0 || j->depth == outer)
                return;
            bool object = is_object[j->depth / 64] >> (j->depth & 63) & 1;
            if (next_element(j, object ? '}' : ']')) {
                span key;
                if (object)
                    skip_key(j, &key);
                break;
            }
        }
        if (j->rc != 0)
            return;
    }
}

static void skip_scalar(struct js *j)
{
    switch (type_of(next_byte(j))) {
    case JS_STRING:
        skip_string(j);
        break;
    case JS_NUMBER:
        skip_number(j);
        break;
    case JS_BOOL:
        skip_word(j, *j->pos == 't' ? SPAN("true") : SPAN("false"));
        break;
    case JS_NULL:
        skip_word(j, SPAN("null"));
        break;
    default:
        scan_bad(j, j->pos < j->end ? "a value was expected" : "the text ends too early");
    }
}

static void skip_word(struct js *j, span word)
{
    if ((size_t)(j->end - j->pos) < word.len || memcmp(j->pos, word.ptr, word.len) != 0)
        scan_bad(j, "an unknown word");
    else
        j->pos += word.len;
}

// pos is at the opening quote.
static void skip_string(struct js *j)
{
    j->pos++;
    while (j->rc == 0) {
        j->pos = skip_plain(j->pos, j->end);
        if (j->pos == j->end) {
            scan_bad(j, "a string does not end");
            return;
        }
        unsigned char c = (unsigned char)*j->pos;
        if (c == '"') {
            j->pos++;
            return;
        }
        if (c == '\\') {
            skip_escape(j);
        } else if (c < 0x20) {
            scan_bad(j, "a control character in a string");
        } else {
            size_t n = utf8_sequence(j->pos, (size_t)(j->end - j->pos));
            if (n == 0)
                scan_bad(j, "a string is not UTF-8");
            j->pos += n;
        }
    }
}

// Finds the first byte that is a quote, a backslash, a control character or not ASCII.
static const char *skip_plain(const char *p, const char *end)
{
#ifdef __SSE2__
    const __m128i quote = _mm_set1_epi8('"'), back = _mm_set1_epi8('\\'),
                  space = _mm_set1_epi8(' ');
    for (; end - p >= 16; p += 16) {
        __m128i v = _mm_loadu_si128((const __m128i *)(const void *)p);
        // Signed comparison: bytes from 0x80 up are also less than a space.
        __m128i stop =
            _mm_or_si128(_mm_cmplt_epi8(v, space),
                         _mm_or_si128(_mm_cmpeq_epi8(v, quote), _mm_cmpeq_epi8(v, back)));
        int mask = _mm_movemask_epi8(stop);
        if (mask != 0)
            return p + __builtin_ctz((unsigned)mask);
    }
#else
    // A byte of x is below n exactly where x - n borrows. The high bits of x itself mark the
    // bytes beyond ASCII. A borrow may carry into higher bytes, so on a hit the bytes are
    // checked one by one.
    const uint64_t ones = 0x0101010101010101u, highs = ones << 7;
    for (; end - p >= 8; p += 8) {
        uint64_t v;
        memcpy(&v, p, sizeof v);
        uint64_t quote = v ^ (ones * '"'), back = v ^ (ones * '\\');
        if (((v - ones * ' ') | (quote - ones) | (back - ones) | v) & highs)
            break;
    }
#endif
    while (p < end && (unsigned char)*p >= 0x20 && (unsigned char)*p < 0x80 && *p != '"' &&
           *p != '\\')
        p++;
    return p;
}

// Four hexadecimal digits after \u; -1 if they are not there.
static int hex4(const char *p, const char *end)
{
    int v = 0;
    if (end - p < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        if (c >= '0' && c <= '9')
            v = v << 4 | (c - '0');
        else if ((c | 32) >= 'a' && (c | 32) <= 'f')
            v = v << 4 | ((c | 32) - 'a' + 10);
        else
            return -1;
    }
    return v;
}

static void skip_escape(struct js *j)
{
    const char *p = j->pos + 1;
    if (p < j->end && *p != '\0' && strchr("\"\\/bfnrt", *p)) {
        j->pos = p + 1;
        return;
    }
    int unit = p < j->end && *p == 'u' ? hex4(p + 1, j->end) : -1;
    if (unit < 0) {
        scan_bad(j, "an unknown escape");
        return;
    }
    p += 5;
    if (unit == 0) {
        scan_bad(j, "\\u0000 cannot be stored as text");
        return;
    }
    if (unit >= 0xd800 && unit <= 0xdfff) {
        bool pair = unit < 0xdc00 && j->end - p >= 6 && p[0] == '\\' && p[1] == 'u' &&
                    (hex4(p + 2, j->end) & ~0x3ff) == 0xdc00;
        if (!pair) {
            scan_bad(j, "half of a surrogate pair");
            return;
        }
        p += 6;
    }
    j->pos = p;
}

static const char *skip_digits(const char *p, const char *end)
{
    while (p < end && *p >= '0' && *p <= '9')
        p++;
    return p;
}

// The grammar is JSON's, the range that of numeric. For the range only the position of the
// first significant digit and the number of digits after the point matter. (PostgreSQL accepts
// 0e131072, after reserving the space for it; here zero has the same limits as other numbers.)
static void skip_number(struct js *j)
{
    const char *end = j->end, *p = j->pos + (*j->pos == '-');
    const char *whole = p;
    p = skip_digits(p, end);
    int64_t n_whole = p - whole, n_fraction = 0, exponent = 0;
    if (n_whole == 0 || (n_whole > 1 && *whole == '0')) {
        scan_bad(j, "a malformed number");
        return;
    }
    int64_t power = n_whole - 1;
    if (p < end && *p == '.') {
        const char *fraction = p + 1;
        p = skip_digits(fraction, end);
        n_fraction = p - fraction;
        if (n_fraction == 0) {
            scan_bad(j, "a malformed number");
            return;
        }
        if (*whole == '0') {
            power = -1;
            while (fraction < p && *fraction == '0')
                fraction++, power--;
        }
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        bool minus = p < end && *p == '-';
        p += p < end && (*p == '-' || *p == '+');
        const char *digits = p;
        p = skip_digits(p, end);
        if (p == digits) {
            scan_bad(j, "a malformed number");
            return;
        }
        for (const char *d = digits; d < p && exponent < 1000000; d++)
            exponent = exponent * 10 + (*d - '0');
        if (minus)
            exponent = -exponent;
    }
    if (power + exponent > MAX_POWER || n_fraction - exponent > MAX_SCALE) {
        scan_bad(j, "a number beyond the range of numeric");
        return;
    }
    j->pos = p;
}
