// listen.c: safe defaults of address and web pages.
#include "settings/listen.h"

#include "base/log.h"
#include "net/listeners.h"

const char *settings_listen_host(const char *host, bool is_protected)
{
    return host[0] == '\0' && is_protected ? "0.0.0.0" : host;
}

bool settings_warn_exposed(const char *setting, const char *host, bool is_protected)
{
    if (is_protected || listeners_is_loopback(host))
        return false;
    log_warn("listen.unprotected",
             "%s=%s why=\"" HTTP_SITE_EXPOSED "\" hint=\"set JWT_ENABLED\"", setting, host);
    return true;
}

struct http_site settings_site(const struct conf_site *c, const char *host, bool is_protected)
{
    return http_site_new(is_protected, c->origins, c->hosts, host);
}

int settings_tls(const struct conf_tls *c, uv_loop_t *loop, struct tls_files **t,
                 struct fault *f)
{
    bool has_cert = c->cert[0] != '\0', has_key = c->key[0] != '\0';

    *t = NULL;
    if (has_cert != has_key)
        return fault_set(f, QE_CONF, "%s requires %s",
                         has_cert ? "QUEEN_TLS_CERT" : "QUEEN_TLS_KEY",
                         has_cert ? "QUEEN_TLS_KEY" : "QUEEN_TLS_CERT");
    if (!has_cert && c->port > 0)
        return fault_set(f, QE_CONF,
                         "QUEEN_TLS_PORT requires QUEEN_TLS_CERT and QUEEN_TLS_KEY");
    return has_cert ? tls_files_open(t, loop, c->cert, c->key, f) : 0;
}
