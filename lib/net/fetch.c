// fetch.c: requests with OpenSSL's HTTP client. It uses HTTP/1.0, so bodies are never chunked.
#include "net/fetch.h"

#include <string.h>
#include <time.h>

#include <openssl/err.h>
#include <openssl/http.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/attrs.h"
#include "base/str.h"

static BIO *on_connection(BIO *bio, void *arg, int connect, int is_tls);
static int read_all(BIO *bio, time_t deadline, struct buf *out, struct fault *f);

static const char *fetch_reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());

    return text ? text : "no answer";
}

int fetch_tls_new(SSL_CTX **out, struct fault *f)
{
    SSL_CTX *tls = SSL_CTX_new(TLS_client_method());

    *out = NULL;
    if (!tls || SSL_CTX_set_default_verify_paths(tls) != 1) {
        SSL_CTX_free(tls);
        return fault_set(f, QE_INTERNAL, "no TLS: %s", fetch_reason());
    }
    SSL_CTX_set_verify(tls, SSL_VERIFY_PEER, NULL);
    *out = tls;
    return 0;
}

void fetch_tls_free(SSL_CTX *tls) { SSL_CTX_free(tls); }

int fetch_get(const char *url, unsigned timeout_ms, struct buf *out, struct fault *f)
{
    int timeout_s = (int)((timeout_ms + 999) / 1000);
    time_t deadline = time(NULL) + timeout_s;
    char *host = NULL;
    SSL_CTX *tls;

    *out = (struct buf){.max = FETCH_MAX_BYTES};
    ERR_clear_error();
    int rc = fetch_tls_new(&tls, f);
    if (rc == 0 &&
        OSSL_HTTP_parse_url(url, NULL, NULL, &host, NULL, NULL, NULL, NULL, NULL) != 1)
        rc = fault_set(f, QE_CONF, "the address is malformed");
    if (rc == 0) {
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

int fetch_check_url(const char *url, struct fault *f)
{
    char *host = NULL;

    if (str_url_user(span_of(url)).ptr) // it is logged, and its user would not be used
        return fault_set(f, QE_CONF, "an address must not contain a user or password");
    bool is_http =
        str_starts(span_of(url), SPAN("http://")) || str_starts(span_of(url), SPAN("https://"));
    bool is_good = is_http && OSSL_HTTP_parse_url(url, NULL, NULL, &host, NULL, NULL, NULL,
                                                  NULL, NULL) == 1;

    is_good = is_good && host[0] != '\0';
    OPENSSL_free(host);
    ERR_clear_error();
    return is_good ? 0 : fault_set(f, QE_CONF, "%s is not an http or https address", url);
}

// OpenSSL reports the status only in the text of one of its errors.
static int post_failed(struct fault *f)
{
    unsigned long error;
    const char *data;
    int flags;

    while ((error = ERR_get_error_all(NULL, NULL, NULL, &data, &flags)) != 0) {
        const char *reason = ERR_reason_error_string(error);
        bool has_data = (flags & ERR_TXT_STRING) && data[0] != '\0';
        const char *code = has_data ? strcasestr(data, "code=") : NULL;
        if (!code && ERR_peek_error() != 0)
            continue;
        bool is_final = code && code[5] == '4' && strncmp(code + 5, "408", 3) != 0 &&
                        strncmp(code + 5, "429", 3) != 0;
        return fault_set(f, is_final ? QE_BAD_REQUEST : QE_NOT_FOUND, "%s%s%s",
                         reason ? reason : "no answer", has_data ? ": " : "",
                         has_data ? data : "");
    }
    return fault_set(f, QE_NOT_FOUND, "no answer");
}

int fetch_post(const struct fetch_post *post, struct fault *f)
{
    enum { BUFFER = 65536 };
    int timeout_s = (int)((post->timeout_ms + 999) / 1000), is_tls = 0, rc = 0;
    char *host = NULL, *port = NULL, *path = NULL;
    STACK_OF(CONF_VALUE) *headers = NULL;

    if (post->body.len > INT32_MAX)
        return fault_set(f, QE_TOO_LARGE, "the body is too large");
    ERR_clear_error();
    BIO *body = BIO_new_mem_buf(post->body.ptr, (int)post->body.len), *answer = NULL;
    for (unsigned i = 0; i < post->n_headers; i++)
        if (X509V3_add_value(post->headers[i].name, post->headers[i].value, &headers) != 1)
            rc = QE_NO_MEMORY;
    if (!body || rc != 0)
        rc = fault_set(f, QE_NO_MEMORY, "no memory for the request");
    else if (OSSL_HTTP_parse_url(post->url, &is_tls, NULL, &host, &port, NULL, &path, NULL,
                                 NULL) != 1)
        rc = fault_set(f, QE_CONF, "the address is malformed");
    if (rc == 0) {
        answer = OSSL_HTTP_transfer(
            NULL, host, port, path, is_tls, NULL, host, NULL, NULL, on_connection, post->tls,
            BUFFER, headers, post->content_type, body, NULL, 0, FETCH_MAX_BYTES, timeout_s, 0);
        rc = answer ? 0 : post_failed(f);
    }
    BIO_free_all(answer);
    BIO_free(body);
    sk_CONF_VALUE_pop_free(headers, X509V3_conf_free);
    OPENSSL_free(host);
    OPENSSL_free(port);
    OPENSSL_free(path);
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
