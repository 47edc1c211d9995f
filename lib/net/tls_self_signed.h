// tls_self_signed.h: makes a certificate for trying TLS out.
#ifndef QUEEN_NET_TLS_SELF_SIGNED_H
#define QUEEN_NET_TLS_SELF_SIGNED_H

#include "base/attrs.h"
#include "base/err.h"

enum { TLS_FINGERPRINT = 32 * 3 }; // "AB:CD:...", NUL-terminated

// Writes PEM files: a key of the curve P-256, which only the owner may read, and a certificate
// for localhost, 127.0.0.1, ::1 and this machine's name, valid for a year. Files that exist are
// replaced.
MUST_USE int tls_self_signed_write(const char *cert, const char *key, struct fault *f);

// SHA-256 of the first certificate in a PEM file.
MUST_USE int tls_fingerprint(const char *cert, char out[TLS_FINGERPRINT], struct fault *f);

#endif
