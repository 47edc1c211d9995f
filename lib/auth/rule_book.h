// rule_book.h: rules by subject, from a file.
//
//     # subject      rules
//     build-server   push:orders.*,pop:orders.*
//     key:ci         read:*
//
// Subjects are those of tokens (`sub`), keys (`key:` and the name) and client certificates
// (`cert:` and the name). A subject must not contain white space and may occur several times.
#ifndef QUEEN_AUTH_RULE_BOOK_H
#define QUEEN_AUTH_RULE_BOOK_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

struct rule_book;

// Fails, naming the line, if a line is invalid.
MUST_USE int rule_book_read(const char *path, struct rule_book **out, struct fault *f);
struct rule_book *rule_book_ref(struct rule_book *b); // b may be NULL
void rule_book_unref(struct rule_book *b);            // likewise
// The rules of a subject, comma-separated and valid; SPAN_NONE: none. b may be NULL.
span rule_book_find(const struct rule_book *b, span subject);
bool rule_book_equal(const struct rule_book *a, const struct rule_book *b);

#endif
