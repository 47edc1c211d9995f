// tls_self_signed.c: a key, and a certificate that it has signed itself.
#include "net/tls_self_signed.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rand.h>
#include <openssl/x509v3.h>

enum { VALID_DAYS = 365, SERIAL_BYTES = 16, HOST_BYTES = 65 }; // a common name has at most 64

static bool add_extension(X509 *x, int nid, const char *value)
{
    X509V3_CTX ctx;

    X509V3_set_ctx_nodb(&ctx);
    X509V3_set_ctx(&ctx, x, x, NULL, NULL, 0);
    X509_EXTENSION *ext = X509V3_EXT_conf_nid(NULL, &ctx, nid, value);
    bool ok = ext && X509_add_ext(x, ext, -1) == 1;
    X509_EXTENSION_free(ext);
    return ok;
}

// A random serial number, so that a browser that has seen an earlier certificate accepts this.
static bool set_serial(X509 *x)
{
    unsigned char bytes[SERIAL_BYTES];

    if (RAND_bytes(bytes, sizeof bytes) != 1)
        return false;
    bytes[0] &= 0x7f; // positive
    BIGNUM *n = BN_bin2bn(bytes, sizeof bytes, NULL);
    bool ok = n && BN_to_ASN1_INTEGER(n, X509_get_serialNumber(x)) != NULL;
    BN_free(n);
    return ok;
}

static bool is_dns_name(const char *host)
{
    size_t n = strspn(host, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-");

    return n > 0 && host[n] == '\0';
}

static X509 *make_certificate(EVP_PKEY *key)
{
    char host[HOST_BYTES] = "localhost", names[256];
    X509 *x = X509_new();

    gethostname(host, sizeof host - 1);
    if (!is_dns_name(host))
        snprintf(host, sizeof host, "localhost");
    snprintf(names, sizeof names, "DNS:localhost,IP:127.0.0.1,IP:::1,DNS:%s", host);
    X509_NAME *name = x ? X509_get_subject_name(x) : NULL;
    if (!x || X509_set_version(x, X509_VERSION_3) != 1 || !set_serial(x) ||
        !X509_gmtime_adj(X509_getm_notBefore(x), -3600L) || // clocks of clients may be slow
        !X509_time_adj_ex(X509_getm_notAfter(x), VALID_DAYS, 0, NULL) ||
        X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)host, -1,
                                   -1, 0) != 1 ||
        X509_set_issuer_name(x, name) != 1 || X509_set_pubkey(x, key) != 1 ||
        !add_extension(x, NID_basic_constraints, "critical,CA:FALSE") ||
        !add_extension(x, NID_key_usage, "critical,digitalSignature") ||
        !add_extension(x, NID_ext_key_usage, "serverAuth") ||
        !add_extension(x, NID_subject_alt_name, names) ||
        X509_sign(x, key, EVP_sha256()) == 0) {
        X509_free(x);
        return NULL;
    }
    return x;
}

// Writes beside the file and renames, so that a reader never sees half of it.
static int write_pem(const char *path, mode_t mode, X509 *x, EVP_PKEY *key, struct fault *f)
{
    char fresh[4096];
    bool ok = false;

    if (snprintf(fresh, sizeof fresh, "%s.new", path) >= (int)sizeof fresh)
        return fault_set(f, QE_CONF, "the name %.60s... is too long", path);
    unlink(fresh);
    int fd = open(fresh, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode);
    FILE *out = fd >= 0 ? fdopen(fd, "w") : NULL;
    if (out) {
        ok = x ? PEM_write_X509(out, x) == 1
               : PEM_write_PrivateKey(out, key, NULL, NULL, 0, NULL, NULL) == 1;
        ok = fflush(out) == 0 && fsync(fd) == 0 && ok;
        ok = fclose(out) == 0 && ok;
    } else if (fd >= 0) {
        close(fd);
    }
    if (ok && rename(fresh, path) == 0)
        return 0;
    int why = errno;
    unlink(fresh);
    return fault_set(f, QE_CONF, "cannot write %s: %s", path, strerror(why));
}

int tls_self_signed_write(const char *cert, const char *key, struct fault *f)
{
    EVP_PKEY *pair = EVP_EC_gen("P-256");
    X509 *x = pair ? make_certificate(pair) : NULL;
    int rc = x ? 0 : fault_set(f, QE_CONF, "OpenSSL cannot make a certificate");

    if (rc == 0)
        rc = write_pem(key, S_IRUSR | S_IWUSR, NULL, pair, f);
    if (rc == 0)
        rc = write_pem(cert, S_IRUSR | S_IWUSR | S_IRGRP | S_IROTH, x, NULL, f);
    X509_free(x);
    EVP_PKEY_free(pair);
    ERR_clear_error();
    return rc;
}

int tls_fingerprint(const char *cert, char out[TLS_FINGERPRINT], struct fault *f)
{
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned n = 0;
    FILE *in = fopen(cert, "re");
    X509 *x = in ? PEM_read_X509(in, NULL, NULL, NULL) : NULL;
    bool ok = x && X509_digest(x, EVP_sha256(), digest, &n) == 1;

    if (in)
        fclose(in);
    X509_free(x);
    ERR_clear_error();
    if (!ok)
        return fault_set(f, QE_CONF, "%s is not a certificate", cert);
    for (unsigned i = 0; i < n; i++)
        snprintf(out + 3 * (size_t)i, 4, "%02X%s", digest[i], i + 1 < n ? ":" : "");
    return 0;
}
