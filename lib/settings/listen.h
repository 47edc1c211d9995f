// listen.h: where a server listens and which web pages may use it, from its settings.
#ifndef QUEEN_SETTINGS_LISTEN_H
#define QUEEN_SETTINGS_LISTEN_H

#include <stdbool.h>

#include "conf/conf.h"
#include "http/site.h"
#include "net/tls_files.h"

// The address to listen on; "": loopback.
const char *settings_listen_host(const char *host, bool is_protected);
// Anybody who reaches the machine can use the server. Logs a warning if so.
bool settings_warn_exposed(const char *setting, const char *host, bool is_protected);
// NULL and 0: TLS is off.
MUST_USE int settings_tls(const struct conf_tls *c, uv_loop_t *loop, struct tls_files **t,
                          struct fault *f);
struct http_site settings_site(const struct conf_site *c, const char *host, bool is_protected);

#endif
