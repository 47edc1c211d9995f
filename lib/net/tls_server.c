// tls_server.c: OpenSSL between received bytes and a socket.
#include "net/tls_server.h"

#include <errno.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include "base/mem.h"

struct tls_stream {
    SSL *ssl;
    const char *in; // received bytes that OpenSSL has not taken yet
    size_t n_in;
    int fd;
    bool broken;  // an error was reported: nothing may be sent
    bool pending; // a record waits for room in the socket
};

static const char *tls_reason(void)
{
    const char *text = ERR_reason_error_string(ERR_peek_last_error());

    return text ? text : "unknown reason";
}

// ---- the context ----

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wcast-qual" // in OpenSSL's macros
static bool context_limits(SSL_CTX *ctx)
{
    static const char suites[] = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-RSA-AES128-GCM-SHA256:"
                                 "ECDHE-ECDSA-AES256-GCM-SHA384:ECDHE-RSA-AES256-GCM-SHA384:"
                                 "ECDHE-ECDSA-CHACHA20-POLY1305:ECDHE-RSA-CHACHA20-POLY1305";

    SSL_CTX_set_options(ctx, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                 SSL_OP_CIPHER_SERVER_PREFERENCE);
    // An idle connection keeps no buffers; a record whose write must be repeated may have
    // moved.
    SSL_CTX_set_mode(ctx, SSL_MODE_RELEASE_BUFFERS | SSL_MODE_ENABLE_PARTIAL_WRITE |
                              SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
    SSL_CTX_set_session_cache_mode(ctx, SSL_SESS_CACHE_OFF); // tickets need no shared memory
    return SSL_CTX_set_min_proto_version(ctx, TLS1_2_VERSION) == 1 &&
           SSL_CTX_set_cipher_list(ctx, suites) == 1 && SSL_CTX_set_num_tickets(ctx, 1) == 1;
}
#pragma GCC diagnostic pop

// We speak http/1.1; a client that offers only other protocols is refused.
static int choose_protocol(SSL *ssl, const unsigned char **out, unsigned char *n_out,
                           const unsigned char *in, unsigned n_in, void *arg)
{
    static const unsigned char ours[] = "\x08http/1.1";
    unsigned char *chosen;

    (void)ssl, (void)arg;
    if (SSL_select_next_proto(&chosen, n_out, ours, sizeof ours - 1, in, n_in) !=
        OPENSSL_NPN_NEGOTIATED)
        return SSL_TLSEXT_ERR_ALERT_FATAL;
    *out = chosen;
    return SSL_TLSEXT_ERR_OK;
}

// Resumed sessions carry the client's certificate. The context's name keeps them from being
// resumed elsewhere; without it OpenSSL refuses to resume them at all.
static bool request_clients(SSL_CTX *ctx, const struct tls_server_conf *conf)
{
    static const unsigned char name[] = "queen";
    int mode = SSL_VERIFY_PEER;

    if (conf->client_cert_required)
        mode |= SSL_VERIFY_FAIL_IF_NO_PEER_CERT;
    SSL_CTX_set_verify(ctx, mode, NULL);
    STACK_OF(X509_NAME) *names = SSL_load_client_CA_file(conf->client_ca);
    if (!names)
        return false;
    SSL_CTX_set_client_CA_list(ctx, names);
    return SSL_CTX_load_verify_locations(ctx, conf->client_ca, NULL) == 1 &&
           SSL_CTX_set_purpose(ctx, X509_PURPOSE_SSL_CLIENT) == 1 &&
           SSL_CTX_set_session_id_context(ctx, name, sizeof name - 1) == 1;
}

int tls_server_load(struct ssl_ctx_st **out, const struct tls_server_conf *conf,
                    struct fault *f)
{
    const char *cert = conf->cert, *key = conf->key;
    bool has_clients = conf->client_ca && conf->client_ca[0] != '\0';
    int rc = 0;

    *out = NULL;
    ERR_clear_error();
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    if (!ctx || !context_limits(ctx))
        rc = fault_set(f, QE_CONF, "cannot set up TLS: %s", tls_reason());
    else if (SSL_CTX_use_certificate_chain_file(ctx, cert) != 1)
        rc = fault_set(f, QE_CONF, "cannot use the certificate %s: %s", cert, tls_reason());
    else if (SSL_CTX_use_PrivateKey_file(ctx, key, SSL_FILETYPE_PEM) != 1)
        rc = fault_set(f, QE_CONF, "cannot use the key %s: %s", key, tls_reason());
    else if (SSL_CTX_check_private_key(ctx) != 1)
        rc = fault_set(f, QE_CONF, "the key %s does not belong to the certificate %s", key,
                       cert);
    else if (has_clients && !request_clients(ctx, conf))
        rc = fault_set(f, QE_CONF, "cannot use the authorities %s: %s", conf->client_ca,
                       tls_reason());
    ERR_clear_error();
    if (rc != 0) {
        SSL_CTX_free(ctx);
        return rc;
    }
    SSL_CTX_set_alpn_select_cb(ctx, choose_protocol, NULL);
    *out = ctx;
    return 0;
}

struct ssl_ctx_st *tls_server_ref(struct ssl_ctx_st *ctx)
{
    SSL_CTX_up_ref(ctx);
    return ctx;
}

void tls_server_unref(struct ssl_ctx_st *ctx) { SSL_CTX_free(ctx); }

static int64_t certificate_end(const X509 *x)
{
    struct tm end;

    if (!x || ASN1_TIME_to_tm(X509_get0_notAfter(x), &end) != 1)
        return INT64_MAX;
    return (int64_t)timegm(&end);
}

int64_t tls_server_expires(struct ssl_ctx_st *ctx)
{
    STACK_OF(X509) *chain = NULL;
    int64_t first = certificate_end(SSL_CTX_get0_certificate(ctx));

    SSL_CTX_get_extra_chain_certs(ctx, &chain);
    for (int i = 0; i < sk_X509_num(chain); i++) {
        int64_t end = certificate_end(sk_X509_value(chain, i));
        first = end < first ? end : first;
    }
    return first;
}

// ---- between OpenSSL and the socket ----

static int take_received(BIO *bio, char *out, int size)
{
    struct tls_stream *t = BIO_get_data(bio);

    BIO_clear_retry_flags(bio);
    if (t->n_in == 0) {
        BIO_set_retry_read(bio);
        return -1;
    }
    size_t n = t->n_in < (size_t)size ? t->n_in : (size_t)size;
    memcpy(out, t->in, n);
    t->in += n;
    t->n_in -= n;
    return (int)n;
}

static int put_on_socket(BIO *bio, const char *bytes, int n)
{
    const struct tls_stream *t = BIO_get_data(bio);
    ssize_t sent;

    BIO_clear_retry_flags(bio);
    do
        sent = send(t->fd, bytes, (size_t)n, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK))
        BIO_set_retry_write(bio);
    return (int)sent;
}

static long control(BIO *bio, int cmd, long num, void *ptr)
{
    (void)bio, (void)num, (void)ptr;
    return cmd == BIO_CTRL_FLUSH;
}

static BIO_METHOD *method;

static void make_method(void)
{
    method = BIO_meth_new(BIO_TYPE_SOURCE_SINK | BIO_get_new_index(), "queen socket");
    if (!method || BIO_meth_set_read(method, take_received) != 1 ||
        BIO_meth_set_write(method, put_on_socket) != 1 ||
        BIO_meth_set_ctrl(method, control) != 1)
        BUG("OpenSSL has no memory at start");
}

struct tls_stream *tls_stream_new(struct ssl_ctx_st *ctx, int fd)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct tls_stream *t = mem_new(struct tls_stream);

    pthread_once(&once, make_method);
    t->fd = fd;
    t->ssl = SSL_new(ctx);
    BIO *bio = BIO_new(method);
    if (!t->ssl || !bio) {
        SSL_free(t->ssl);
        BIO_free(bio);
        free(t);
        return NULL;
    }
    BIO_set_data(bio, t);
    BIO_set_init(bio, 1);
    SSL_set_bio(t->ssl, bio, bio);
    SSL_set_accept_state(t->ssl);
    return t;
}

bool tls_stream_is_ready(const struct tls_stream *t) { return SSL_is_init_finished(t->ssl); }

// Names are parts of rules and log lines: others than printable ASCII are left out.
static void put_cert_name(struct buf *out, const ASN1_STRING *text)
{
    const unsigned char *bytes = ASN1_STRING_get0_data(text);
    int n = ASN1_STRING_length(text);

    for (int i = 0; i < n; i++)
        if (bytes[i] <= ' ' || bytes[i] > '~' || bytes[i] == '"' || bytes[i] == '\\')
            return;
    if (n <= 0 || n > 255)
        return;
    if (out->len > 0)
        buf_putc(out, '\0');
    buf_put_bytes(out, bytes, (size_t)n);
}

void tls_stream_client_names(const struct tls_stream *t, struct buf *out)
{
    X509 *x = SSL_get0_peer_certificate(t->ssl);

    if (!x || SSL_get_verify_result(t->ssl) != X509_V_OK)
        return;
    X509_NAME *subject = X509_get_subject_name(x);
    int at = X509_NAME_get_index_by_NID(subject, NID_commonName, -1);
    if (at >= 0)
        put_cert_name(out, X509_NAME_ENTRY_get_data(X509_NAME_get_entry(subject, at)));
    GENERAL_NAMES *more = X509_get_ext_d2i(x, NID_subject_alt_name, NULL, NULL);
    for (int i = 0; more && i < sk_GENERAL_NAME_num(more) && i < 32; i++) {
        const GENERAL_NAME *name = sk_GENERAL_NAME_value(more, i);
        if (name->type == GEN_DNS || name->type == GEN_EMAIL || name->type == GEN_URI)
            put_cert_name(out, name->d.ia5);
    }
    GENERAL_NAMES_free(more);
    ERR_clear_error();
}

void tls_stream_end(struct tls_stream *t)
{
    if (t->broken || t->pending || !tls_stream_is_ready(t))
        return;
    ERR_clear_error();
    t->broken = SSL_shutdown(t->ssl) < 0; // the peer's answer is not awaited
    ERR_clear_error();
}

void tls_stream_free(struct tls_stream *t)
{
    tls_stream_end(t);
    SSL_free(t->ssl);
    free(t);
}

// OpenSSL returns after each record. Without room for its own answers (a peer that requests new
// keys and does not read) the connection is given up.
ssize_t tls_stream_decrypt(struct tls_stream *t, const char *in, size_t n, char *out,
                           size_t size, bool *ended)
{
    size_t total = 0;

    *ended = false;
    t->in = in;
    t->n_in = n;
    ERR_clear_error();
    for (;;) {
        size_t got = 0;
        int rc = SSL_read_ex(t->ssl, out + total, size - total, &got);
        total += got;
        if (rc == 1)
            continue;
        int why = SSL_get_error(t->ssl, rc);
        if (why == SSL_ERROR_WANT_READ && t->n_in == 0)
            break;
        if (why == SSL_ERROR_ZERO_RETURN) {
            *ended = true;
            break;
        }
        t->broken = true;
        ERR_clear_error();
        return -1;
    }
    t->in = NULL; // bytes after the peer's end are dropped
    t->n_in = 0;
    return (ssize_t)total;
}

ssize_t tls_stream_send(struct tls_stream *t, const struct iovec *iov, unsigned n)
{
    ssize_t total = 0;

    ERR_clear_error();
    for (unsigned i = 0; i < n; i++) {
        for (size_t at = 0, done; at < iov[i].iov_len; at += done) {
            int rc =
                SSL_write_ex(t->ssl, (char *)iov[i].iov_base + at, iov[i].iov_len - at, &done);
            t->pending = rc != 1 && SSL_get_error(t->ssl, rc) == SSL_ERROR_WANT_WRITE;
            if (t->pending)
                return total;
            if (rc != 1) {
                t->broken = true;
                ERR_clear_error();
                return -1;
            }
            total += (ssize_t)done;
        }
    }
    return total;
}
