// context.h: named servers.
//
// Kept in $XDG_CONFIG_HOME/queen/contexts (or ~/.config/queen/contexts), mode 600, one JSON
// object per line: {"name", "url", "tokenFile", "caFile", "insecure", "current"}. It never
// contains tokens, only the names of the files that hold them.
#ifndef QUEEN_CLI_CONTEXT_H
#define QUEEN_CLI_CONTEXT_H

#include <stddef.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

struct context {
    const char *name;
    const char *url;
    const char *token_file; // or NULL
    const char *ca_file;    // or NULL
    bool insecure;
    bool current;
};

struct contexts {
    struct context *items;
    size_t n;
};

// All contexts in order; none if there is no file. Everything lives in the arena.
MUST_USE int contexts_read(struct contexts *out, struct arena *a, struct fault *f);
// Replaces the file atomically.
MUST_USE int contexts_write(const struct contexts *c, struct arena *a, struct fault *f);
// As a line of the file.
void context_put(struct buf *b, const struct context *c);
struct context *contexts_named(const struct contexts *c, const char *name); // or NULL

// The context of that name; with NULL the current one, or an empty context if there is none.
MUST_USE int context_find(const char *name, struct arena *a, struct context *out,
                          struct fault *f);

#endif
