// fail.h: fills a queen_error.
#ifndef QUEEN_CLIENT_FAIL_H
#define QUEEN_CLIENT_FAIL_H

#include "base/attrs.h"
#include "base/span.h"
#include "queen/error.h"

// Writes the text and returns code, so that `return fail_set(err, ...)` works. The code
// determines whether the error is retryable. err may be NULL.
int fail_set(struct queen_error *err, int code, const char *fmt, ...) PRINTF_LIKE(3, 4);

// The error of a response: QUEEN_OK below 400, else by its status, with the text of "error" in
// its body if there is one.
int fail_of_status(struct queen_error *err, int status, span body);

#endif
