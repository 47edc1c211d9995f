// tls_server.h: the server's side of TLS, as a filter between a socket and its reader.
//
//     socket ──► tls_stream_decrypt ──► plain bytes
//     plain bytes ──► tls_stream_send ──► socket
//
// A context holds certificate and key. It is counted: connections keep the one that they began
// with when the files are replaced. OpenSSL reads from the bytes that the caller has received,
// so that a read of the socket is decrypted completely and nothing but a partial record is
// kept. It writes to the socket directly; while the socket is full it keeps one record, and
// the caller must offer the same bytes again.
#ifndef QUEEN_NET_TLS_SERVER_H
#define QUEEN_NET_TLS_SERVER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

struct ssl_ctx_st;
struct tls_stream;

enum { TLS_STREAM_RECORD = 17 * 1024 }; // at most one partial record is kept

// PEM files; borrowed.
struct tls_server_conf {
    const char *cert, *key; // the certificate with its chain, and its key
    const char *client_ca; // authorities of client certificates; "" or NULL: none are requested
    bool client_cert_required; // refuse clients without one
};
MUST_USE int tls_server_load(struct ssl_ctx_st **out, const struct tls_server_conf *conf,
                             struct fault *f);
struct ssl_ctx_st *tls_server_ref(struct ssl_ctx_st *ctx);
void tls_server_unref(struct ssl_ctx_st *ctx); // ctx may be NULL
// When the first certificate of its chain expires: seconds since 1970.
int64_t tls_server_expires(struct ssl_ctx_st *ctx);

// NULL: no memory. The socket is borrowed, the context is not.
struct tls_stream *tls_stream_new(struct ssl_ctx_st *ctx, int fd);
void tls_stream_free(struct tls_stream *t); // sends a close alert if the socket has room
void tls_stream_end(struct tls_stream *t);  // nothing will be sent any more
bool tls_stream_is_ready(const struct tls_stream *t); // the handshake is complete

// The names in the client's certificate, which was verified: the common name first, then DNS
// names, addresses of mail and URIs, separated by NUL. Nothing without a certificate.
void tls_stream_client_names(const struct tls_stream *t, struct buf *out);

// Decrypts n bytes from the socket into out, which must have room for n bytes and for the
// record that an earlier call began (TLS_STREAM_RECORD). Returns the number of plain bytes, or
// -1 if the peer broke the protocol. *ended: the peer will send nothing more.
ssize_t tls_stream_decrypt(struct tls_stream *t, const char *in, size_t n, char *out,
                           size_t size, bool *ended);
// Returns the number of plain bytes sent, 0 if the socket is full, -1 if it is closed.
ssize_t tls_stream_send(struct tls_stream *t, const struct iovec *iov, unsigned n);

#endif
