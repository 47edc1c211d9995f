// tls.c: OpenSSL directly on the socket.
#include "bench/load/tls.h"

#include <arpa/inet.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

enum { PIN = 32 };

// Of the whole program: one run has one server.
static bool pinned;
static unsigned char pin[PIN];

static bool read_pin(const char *text)
{
    unsigned n = 0;

    for (; *text; text++) {
        static const char digits[] = "0123456789abcdef";
        const char *digit = strchr(digits, *text >= 'A' && *text <= 'F' ? *text | 0x20 : *text);
        if (*text == ':')
            continue;
        if (!digit || n == 2 * PIN)
            return false;
        pin[n / 2] = (unsigned char)((n % 2 ? pin[n / 2] << 4 : 0) | (digit - digits));
        n++;
    }
    return n == 2 * PIN;
}

SSL_CTX *bench_tls_context(const char *ca_file, const char *fingerprint)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    int ok = ctx && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
             (ca_file ? SSL_CTX_load_verify_locations(ctx, ca_file, NULL)
                      : SSL_CTX_set_default_verify_paths(ctx)) == 1;

    pinned = fingerprint != NULL;
    if (!ok || (pinned && !read_pin(fingerprint))) {
        fprintf(stderr, "queen bench: %s cannot be used\n",
                ok ? "--fingerprint must be 64 hexadecimal digits; this one" : "--ca-file");
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, pinned ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(ctx, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    signal(SIGPIPE, SIG_IGN); // OpenSSL writes without MSG_NOSIGNAL
    return ctx;
}

void bench_tls_free(SSL_CTX *ctx) { SSL_CTX_free(ctx); }

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual" // in OpenSSL's macro
static bool expect_host(SSL *ssl, const char *host)
{
    unsigned char scratch[16];

    if (inet_pton(AF_INET, host, scratch) == 1 || inet_pton(AF_INET6, host, scratch) == 1)
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set_tlsext_host_name(ssl, host) == 1 && SSL_set1_host(ssl, host) == 1;
}
#pragma GCC diagnostic pop

static bool has_pinned(const SSL *ssl)
{
    const X509 *x = SSL_get0_peer_certificate(ssl);
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    return x && X509_digest(x, EVP_sha256(), digest, &n) == 1 && n == PIN &&
           memcmp(digest, pin, PIN) == 0;
}

SSL *bench_tls_open(SSL_CTX *ctx, int fd, const char *host)
{
    SSL *ssl = SSL_new(ctx);

    if (ssl && SSL_set_fd(ssl, fd) == 1 && expect_host(ssl, host) && SSL_connect(ssl) == 1 &&
        (!pinned || has_pinned(ssl)))
        return ssl;
    SSL_free(ssl);
    ERR_clear_error();
    errno = EPROTO;
    return NULL;
}

void bench_tls_close(SSL *ssl) { SSL_free(ssl); }

static ssize_t failed(SSL *ssl, int rc)
{
    switch (SSL_get_error(ssl, rc)) {
    case SSL_ERROR_WANT_READ:
    case SSL_ERROR_WANT_WRITE:
        errno = EAGAIN;
        return -1;
    case SSL_ERROR_ZERO_RETURN:
        return 0;
    default:
        ERR_clear_error();
        errno = ECONNRESET;
        return -1;
    }
}

ssize_t bench_tls_send(SSL *ssl, const char *bytes, size_t n)
{
    size_t done;

    ERR_clear_error();
    int rc = SSL_write_ex(ssl, bytes, n, &done);
    return rc == 1 ? (ssize_t)done : failed(ssl, rc);
}

ssize_t bench_tls_recv(SSL *ssl, char *bytes, size_t n)
{
    size_t done;

    ERR_clear_error();
    int rc = SSL_read_ex(ssl, bytes, n, &done);
    return rc == 1 ? (ssize_t)done : failed(ssl, rc);
}
