// listen.h: where a server listens and which web pages may use it, from its settings.
#ifndef QUEEN_SETTINGS_LISTEN_H
#define QUEEN_SETTINGS_LISTEN_H

#include <stdbool.h>

#include "conf/shared.h"
#include "http/site.h"
#include "net/addresses.h"
#include "net/tls_files.h"

// The address to listen on; "": loopback.
const char *settings_listen_host(const char *host, bool is_protected);
// Anybody who reaches the machine can use the server. Logs a warning if so.
bool settings_warn_exposed(const char *setting, const char *host, bool is_protected);
// NULL and 0: TLS is off.
// data_dir: where a self-signed certificate is kept.
MUST_USE int settings_tls(const struct conf_tls *c, const char *data_dir, uv_loop_t *loop,
                          struct tls_files **t, struct fault *f);
// The same checks; writes no file.
MUST_USE int settings_check_tls(const struct conf_tls *c, struct fault *f);
// max_connections: of the whole server. Given: addresses_free().
struct addresses *settings_addresses(const struct conf_addresses *c, unsigned max_connections);
struct http_site settings_site(const struct conf_site *c, const char *host, bool is_protected);

#endif
