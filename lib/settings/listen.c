// listen.c: safe defaults of address and web pages.
#include "settings/listen.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/log.h"
#include "net/listeners.h"
#include "net/tls_self_signed.h"
#include "net/tls_server.h"

const char *settings_listen_host(const char *host, bool is_protected)
{
    return host[0] == '\0' && is_protected ? "0.0.0.0" : host;
}

bool settings_warn_exposed(const char *setting, const char *host, bool is_protected)
{
    if (is_protected || listeners_is_loopback(host))
        return false;
    log_warn("listen.unprotected",
             "%s=%s why=\"" HTTP_SITE_EXPOSED
             "\" hint=\"set QUEEN_ADMIN_KEY_FILE or JWT_ENABLED\"",
             setting, host);
    return true;
}

struct http_site settings_site(const struct conf_site *c, const char *host, bool is_protected)
{
    return http_site_new(is_protected, c->origins, c->hosts, host);
}

// Keeps a certificate that is there, so that its fingerprint stays.
static int self_signed(const char *data_dir, struct tls_server_conf *conf, struct fault *f)
{
    static char cert[4096], key[4096]; // one listener per process
    char fingerprint[TLS_FINGERPRINT];
    int n = snprintf(cert, sizeof cert, "%s/tls-self-signed.pem", data_dir);

    if (n < 0 || (size_t)n >= sizeof cert)
        return fault_set(f, QE_CONF, "the name of the data directory is too long");
    snprintf(key, sizeof key, "%s/tls-self-signed.key", data_dir);
    (void)mkdir(data_dir, 0755); // a failure shows when the files are written
    int rc = access(cert, R_OK) == 0 && access(key, R_OK) == 0
                 ? 0
                 : tls_self_signed_write(cert, key, f);
    if (rc == 0)
        rc = tls_fingerprint(cert, fingerprint, f);
    if (rc != 0)
        return rc;
    conf->cert = cert;
    conf->key = key;
    log_warn("tls.self_signed", "cert=\"%s\" fingerprint=%s", cert, fingerprint);
    return 0;
}

static int check_tls(const struct conf_tls *c, struct fault *f)
{
    bool has_cert = c->cert[0] != '\0' || c->self_signed;

    if ((c->cert[0] != '\0') != (c->key[0] != '\0'))
        return fault_set(f, QE_CONF, "%s requires %s",
                         c->cert[0] ? "QUEEN_TLS_CERT" : "QUEEN_TLS_KEY",
                         c->cert[0] ? "QUEEN_TLS_KEY" : "QUEEN_TLS_CERT");
    if (!has_cert && c->port > 0)
        return fault_set(f, QE_CONF,
                         "QUEEN_TLS_PORT requires QUEEN_TLS_CERT and QUEEN_TLS_KEY");
    if (!has_cert && c->client_ca[0] != '\0')
        return fault_set(f, QE_CONF,
                         "QUEEN_TLS_CLIENT_CA requires QUEEN_TLS_CERT and QUEEN_TLS_KEY");
    if (c->client_ca[0] == '\0' && (c->client_required || c->client_roles[0] != '\0'))
        return fault_set(f, QE_CONF, "%s requires QUEEN_TLS_CLIENT_CA",
                         c->client_required ? "QUEEN_TLS_CLIENT_REQUIRED"
                                            : "QUEEN_TLS_CLIENT_ROLES");
    return 0;
}

static struct tls_server_conf tls_conf_of(const struct conf_tls *c)
{
    return (struct tls_server_conf){.cert = c->cert,
                                    .key = c->key,
                                    .client_ca = c->client_ca,
                                    .client_cert_required = c->client_required};
}

int settings_check_tls(const struct conf_tls *c, struct fault *f)
{
    struct tls_server_conf conf = tls_conf_of(c);
    struct ssl_ctx_st *ctx = NULL;

    int rc = check_tls(c, f);
    if (rc == 0 && conf.cert[0] != '\0')
        rc = tls_server_load(&ctx, &conf, f);
    tls_server_unref(ctx);
    return rc;
}

int settings_tls(const struct conf_tls *c, const char *data_dir, uv_loop_t *loop,
                 struct tls_files **t, struct fault *f)
{
    struct tls_server_conf conf = tls_conf_of(c);

    *t = NULL;
    int rc = check_tls(c, f);
    if (rc == 0 && c->self_signed && c->cert[0] == '\0')
        rc = self_signed(data_dir, &conf, f);
    if (rc != 0 || conf.cert[0] == '\0')
        return rc;
    return tls_files_open(t, loop, &conf, f);
}

struct addresses *settings_addresses(const struct conf_addresses *c, unsigned max_connections)
{
    unsigned half = max_connections / 2 > 0 ? max_connections / 2 : 1;

    return addresses_new(&(struct addresses_conf){
        .max_connections = c->max_connections > 0 ? (unsigned)c->max_connections : half,
        .max_failures = (unsigned)c->max_failures});
}
