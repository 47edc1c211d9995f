// tls.h: TLS over memory buffers, so that this library writes to the socket itself (and no
// write raises SIGPIPE).
//
//     socket ──► tls_feed ──► tls_read  ──► plain
//     plain  ──► tls_write ──► tls_take ──► socket
#ifndef QUEEN_CLIENT_TLS_H
#define QUEEN_CLIENT_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "queen/error.h"

struct ssl_ctx_st;
struct tls;

// NULL with an error if ca_file or fingerprint cannot be used. ca_file NULL: the system's
// authorities. fingerprint: see queen_options; NULL: none.
struct ssl_ctx_st *tls_context_new(const char *ca_file, const char *fingerprint, bool insecure,
                                   struct queen_error *err);
void tls_context_free(struct ssl_ctx_st *ctx);

// host must match the certificate.
struct tls *tls_new(struct ssl_ctx_st *ctx, const char *host, bool insecure);
void tls_free(struct tls *t); // t may be NULL

enum tls_result { TLS_DONE, TLS_MORE, TLS_FAILED };

// Continues the handshake after every feed; TLS_FAILED fills err.
MUST_USE enum tls_result tls_handshake(struct tls *t, struct queen_error *err);
void tls_feed(struct tls *t, const char *bytes, size_t n);
bool tls_write(struct tls *t, const char *bytes, size_t n);
// 0: more input is needed; -1: closed or broken
ssize_t tls_read(struct tls *t, char *bytes, size_t n);
bool tls_was_closed(const struct tls *t);      // the peer has sent close_notify
void tls_take(struct tls *t, struct buf *out); // appends the bytes to send

#endif
