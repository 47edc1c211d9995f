// Tests of the boundaries of answers inside a TLS stream: several records may arrive at once,
// and the stream may end in several ways.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <arpa/inet.h>
#include <openssl/ssl.h>
#include <openssl/x509.h>
#include <pthread.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#include "queen/client.h"
#include "until.h"

static const char one[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none";
static const char stray[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstray";
static const char two[] = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\ntwo";

struct server {
    int listener;
    unsigned port;
    SSL_CTX *ctx;
    pthread_t thread;
};

static SSL_CTX *self_signed(void)
{
    SSL_CTX *ctx = SSL_CTX_new(TLS_server_method());
    EVP_PKEY *key = EVP_EC_gen("P-256");
    X509 *x = X509_new();

    X509_gmtime_adj(X509_getm_notBefore(x), 0);
    X509_gmtime_adj(X509_getm_notAfter(x), 3600);
    X509_set_pubkey(x, key);
    assert_true(X509_sign(x, key, EVP_sha256()) > 0);
    assert_int_equal(SSL_CTX_use_certificate(ctx, x), 1);
    assert_int_equal(SSL_CTX_use_PrivateKey(ctx, key), 1);
    X509_free(x);
    EVP_PKEY_free(key);
    return ctx;
}

// The next connection, after its handshake. Its output stays in memory until send_all().
static SSL *accept_tls(struct server *s)
{
    SSL *ssl = SSL_new(s->ctx);

    SSL_set_fd(ssl, accept(s->listener, NULL, NULL));
    assert_int_equal(SSL_accept(ssl), 1);
    SSL_set0_wbio(ssl, BIO_new(BIO_s_mem()));
    return ssl;
}

// False: the client has closed the connection.
static bool read_head(SSL *ssl)
{
    char bytes[4096];
    size_t len = 0;
    int n;

    while ((n = SSL_read(ssl, bytes + len, (int)(sizeof bytes - len))) > 0) {
        len += (size_t)n;
        if (memmem(bytes, len, "\r\n\r\n", 4))
            return true;
    }
    return false;
}

static void send_all(SSL *ssl)
{
    char *bytes;
    long n = BIO_get_mem_data(SSL_get_wbio(ssl), &bytes);

    assert_int_equal(send(SSL_get_rfd(ssl), bytes, (size_t)n, MSG_NOSIGNAL), n);
    (void)BIO_reset(SSL_get_wbio(ssl));
}

static void end(SSL *ssl)
{
    close(SSL_get_rfd(ssl));
    SSL_free(ssl);
}

// Sends a second answer, which nobody has requested, together with the first.
static void *run(void *arg)
{
    struct server *s = arg;
    SSL *ssl = accept_tls(s);

    assert_true(read_head(ssl));
    SSL_write(ssl, one, sizeof one - 1);
    SSL_write(ssl, stray, sizeof stray - 1);
    send_all(ssl);
    if (!read_head(ssl)) { // the second request comes on another connection
        end(ssl);
        ssl = accept_tls(s);
        assert_true(read_head(ssl));
    }
    SSL_write(ssl, two, sizeof two - 1);
    send_all(ssl);
    (void)read_head(ssl);
    end(ssl);
    return NULL;
}

// Sends an answer that ends with the connection, and then the end: close_notify, or the alert
// of a server that fails.
static void *run_end(struct server *s, bool fails)
{
    static const char part[] = "HTTP/1.1 200 OK\r\nConnection: close\r\n\r\npart";
    static const char garbage[] = "\x17\x03\x03\x00\x18not a record of this stream";
    char byte;
    SSL *ssl = accept_tls(s);

    assert_true(read_head(ssl));
    SSL_write(ssl, part, sizeof part - 1);
    if (fails) {
        BIO *in = BIO_new(BIO_s_mem());
        BIO_write(in, garbage, 5 + 0x18);
        int fd = SSL_get_rfd(ssl);
        SSL_set0_rbio(ssl, in);
        assert_true(SSL_read(ssl, &byte, 1) < 0); // this puts the alert behind the answer
        SSL_set_rfd(ssl, fd);
    } else {
        (void)SSL_shutdown(ssl);
    }
    send_all(ssl);
    end(ssl);
    return NULL;
}

static void *run_close(void *arg) { return run_end(arg, false); }
static void *run_alert(void *arg) { return run_end(arg, true); }

static void open_server(struct server *s, void *(*serve)(void *arg))
{
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof a;

    s->ctx = self_signed();
    s->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(s->listener, (struct sockaddr *)&a, sizeof a), 0);
    assert_int_equal(listen(s->listener, 4), 0);
    assert_int_equal(getsockname(s->listener, (struct sockaddr *)&a, &len), 0);
    s->port = ntohs(a.sin_port);
    assert_int_equal(pthread_create(&s->thread, NULL, serve, s), 0);
}

struct outcome {
    char body[16];
    int code;
    _Atomic bool is_done;
};

static void on_done(struct queen_response *r, const struct queen_error *err, void *ctx)
{
    struct outcome *o = ctx;

    o->code = err->code;
    snprintf(o->body, sizeof o->body, "%s", r ? r->body : "none");
    queen_response_free(r);
    o->is_done = true;
    state_changed();
}

static void an_unrequested_answer_in_the_same_segment_is_not_used(void **state)
{
    (void)state;
    struct server s;
    struct queen_error err;
    struct outcome first = {0}, second = {0};
    char url[64];

    open_server(&s, run);
    snprintf(url, sizeof url, "https://127.0.0.1:%u", s.port);
    struct queen_client *c = queen_client_new(
        &(struct queen_options){.url = url, .insecure = true, .max_connections = 1}, &err);
    assert_non_null(c);
    queen_request_start(c, &(struct queen_request){.path = "/1"}, on_done, &first);
    queen_request_start(c, &(struct queen_request){.path = "/2"}, on_done, &second);
    wait_until(first.is_done && second.is_done);
    queen_client_free(c);
    pthread_join(s.thread, NULL);
    close(s.listener);
    SSL_CTX_free(s.ctx);
    assert_string_equal(first.body, "one");
    assert_string_equal(second.body, "two");
}

static struct outcome request_until_the_end(void *(*serve)(void *arg))
{
    struct server s;
    struct queen_error err;
    struct outcome o = {0};
    char url[64];

    open_server(&s, serve);
    snprintf(url, sizeof url, "https://127.0.0.1:%u", s.port);
    struct queen_client *c = queen_client_new(
        &(struct queen_options){.url = url, .insecure = true, .attempts = 1}, &err);
    assert_non_null(c);
    queen_request_start(c, &(struct queen_request){.path = "/1"}, on_done, &o);
    wait_until(o.is_done);
    queen_client_free(c);
    pthread_join(s.thread, NULL);
    close(s.listener);
    SSL_CTX_free(s.ctx);
    return o;
}

static void an_answer_without_a_length_ends_with_close_notify(void **state)
{
    (void)state;
    struct outcome o = request_until_the_end(run_close);

    assert_string_equal(o.body, "part");
    assert_int_equal(o.code, QUEEN_OK);
}

// OpenSSL notes a shutdown for a fatal alert, too.
static void an_answer_that_a_fatal_alert_cuts_off_is_an_error(void **state)
{
    (void)state;
    struct outcome o = request_until_the_end(run_alert);

    assert_string_equal(o.body, "none");
    assert_int_equal(o.code, QUEEN_E_UNREACHABLE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_unrequested_answer_in_the_same_segment_is_not_used),
        cmocka_unit_test(an_answer_without_a_length_ends_with_close_notify),
        cmocka_unit_test(an_answer_that_a_fatal_alert_cuts_off_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
