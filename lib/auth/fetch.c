// fetch.c: HTTP GET with OpenSSL's client. It uses HTTP/1.0, so bodies are never chunked.
#include "auth/fetch.h"

#include <time.h>

#include <openssl/err.h>
#include <openssl/http.h>
#include <openssl/ssl.h>

static BIO *on_connection(BIO *bio, void *arg, int connect, int is_tls);
static int read_all(BIO *bio, time_t deadline, struct buf *out, struct fault *f);

static const char *fetch_reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());

    return text ? text : "no answer";
}

int fetch_get(const char *url, unsigned timeout_ms, struct buf *out, struct fault *f)
{
    int timeout_s = (int)((timeout_ms + 999) / 1000), rc;
    time_t deadline = time(NULL) + timeout_s;
    char *host = NULL;

    *out = (struct buf){.max = FETCH_MAX_BYTES};
    ERR_clear_error();
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());
    if (!tls || SSL_CTX_set_default_verify_paths(tls) != 1)
        rc = fault_set(f, QE_INTERNAL, "no TLS: %s", fetch_reason());
    else
        rc = 0;
    if (rc == 0 &&
        OSSL_HTTP_parse_url(url, NULL, NULL, &host, NULL, NULL, NULL, NULL, NULL) != 1)
        rc = fault_set(f, QE_CONF, "the address is malformed");
    if (rc == 0) {
        SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
        // The last host argument exempts the host from the environment's proxy.
        BIO *bio = OSSL_HTTP_get(url, NULL, host, NULL, NULL, on_connection, tls, 0, NULL, NULL,
                                 0, FETCH_MAX_BYTES, timeout_s);
        rc = bio ? read_all(bio, deadline, out, f)
                 : fault_set(f, QE_NOT_FOUND, "%s", fetch_reason());
        BIO_free_all(bio);
    }
    OPENSSL_free(host);
    SSL_CTX_free(tls);
    ERR_clear_error();
    return rc;
}

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual" // in OpenSSL's macro
static bool name_server(SSL *ssl, const char *host)
{
    return SSL_set1_host(ssl, host) == 1 && SSL_set_tlsext_host_name(ssl, host) == 1;
}
#pragma GCC diagnostic pop

// OpenSSL calls this once connected, and again before it closes the connection.
static BIO *on_connection(BIO *bio, void *arg, int connect, int is_tls)
{
    SSL *ssl = NULL;

    if (!connect || !is_tls)
        return bio;
    const char *host = BIO_get_conn_hostname(bio);
    BIO *tls = BIO_new_ssl(arg, 1);
    if (!tls || BIO_get_ssl(tls, &ssl) != 1 || !host || !name_server(ssl, host)) {
        BIO_free(tls);
        return NULL;
    }
    return BIO_push(tls, bio);
}

// Reads until the server closes. A truncated document is invalid JSON, which the caller
// detects.
static int read_all(BIO *bio, time_t deadline, struct buf *out, struct fault *f)
{
    char piece[4096];

    for (;;) {
        int n = BIO_read(bio, piece, sizeof piece);
        if (n > 0) {
            buf_put_bytes(out, piece, (size_t)n);
            if (out->failed)
                return fault_set(f, QE_TOO_LARGE, "the answer is too large");
        } else if (!BIO_should_retry(bio)) {
            return 0;
        } else if (BIO_wait(bio, deadline, 50) != 1) {
            return fault_set(f, QE_TIMEOUT, "no response in time");
        }
    }
}
