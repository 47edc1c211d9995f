// token.h: the bearer token, from the options or from a file that may be renewed.
#ifndef QUEEN_CLIENT_TOKEN_H
#define QUEEN_CLIENT_TOKEN_H

#include <sys/stat.h>

#include "base/attrs.h"
#include "base/span.h"
#include "queen/error.h"

struct token {
    char *text; // NULL: none
    char *path; // NULL: not from a file
    struct timespec changed;
    off_t size;
    ino_t inode;
};

// Copied. A file that cannot be read now is an error; later the last token is kept instead.
MUST_USE int token_init(struct token *t, const char *text, const char *path,
                        struct queen_error *err);
void token_deinit(struct token *t);

// The token to send now, or SPAN_NONE; borrowed until the next call.
span token_now(struct token *t);

#endif
