// Datagrams: the little of MessagePack that they need, and their signature.
#include "peer/datagram.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <string.h>

enum { AT_LENGTH = 2, AT_MAC = 4, MAC = 32, AT_SENDER = 36, AT_SESSION = 68, AT_SEQUENCE = 84 };
enum { VERSION = 1, MAX_DEPTH = 8 };

// ---- writing ----

static uint8_t *put_be(uint8_t *p, uint64_t v, unsigned bytes)
{
    for (unsigned i = 0; i < bytes; i++)
        p[i] = (uint8_t)(v >> 8 * (bytes - 1 - i));
    return p + bytes;
}

// NULL in, or no room before end: NULL out.
static uint8_t *put_datagram_text(uint8_t *p, const uint8_t *end, span text)
{
    if (!p || text.len > UINT16_MAX || (size_t)(end - p) < text.len + 3)
        return NULL;
    if (text.len < 32) {
        *p++ = (uint8_t)(0xa0 | text.len);
    } else {
        *p++ = 0xda;
        p = put_be(p, text.len, 2);
    }
    if (text.len > 0)
        memcpy(p, text.ptr, text.len);
    return p + text.len;
}

static uint8_t *put_u64(uint8_t *p, const uint8_t *end, uint64_t v)
{
    if (!p || end - p < 9)
        return NULL;
    *p++ = 0xcf;
    return put_be(p, v, 8);
}

static void sign_datagram(const uint8_t *datagram, size_t n, span secret, uint8_t mac[MAC])
{
    uint8_t bare[PEER_MAX];
    unsigned len = MAC;

    memset(mac, 0, MAC);
    if (secret.len == 0)
        return;
    memcpy(bare, datagram, AT_MAC);
    memcpy(bare + AT_MAC, datagram + AT_SENDER, n - AT_SENDER);
    HMAC(EVP_sha256(), secret.ptr, (int)secret.len, bare, n - MAC, mac, &len);
}

static uint8_t *put_datagram_body(const struct peer_note *note, uint8_t *p, const uint8_t *end)
{
    bool is_mode = note->kind == PEER_PUSH_MODE || note->kind == PEER_POP_MODE;

    *p++ = (uint8_t)(0x80 | (1u + !!note->queue.ptr + !!note->partition.ptr + is_mode));
    p = put_datagram_text(p, end, SPAN("ts"));
    p = put_u64(p, end, note->at_ms);
    if (note->queue.ptr) {
        p = put_datagram_text(p, end, SPAN("queue"));
        p = put_datagram_text(p, end, note->queue);
    }
    if (note->partition.ptr) {
        p = put_datagram_text(p, end, SPAN("partition"));
        p = put_datagram_text(p, end, note->partition);
    }
    if (is_mode) {
        p = put_datagram_text(p, end, SPAN("enabled"));
        if (!p || p == end)
            return NULL;
        *p++ = note->enabled ? 0xc3 : 0xc2;
    }
    return p;
}

size_t peer_encode(const struct peer_note *note, span secret, uint8_t out[PEER_MAX])
{
    memset(out, 0, PEER_HEADER);
    uint8_t *end = put_datagram_body(note, out + PEER_HEADER, out + PEER_MAX);
    if (!end)
        return 0;
    out[0] = VERSION;
    out[1] = note->kind;
    put_be(out + AT_LENGTH, (uint64_t)(end - out) - PEER_HEADER, 2);
    memcpy(out + AT_SENDER, note->sender, strnlen(note->sender, PEER_SENDER));
    memcpy(out + AT_SESSION, note->session, strnlen(note->session, PEER_SESSION - 1));
    put_be(out + AT_SEQUENCE, note->sequence, 8);
    sign_datagram(out, (size_t)(end - out), secret, out + AT_MAC);
    return (size_t)(end - out);
}

// ---- reading ----

struct reader {
    const uint8_t *p, *end;
    bool bad;
};

static const uint8_t *datagram_take(struct reader *r, size_t n)
{
    const uint8_t *at = r->p;

    if (r->bad || (size_t)(r->end - r->p) < n) {
        r->bad = true;
        return NULL;
    }
    r->p += n;
    return at;
}

static uint64_t take_be(struct reader *r, unsigned bytes)
{
    const uint8_t *p = datagram_take(r, bytes);
    uint64_t v = 0;

    for (unsigned i = 0; p && i < bytes; i++)
        v = v << 8 | p[i];
    return v;
}

static span take_span(struct reader *r, uint64_t n)
{
    const uint8_t *p = n <= PEER_MAX_BODY ? datagram_take(r, (size_t)n) : NULL;

    if (!p)
        r->bad = true;
    return (span){p ? (const char *)p : "", p ? (size_t)n : 0};
}

// Any value: text or binary into *text, numbers and booleans into *number; others are passed
// over.
static void take_value(struct reader *r, span *text, uint64_t *number, unsigned depth)
{
    uint64_t members = 0;
    unsigned tag = (unsigned)take_be(r, 1);

    *text = SPAN_NONE;
    *number = 0;
    if (r->bad || depth > MAX_DEPTH) {
        r->bad = true;
    } else if (tag <= 0x7f || tag >= 0xe0) { // small numbers
        *number = tag <= 0x7f ? tag : 0;
    } else if (tag <= 0x8f) {
        members = 2ull * (tag & 15);
    } else if (tag <= 0x9f) {
        members = tag & 15;
    } else if (tag <= 0xbf) {
        *text = take_span(r, tag & 31);
    } else if (tag >= 0xc4 && tag <= 0xc6) { // binary, length of 1, 2, 4 bytes
        *text = take_span(r, take_be(r, 1u << (tag - 0xc4)));
    } else if (tag >= 0xc7 && tag <= 0xc9) { // extensions
        take_span(r, take_be(r, 1u << (tag - 0xc7)) + 1);
    } else if (tag == 0xca || tag == 0xcb) { // floating point
        take_be(r, tag == 0xca ? 4 : 8);
    } else if (tag >= 0xcc && tag <= 0xcf) {
        *number = take_be(r, 1u << (tag - 0xcc));
    } else if (tag >= 0xd0 && tag <= 0xd3) { // signed
        *number = take_be(r, 1u << (tag - 0xd0));
    } else if (tag >= 0xd4 && tag <= 0xd8) { // extensions of fixed length
        take_span(r, (1u << (tag - 0xd4)) + 1);
    } else if (tag >= 0xd9 && tag <= 0xdb) {
        *text = take_span(r, take_be(r, 1u << (tag - 0xd9)));
    } else if (tag == 0xdc || tag == 0xdd) {
        members = take_be(r, tag == 0xdc ? 2 : 4);
    } else if (tag == 0xde || tag == 0xdf) {
        members = 2 * take_be(r, tag == 0xde ? 2 : 4);
    } else { // nil, false, true; 0xc1 is none of them
        *number = tag == 0xc3;
        r->bad = tag == 0xc1;
    }
    for (uint64_t i = 0; i < members && !r->bad; i++) {
        span inner;
        uint64_t ignored;
        take_value(r, &inner, &ignored, depth + 1);
    }
}

static bool take_body(struct reader *r, struct peer_note *note)
{
    unsigned tag = (unsigned)take_be(r, 1);
    uint64_t n = tag == 0xde ? take_be(r, 2) : tag & 15;

    if (tag != 0xde && tag >> 4 != 8)
        return false;
    for (uint64_t i = 0; i < n && !r->bad; i++) {
        span key, text;
        uint64_t number;
        take_value(r, &key, &number, 0);
        take_value(r, &text, &number, 1);
        if (span_eq(key, SPAN("queue")))
            note->queue = text;
        else if (span_eq(key, SPAN("partition")))
            note->partition = text;
        else if (span_eq(key, SPAN("ts")))
            note->at_ms = number;
        else if (span_eq(key, SPAN("enabled")))
            note->enabled = number != 0;
    }
    return !r->bad && r->p == r->end;
}

enum peer_verdict peer_decode(span datagram, span secret, struct peer_note *note)
{
    const uint8_t *p = (const uint8_t *)datagram.ptr;
    uint8_t mac[MAC];

    *note = (struct peer_note){0};
    if (datagram.len <= PEER_HEADER || datagram.len > PEER_MAX || p[0] != VERSION ||
        (size_t)(p[AT_LENGTH] << 8 | p[AT_LENGTH + 1]) != datagram.len - PEER_HEADER)
        return PEER_MALFORMED;
    if (secret.len > 0) {
        sign_datagram(p, datagram.len, secret, mac);
        if (CRYPTO_memcmp(mac, p + AT_MAC, MAC) != 0)
            return PEER_BAD_SIGNATURE;
    }
    struct reader r = {p + PEER_HEADER, p + datagram.len, false};
    note->kind = p[1];
    memcpy(note->sender, p + AT_SENDER, PEER_SENDER);
    memcpy(note->session, p + AT_SESSION, PEER_SESSION);
    for (unsigned i = 0; i < 8; i++)
        note->sequence = note->sequence << 8 | p[AT_SEQUENCE + i];
    return take_body(&r, note) ? PEER_OK : PEER_MALFORMED;
}
