// tls.h: TLS of the connections of the load generator.
#ifndef QUEEN_CLI_BENCH_TLS_H
#define QUEEN_CLI_BENCH_TLS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attrs.h"

struct ssl_ctx_st;
struct ssl_st;

// ca_file NULL: the authorities of the system.  fingerprint: SHA-256 of the only certificate
// to accept, in hexadecimal digits; NULL: none.  NULL, with an error on stderr.
struct ssl_ctx_st *bench_tls_context(const char *ca_file, const char *fingerprint);
void bench_tls_free(struct ssl_ctx_st *ctx); // ctx may be NULL

// Connects over a blocking socket, which bench_tls_close() leaves open.  NULL: the handshake
// failed, and errno is set.
struct ssl_st *bench_tls_open(struct ssl_ctx_st *ctx, int fd, const char *host);
void bench_tls_close(struct ssl_st *ssl); // ssl may be NULL

// As send() and recv() on a socket that does not block.
MUST_USE ssize_t bench_tls_send(struct ssl_st *ssl, const char *bytes, size_t n);
MUST_USE ssize_t bench_tls_recv(struct ssl_st *ssl, char *bytes, size_t n);

#endif
