// str.h: parsing and formatting of spans.
#ifndef QUEEN_BASE_STR_H
#define QUEEN_BASE_STR_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

// If a function returns false, its result is set to 0 or SPAN_NONE.
bool str_parse_u64(span s, uint64_t *v);  // the whole span, decimal, no sign
bool str_parse_i64(span s, int64_t *v);   // the whole span, optional '-'
bool str_parse_double(span s, double *v); // the whole span
// The rule of the contract for numbers in query parameters: use the leading decimal integer.
bool str_leading_i64(span s, int64_t *v); // false: it does not start with a digit
bool str_eq_nocase(span a, span b);       // ASCII
bool str_starts(span s, span prefix);
span str_trim(span s); // spaces and tabs
// Takes the next part off rest. Returns false, with *part set to SPAN_NONE, when nothing is
// left (rest->ptr is NULL). "a," has two parts, "" has one (empty), SPAN_NONE has none.
bool str_split(span *rest, char sep, span *part);
// The part between "scheme://" and '@' of a URL, which may hold a password; SPAN_NONE: none.
span str_url_user(span url);
bool str_is_utf8(span s);
size_t str_utf8_chars(span s); // characters of valid UTF-8
// Copies text into out, which has room for size bytes, as valid UTF-8 with a NUL at the end.
// Bytes that are not UTF-8 become '?'. Text that does not fit is cut between two characters;
// an incomplete character at the end of text is dropped. text may overlap out.
void str_clean_utf8(char *out, size_t size, span text);

// Decodes %XX; '+' becomes a space only if plus_is_space. Appends to out; false on a malformed
// escape (out is then undefined).
bool str_percent_decode(span s, bool plus_is_space, struct buf *out);

// Edit distance, for "did you mean"; 64 if a or b is longer than 64 characters.
unsigned str_distance(span a, span b);

// 2026-02-03T04:05:06.123456Z and ...06.123Z from microseconds since 1970.
enum { STR_TS_US = 27, STR_TS_MS = 24 };
void str_format_ts_us(int64_t unix_us, char out[STR_TS_US]); // no NUL
void str_format_ts_ms(int64_t unix_us, char out[STR_TS_MS]); // no NUL

#endif
