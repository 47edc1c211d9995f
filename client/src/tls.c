// tls.c: an SSL object between two memory BIOs.
#include "tls.h"

#include <arpa/inet.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/mem.h"
#include "fail.h"

struct tls {
    SSL *ssl;
    BIO *in, *out; // owned by the SSL
    bool was_closed;
};

static const char *tls_reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());

    return text ? text : "unknown reason";
}

enum { PIN_BYTES = 32 };

// "AB:CD:..." into bytes.
static bool read_pin(const char *text, uint8_t pin[PIN_BYTES])
{
    unsigned n = 0;

    for (; *text; text++) {
        const char *digits = "0123456789abcdef";
        const char *digit = strchr(digits, *text >= 'A' && *text <= 'F' ? *text | 0x20 : *text);
        if (*text == ':')
            continue;
        if (!digit || n == 2 * PIN_BYTES)
            return false;
        pin[n / 2] = (uint8_t)((n % 2 ? pin[n / 2] << 4 : 0) | (digit - digits));
        n++;
    }
    return n == 2 * PIN_BYTES;
}

static void free_pin(void *parent, void *ptr, CRYPTO_EX_DATA *ad, int index, long argl,
                     void *argp)
{
    (void)parent, (void)ad, (void)index, (void)argl, (void)argp;
    free(ptr);
}

static int pin_index = -1;
static pthread_once_t pin_once = PTHREAD_ONCE_INIT;

static void make_pin_index(void)
{
    pin_index = SSL_CTX_get_ex_new_index(0, NULL, NULL, NULL, free_pin);
}

static bool set_pin(SSL_CTX *ctx, const char *fingerprint)
{
    uint8_t *pin = mem_zalloc(1, PIN_BYTES);

    pthread_once(&pin_once, make_pin_index);
    if (read_pin(fingerprint, pin) && SSL_CTX_set_ex_data(ctx, pin_index, pin) == 1)
        return true;
    free(pin);
    return false;
}

static const uint8_t *pin_of(const SSL_CTX *ctx)
{
    pthread_once(&pin_once, make_pin_index);
    return SSL_CTX_get_ex_data(ctx, pin_index);
}

// Whether the server has the certificate that was asked for.
static bool has_pinned(const SSL *ssl)
{
    const uint8_t *pin = pin_of(SSL_get_SSL_CTX(ssl));
    const X509 *x = SSL_get0_peer_certificate(ssl);
    uint8_t digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;

    return !pin || (x && X509_digest(x, EVP_sha256(), digest, &n) == 1 && n == PIN_BYTES &&
                    CRYPTO_memcmp(digest, pin, PIN_BYTES) == 0);
}

SSL_CTX *tls_context_new(const char *ca_file, const char *fingerprint, bool insecure,
                         struct queen_error *err)
{
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_client_method());
    int ok = ctx && SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1;

    if (ok && ca_file)
        ok = SSL_CTX_load_verify_locations(ctx, ca_file, NULL) == 1;
    else if (ok)
        ok = SSL_CTX_set_default_verify_paths(ctx) == 1;
    if (!ok) {
        fail_set(err, QUEEN_E_ARGUMENT, "ca_file %s: %s", ca_file ? ca_file : "of the system",
                 tls_reason());
        SSL_CTX_free(ctx);
        ERR_clear_error();
        return NULL;
    }
    if (fingerprint && !set_pin(ctx, fingerprint)) {
        fail_set(err, QUEEN_E_ARGUMENT,
                 "fingerprint must be 64 hexadecimal digits, with or without colons");
        SSL_CTX_free(ctx);
        return NULL;
    }
    SSL_CTX_set_verify(ctx, insecure || fingerprint ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    SSL_CTX_set_mode(ctx, SSL_MODE_AUTO_RETRY);
    return ctx;
}

void tls_context_free(SSL_CTX *ctx) { SSL_CTX_free(ctx); }

static bool is_ip(const char *host)
{
    unsigned char scratch[16];

    return inet_pton(AF_INET, host, scratch) == 1 || inet_pton(AF_INET6, host, scratch) == 1;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual" // in OpenSSL's macro
// A server may need the name to choose its certificate, or the site, whether or not we check
// it. SNI takes only names.
static bool name_host(SSL *ssl, const char *host)
{
    return is_ip(host) || SSL_set_tlsext_host_name(ssl, host) == 1;
}
#pragma GCC diagnostic pop

// A certificate names a host or an IP address, in different fields.
static bool expect_host(SSL *ssl, const char *host)
{
    if (is_ip(host))
        return X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(ssl), host) == 1;
    return SSL_set1_host(ssl, host) == 1;
}

struct tls *tls_new(SSL_CTX *ctx, const char *host, bool insecure)
{
    struct tls *t = mem_new(struct tls);

    t->ssl = SSL_new(ctx);
    t->in = BIO_new(BIO_s_mem());
    t->out = BIO_new(BIO_s_mem());
    if (!t->ssl || !t->in || !t->out || !name_host(t->ssl, host) ||
        (!insecure && !pin_of(ctx) && !expect_host(t->ssl, host))) {
        SSL_free(t->ssl);
        BIO_free(t->in);
        BIO_free(t->out);
        free(t);
        return NULL;
    }
    BIO_set_mem_eof_return(t->in, -1); // an empty BIO means "try again"
    SSL_set_bio(t->ssl, t->in, t->out);
    SSL_set_connect_state(t->ssl);
    return t;
}

void tls_free(struct tls *t)
{
    if (!t)
        return;
    SSL_free(t->ssl); // frees both BIOs, too
    free(t);
}

enum tls_result tls_handshake(struct tls *t, struct queen_error *err)
{
    ERR_clear_error();
    int rc = SSL_do_handshake(t->ssl);

    if (rc == 1 && has_pinned(t->ssl))
        return TLS_DONE;
    if (rc == 1) { // nothing was sent yet
        fail_set(err, QUEEN_E_TLS, "TLS: the certificate has another fingerprint");
        return TLS_FAILED;
    }
    if (SSL_get_error(t->ssl, rc) == SSL_ERROR_WANT_READ)
        return TLS_MORE;
    long verified = SSL_get_verify_result(t->ssl);
    if (verified != X509_V_OK)
        fail_set(err, QUEEN_E_TLS, "TLS: the certificate is not accepted: %s",
                 X509_verify_cert_error_string(verified));
    else
        fail_set(err, QUEEN_E_TLS, "TLS: %s", tls_reason());
    ERR_clear_error();
    return TLS_FAILED;
}

void tls_feed(struct tls *t, const char *bytes, size_t n)
{
    while (n > 0) { // a memory BIO accepts everything, in pieces that fit an int
        int piece = n > INT_MAX ? INT_MAX : (int)n;
        BIO_write(t->in, bytes, piece);
        bytes += piece;
        n -= (size_t)piece;
    }
}

bool tls_write(struct tls *t, const char *bytes, size_t n)
{
    size_t done = 0;

    ERR_clear_error();
    return n == 0 || (SSL_write_ex(t->ssl, bytes, n, &done) == 1 && done == n);
}

ssize_t tls_read(struct tls *t, char *bytes, size_t n)
{
    ERR_clear_error();
    int got = SSL_read(t->ssl, bytes, n > INT_MAX ? INT_MAX : (int)n);

    if (got > 0)
        return got;
    int why = SSL_get_error(t->ssl, got);
    // SSL_get_shutdown() is also set by a fatal alert, behind which data may be missing.
    t->was_closed = why == SSL_ERROR_ZERO_RETURN;
    return why == SSL_ERROR_WANT_READ ? 0 : -1;
}

bool tls_was_closed(const struct tls *t) { return t->was_closed; }

void tls_take(struct tls *t, struct buf *out)
{
    char *bytes;
    long n = BIO_get_mem_data(t->out, &bytes);

    if (n > 0)
        buf_put_bytes(out, bytes, (size_t)n);
    (void)BIO_reset(t->out);
}
