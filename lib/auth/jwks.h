// jwks.h: published keys (JWKS), fetched by a thread.
//
// One per process. Workers take the newest set by reference and are woken when a new one
// arrives; no call blocks. A set is fetched at start, when it gets old, and when a key is
// missing. The last is rate-limited, so that tokens with invented key ids do not cause a fetch
// each.
//
//     jwks_new ──► jwks_watch (each worker) ──► ... ──► jwks_unwatch ──► jwks_free
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
    unsigned gap_ms, failed_gap_ms; // least time between two fetches for missing keys
    // fetch_get(), or a test double
    int (*fetch)(const char *url, unsigned timeout_ms, struct buf *out, struct fault *f);
};

struct jwks_watcher {
    void (*changed)(void *ctx); // called by the fetching thread, after every attempt
    void *ctx;
    LIST_ENTRY(jwks_watcher) link; // used by jwks only
};

MUST_USE int jwks_new(struct jwks **j, const struct jwks_conf *conf, struct fault *f);
void jwks_free(struct jwks *j); // j may be NULL; call after all watchers are removed
void jwks_watch(struct jwks *j, struct jwks_watcher *w);
void jwks_unwatch(struct jwks *j, struct jwks_watcher *w); // changed is not called after this

// The newest set, given (keyset_unref), or NULL if none was ever fetched. *version changes with
// it.
struct keyset *jwks_current(struct jwks *j, uint64_t *version);

enum jwks_answer {
    JWKS_WAIT,   // a fetch is in progress: changed will be called
    JWKS_NEWER,  // a newer set is available
    JWKS_NO_KEY, // the set is fresh: the key does not exist
    JWKS_AWAY,   // the keys could not be fetched
};
// Call when set `version` lacks a key; returns how to proceed.
enum jwks_answer jwks_want(struct jwks *j, uint64_t version);

#endif
