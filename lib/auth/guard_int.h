// guard_int.h: verified identities, and how one is verified; shared by guard.c and verify.c.
#ifndef QUEEN_AUTH_GUARD_INT_H
#define QUEEN_AUTH_GUARD_INT_H

#include "auth/access.h"
#include "auth/auth_int.h"
#include "auth/guard.h"
#include "base/map.h"

// A verified token or API key.
struct known {
    struct access access;
    UT_hash_handle hh;
    TAILQ_ENTRY(known) recent;
    uint64_t version; // of the published keys that verified it
    int64_t until_s;
    bool is_key;
    char *sub;
    size_t n_sub, n_token;
    char token[];
};

TAILQ_HEAD(waiting_list, waiting);

struct guard {
    struct auth *auth;
    uv_loop_t *loop;
    struct known *known;
    TAILQ_HEAD(, known) recent; // least recently used first
    size_t known_bytes;
    uint64_t version; // newest version of the keys that this loop has seen
    struct guard_stats *stats;
    struct key_list *api_keys; // newest list that this loop has seen
    struct key_watcher key_watcher;
    uv_async_t api_keys_changed;
    struct waiting_list waiting;
    struct jwks_watcher watcher;
    uv_async_t changed;
    uv_timer_t watch; // runs while requests wait
    unsigned n_handles;
};

enum verdict { ADMITTED, REFUSED, MUST_WAIT };

// Each verifies a token that is not cached and remembers what it stands for; *out is borrowed.
// quiet: do not answer the request.
enum verdict verify_token(struct guard *g, struct http_req *req, span token, bool quiet,
                          struct known **out);
enum verdict verify_key(struct guard *g, struct http_req *req, span token, bool quiet,
                        struct known **out);
// token: see cert_of() in guard.c.
enum verdict verify_cert(struct guard *g, struct http_req *req, span token, bool quiet,
                         struct known **out);
// 0, or QE_UNAUTHORIZED, or QE_KEYS_AWAY: the table was not read yet.
int guard_find_key(const struct key_list *l, span token, const struct key_record **r,
                   struct fault *f);

// For verify.c: caches a valid identity; answers an invalid one.
struct known *guard_remember(struct guard *g, span token, uint64_t version,
                             const struct jwt_claims *claims);
void guard_refuse(struct guard *g, struct http_req *req, const struct fault *f);

#endif
