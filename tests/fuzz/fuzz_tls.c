// fuzz_tls.c: any bytes, and damaged records of a real session, into a TLS stream: no crash, no
// byte outside, and only bytes that the client has sent are decrypted.
//
// The first byte selects: bit 0: a real client shakes hands first; bit 1: TLS 1.2; the other
// bits seed the cuts. Without a client the rest goes to the server as it is. With a client it
// is a list of steps, two bytes each: an action and its argument.
//
// build: lib/net/tls_server.c lib/net/tls_self_signed.c -lssl -lcrypto
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/ssl.h>

#include "base/err.h"
#include "net/tls_self_signed.h"
#include "net/tls_server.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { ROOM = 96 * 1024, WIRE = 128 * 1024 };

static struct ssl_ctx_st *server_ctx;
static SSL_CTX *client_ctx;

struct session {
    struct tls_stream *server;
    SSL *client;
    BIO *from_client; // records that the client has written
    BIO *to_client;
    int pair[2];
    uint8_t sent[ROOM]; // plain bytes, in order
    size_t n_sent, n_got;
    bool over; // the server has refused the stream, or the client has ended it
    bool damaged;
};

static void setup_once(void)
{
    char folder[] = "/tmp/fuzz_tls.XXXXXX", cert[64], key[64];
    struct fault f;

    if (server_ctx)
        return;
    if (!mkdtemp(folder))
        abort();
    snprintf(cert, sizeof cert, "%s/cert.pem", folder);
    snprintf(key, sizeof key, "%s/key.pem", folder);
    if (tls_self_signed_write(cert, key, &f) != 0 ||
        tls_server_load(&server_ctx, &(struct tls_server_conf){.cert = cert, .key = key}, &f) !=
            0)
        BUG("%s", f.text);
    unlink(cert);
    unlink(key);
    rmdir(folder);
    client_ctx = SSL_CTX_new(TLS_client_method());
}

// Decrypts what arrives. It must be what the client has sent next.
static void give(struct session *s, const uint8_t *bytes, size_t n)
{
    char *in = malloc(n > 0 ? n : 1), *out = malloc(n + TLS_STREAM_RECORD);
    bool ended;

    if (n > 0)
        memcpy(in, bytes, n);
    ssize_t got =
        s->over ? -1 : tls_stream_decrypt(s->server, in, n, out, n + TLS_STREAM_RECORD, &ended);
    if (got > 0) {
        if (!s->client || (size_t)got > s->n_sent - s->n_got ||
            memcmp(out, s->sent + s->n_got, (size_t)got) != 0)
            BUG("bytes that nobody has sent");
        s->n_got += (size_t)got;
    }
    if (got < 0 && s->client && !s->damaged && !s->over)
        BUG("an undamaged stream was refused");
    s->over = s->over || got < 0 || ended;
    free(in);
    free(out);
}

static void answers_to_client(struct session *s)
{
    char bytes[16384];
    ssize_t n;

    while ((n = recv(s->pair[0], bytes, sizeof bytes, 0)) > 0)
        if (s->client)
            BIO_write(s->to_client, bytes, (int)n);
    if (s->client && SSL_is_init_finished(s->client)) {
        SSL_read(s->client, bytes, sizeof bytes);
        ERR_clear_error();
    }
}

static size_t take_records(struct session *s, uint8_t *wire)
{
    int n = BIO_read(s->from_client, wire, WIRE);

    return n > 0 ? (size_t)n : 0;
}

static bool shake_hands(struct session *s, uint8_t *wire, bool old)
{
    s->client = SSL_new(client_ctx);
    s->from_client = BIO_new(BIO_s_mem());
    s->to_client = BIO_new(BIO_s_mem());
    SSL_set_bio(s->client, s->to_client, s->from_client);
    if (old)
        SSL_set_max_proto_version(s->client, TLS1_2_VERSION);
    SSL_set_connect_state(s->client);
    for (int i = 0; i < 8; i++) {
        SSL_do_handshake(s->client);
        ERR_clear_error();
        give(s, wire, take_records(s, wire));
        answers_to_client(s);
        if (tls_stream_is_ready(s->server) && SSL_is_init_finished(s->client))
            return true;
    }
    return false;
}

static void client_sends(struct session *s, size_t n)
{
    if (n == 0 || n > ROOM - s->n_sent)
        return;
    memset(s->sent + s->n_sent, (int)('a' + s->n_sent % 26), n);
    if (SSL_write(s->client, s->sent + s->n_sent, (int)n) == (int)n)
        s->n_sent += n;
    ERR_clear_error();
}

static void server_sends(struct session *s, size_t n)
{
    char *bytes = calloc(1, n + 1);
    struct iovec iov[2] = {{bytes, n / 2}, {bytes + n / 2, n - n / 2}};

    if (!s->over && tls_stream_is_ready(s->server))
        s->over = tls_stream_send(s->server, iov, 2) < 0;
    free(bytes);
    answers_to_client(s);
}

static void step(struct session *s, uint8_t *wire, uint8_t action, uint8_t arg)
{
    size_t n;

    switch (action % 9) {
    case 0:
        client_sends(s, arg);
        break;
    case 1:
        client_sends(s, (size_t)arg * 160);
        break;
    case 2: // all at once
        give(s, wire, take_records(s, wire));
        break;
    case 3: // in pieces
        n = take_records(s, wire);
        for (size_t at = 0, piece = 1 + (size_t)arg; at < n; at += piece)
            give(s, wire + at, piece < n - at ? piece : n - at);
        break;
    case 4: // a damaged byte
        n = take_records(s, wire);
        if (n > 0) {
            s->damaged = true;
            wire[(size_t)arg * 7 % n] ^= (uint8_t)(arg | 1);
        }
        give(s, wire, n);
        break;
    case 5: // twice
        n = take_records(s, wire);
        give(s, wire, n);
        s->damaged = s->damaged || n > 0;
        give(s, wire, n);
        break;
    case 6: // the end is missing
        n = take_records(s, wire);
        s->damaged = s->damaged || n > 0;
        give(s, wire, n * arg / 256);
        break;
    case 7:
        if (arg % 4 == 0)
            SSL_shutdown(s->client);
        else
            SSL_key_update(s->client,
                           arg % 2 ? SSL_KEY_UPDATE_REQUESTED : SSL_KEY_UPDATE_NOT_REQUESTED);
        ERR_clear_error();
        break;
    default:
        server_sends(s, (size_t)arg * 97);
    }
}

static void send_raw(struct session *s, uint8_t seed, const uint8_t *data, size_t size)
{
    unsigned random = seed * 2654435761U + 1;

    for (size_t at = 0; at < size;) {
        random = random * 1103515245U + 12345U;
        size_t piece = seed == 0 ? size : 1 + (random >> 16) % (seed + 1U);
        piece = piece < size - at ? piece : size - at;
        give(s, data + at, piece);
        answers_to_client(s);
        at += piece;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t wire[WIRE];
    static struct session s;

    if (size < 1)
        return 0;
    setup_once();
    s = (struct session){0};
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, s.pair) != 0)
        abort();
    s.server = tls_stream_new(server_ctx, s.pair[1]);
    if (data[0] & 1) {
        if (!shake_hands(&s, wire, data[0] & 2))
            BUG("no handshake");
        for (size_t i = 1; i + 1 < size && i < 400; i += 2)
            step(&s, wire, data[i], data[i + 1]);
    } else {
        send_raw(&s, data[0] >> 1, data + 1, size - 1);
    }
    tls_stream_free(s.server);
    SSL_free(s.client);
    close(s.pair[0]);
    close(s.pair[1]);
    return 0;
}
