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
