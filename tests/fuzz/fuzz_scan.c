// fuzz_scan.c: the scanner against jansson: what one takes the other takes.
//
// Where they may differ, and why:
//   - jansson takes a NUL byte for the end of its input: texts with one are only scanned;
//   - jansson reads numbers into long long and double, numeric is wider at the large end and
//     narrower at the small: numbers are blamed only when neither range is near;
//   - nesting: 256 here, 2048 there.
// Accepted input is also walked with the cursor, unescaped, written again and
// scanned again; that must agree with what jansson read.
//
// build: lib/json/scan.c lib/json/text.c lib/json/write.c -ljansson
#include <jansson.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/err.h"
#include "json/scan.h"
#include "json/write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// Both sides of a number's range are left alone if one could be near.
static bool has_odd_number(const char *p, size_t n)
{
    size_t digits = 0;
    for (size_t i = 0; i < n; i++) {
        digits = p[i] >= '0' && p[i] <= '9' ? digits + 1 : 0;
        bool exponent =
            i > 0 && (p[i] == 'e' || p[i] == 'E') && p[i - 1] >= '0' && p[i - 1] <= '9';
        if (digits > 18 || exponent)
            return true;
    }
    return false;
}

// The same value as jansson's, read through the cursor.
static void compare(struct js *j, const json_t *other, struct arena *a)
{
    span key, raw;
    size_t i = 0;
    bool flag;
    int64_t number;

    switch (js_peek(j)) {
    case JS_OBJECT:
        if (!json_is_object(other))
            BUG("an object only here");
        js_enter_object(j);
        while (js_next_key(j, &key)) {
            // Double keys: jansson keeps the last, so only presence is compared.
            struct buf quoted = {0};
            buf_putc(&quoted, '"');
            buf_put(&quoted, key);
            buf_putc(&quoted, '"');
            span name = js_text(arena_copy(a, buf_span(&quoted)), a);
            buf_free(&quoted);
            if (!json_object_get(other, arena_cstr(a, name)))
                BUG("a key only here");
            if (!js_key_is(key, name))
                BUG("a key that is not itself");
            js_skip(j);
        }
        break;
    case JS_ARRAY:
        js_enter_array(j);
        while (js_next_item(j))
            compare(j, json_array_get(other, i++), a);
        if (!json_is_array(other) || json_array_size(other) != i)
            BUG("arrays of different length");
        break;
    case JS_STRING:
        raw = js_text(js_skip(j), a);
        if (!json_is_string(other) || json_string_length(other) != raw.len ||
            memcmp(json_string_value(other), raw.ptr, raw.len) != 0)
            BUG("different text");
        break;
    case JS_NUMBER:
        raw = js_skip(j);
        if (!json_is_number(other))
            BUG("a number only here");
        if (json_is_integer(other) &&
            (!js_int(raw, &number) || number != json_integer_value(other)))
            BUG("different integers");
        break;
    case JS_BOOL:
        if (!js_bool(js_skip(j), &flag) || !json_is_boolean(other) ||
            flag != json_is_true(other))
            BUG("different booleans");
        break;
    case JS_NULL:
        js_skip(j);
        if (!json_is_null(other))
            BUG("null only here");
        break;
    case JS_NONE:
        BUG("peek says no to what skip accepted");
    }
}

static void write_again(span text)
{
    struct buf out = {0};
    js_put_text(&out, text);
    struct js j = js_read(buf_span(&out));
    js_skip(&j);
    struct arena a;
    arena_init(&a);
    if (js_finish(&j) != 0 || !span_eq(js_text(buf_span(&out), &a), text))
        BUG("text does not survive writing");
    arena_deinit(&a);
    buf_free(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = malloc(size > 0 ? size : 1); // of exact length, so that ASan sees an overrun
    memcpy(text, data, size);
    span s = {text, size};

    struct js j = js_read(s);
    span raw = js_skip(&j);
    bool ours = js_finish(&j) == 0;
    if (js_offset(&j) > size || (ours && (raw.ptr < text || raw.ptr + raw.len > text + size)))
        BUG("the cursor left the text");
    bool nul_or_deep =
        memchr(text, '\0', size) || (j.why && strcmp(j.why, "nested too deeply") == 0);
    bool numeric_range = j.why && strstr(j.why, "numeric");

    json_error_t error;
    json_t *other = nul_or_deep ? NULL : json_loadb(text, size, JSON_DECODE_ANY, &error);
    if (!nul_or_deep && !numeric_range && ours != (other != NULL) &&
        !(ours && has_odd_number(text, size)))
        BUG("ours %d, jansson %d: %s (%s)", ours, other != NULL, j.why ? j.why : "",
            error.text);
    if (ours && other) {
        struct arena a;
        arena_init(&a);
        struct js walk = js_read(s);
        if (!has_odd_number(text, size))
            compare(&walk, other, &a);
        if (walk.rc != 0)
            BUG("the walk fails where the skip does not");
        if (json_is_string(other))
            write_again((span){json_string_value(other), json_string_length(other)});
        arena_deinit(&a);
    }
    json_decref(other);
    free(text);
    return 0;
}
