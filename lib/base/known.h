// known.h: the names that a request may use, and what to say about any other.
//
// A misspelled name must not change the meaning of a request: a filter that is not read selects
// everything.  There are two rules.
//
//      KNOWN_ONLY     our own endpoints, and all that destroy something: an unknown name is an
//                     error
//      KNOWN_OR_FAR   the public contract, whose clients send names that we do not read: an
//                     unknown name is ignored, unless it is near a known one (known_is_near)
//
// The check costs time in proportion to the length of the name.  The distance to every known
// name is computed once, for the error.
#ifndef QUEEN_BASE_KNOWN_H
#define QUEEN_BASE_KNOWN_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

enum known_rule { KNOWN_ONLY, KNOWN_OR_FAR };

// One of the two, borrowed.
struct known_names {
    const char *const *texts; // ends with NULL
    const span *spans;
    unsigned n_spans;
};

// 0: the name is known, or is ignored.  Else QE_BAD_PARAM, with a sentence that names it and
// the nearest known name; what: "member", "query parameter".
MUST_USE int known_check(span name, const struct known_names *known, enum known_rule rule,
                         const char *what, struct fault *f);

// The two differ in letter case, or in one character that is added, left out or replaced, or in
// two neighbouring characters that are swapped.  Names of one or two characters are near
// nothing, because every other short name would be near them.
bool known_is_near(span name, span known);

#endif
