// fail.h: filling a queen_error.
#ifndef QUEEN_CLIENT_FAIL_H
#define QUEEN_CLIENT_FAIL_H

#include "base/attrs.h"
#include "base/span.h"
#include "queen/error.h"

// Writes the sentence and returns code, so that `return fail_set(err, ...)` works.  Whether a
// retry makes sense follows from the code.  err may be NULL.
int fail_set(struct queen_error *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

// The error of an answer: QUEEN_OK below 400, else by its status, with the text of the key
// "error" in its body where there is one.
int fail_of_status(struct queen_error *err, int status, span body);

#endif
