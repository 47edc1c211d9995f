// tls.h: OpenSSL over memory, so that the socket is ours (and no write raises SIGPIPE).
//
//      socket ──► tls_feed ──► tls_read  ──► plain
//      plain  ──► tls_write ──► tls_take ──► socket
#ifndef QUEEN_CLIENT_TLS_H
#define QUEEN_CLIENT_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "queen/error.h"

struct ssl_ctx_st;
struct tls;

// NULL with an error when ca_file cannot be used.  ca_file NULL: the system's authorities.
struct ssl_ctx_st *tls_context_new(const char *ca_file, bool insecure, struct queen_error *err);
void tls_context_free(struct ssl_ctx_st *ctx);

// host is what the certificate must be for.
struct tls *tls_new(struct ssl_ctx_st *ctx, const char *host, bool insecure);
void tls_free(struct tls *t); // NULL is fine

enum tls_result { TLS_DONE, TLS_MORE, TLS_FAILED };

// Goes on with the handshake after every feed; TLS_FAILED fills err.
MUST_USE enum tls_result tls_handshake(struct tls *t, struct queen_error *err);
void tls_feed(struct tls *t, const char *bytes, size_t n);
bool tls_write(struct tls *t, const char *bytes, size_t n);
ssize_t tls_read(struct tls *t, char *bytes, size_t n); // 0: more is needed; -1: closed, broken
bool tls_was_closed(const struct tls *t);      // the other side has said that it is done
void tls_take(struct tls *t, struct buf *out); // appends what has to be sent

#endif
