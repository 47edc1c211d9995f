// jwks.h: keys that somebody publishes, fetched by a thread of their own.
//
// One per process.  Workers take the newest set by reference and are woken when one has come;
// nobody ever waits inside a call.  A set is fetched at start, when it gets old, and when
// somebody misses a key, but then only every few seconds: whoever sends tokens with invented
// key ids must not make us ask for each.
//
//      jwks_new ──► jwks_watch (each worker) ──► ... ──► jwks_unwatch ──► jwks_free
#ifndef QUEEN_AUTH_JWKS_H
#define QUEEN_AUTH_JWKS_H

#include <stdint.h>
#include <sys/queue.h>

#include "auth/keyset.h"
#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

struct jwks;

struct jwks_conf {
    const char *url; // borrowed
    unsigned refresh_s, timeout_ms;
    unsigned gap_ms, failed_gap_ms; // least time between two fetches that were asked for
    // fetch_get(), or a test's
    int (*fetch)(const char *url, unsigned timeout_ms, struct buf *out, struct fault *f);
};

struct jwks_watcher {
    void (*changed)(void *ctx); // from the fetching thread, after every try
    void *ctx;
    LIST_ENTRY(jwks_watcher) link; // jwks' own
};

MUST_USE int jwks_new(struct jwks **j, const struct jwks_conf *conf, struct fault *f);
void jwks_free(struct jwks *j); // NULL is fine; all watchers are gone
void jwks_watch(struct jwks *j, struct jwks_watcher *w);
void jwks_unwatch(struct jwks *j, struct jwks_watcher *w); // changed is not called after this

// The newest set, given (keyset_unref), or NULL: there has never been one.  *version changes
// with it.
struct keyset *jwks_current(struct jwks *j, uint64_t *version);

enum jwks_answer {
    JWKS_WAIT,   // a fetch is under way: changed will be called
    JWKS_NEWER,  // there is a newer set than that
    JWKS_NO_KEY, // the set is fresh: there is no such key
    JWKS_AWAY,   // it could not be fetched
};
// Set `version` lacks a key: what to do?
enum jwks_answer jwks_want(struct jwks *j, uint64_t version);

#endif
