// tls_keys.h: the settings for TLS, rows of the tables of both servers.
//
// A table that includes them has a struct conf_tls as its field tls and defines AT().
#ifndef QUEEN_CONF_TLS_KEYS_H
#define QUEEN_CONF_TLS_KEYS_H

// clang-format off
#define TLS_KEYS \
    {.name = "QUEEN_TLS_CERT", TEXT, .fallback = "", AT(tls.cert), \
     .text = "PEM file with the certificate and its chain. With it the port speaks TLS. It is loaded again when it changes and on SIGHUP."}, \
    {.name = "QUEEN_TLS_KEY", TEXT, .fallback = "", AT(tls.key), \
     .text = "PEM file with the key of QUEEN_TLS_CERT."}, \
    {.name = "QUEEN_TLS_CLIENT_CA", TEXT, .fallback = "", AT(tls.client_ca), \
     .text = "PEM file with the authorities of client certificates. Clients may then send one, and QUEEN_TLS_CLIENT_ROLES " \
             "gives it a role."}, \
    {.name = "QUEEN_TLS_CLIENT_ROLES", TEXT, .fallback = "", AT(tls.client_roles), \
     .text = "Roles of client certificates, `name=role` separated by commas: the first name that equals the common name or an " \
             "alternative name (DNS, mail, URI) of the certificate counts; `*` is any. Roles: admin, read-write, read-only. " \
             "With it a request without a token or certificate is refused."}, \
    {.name = "QUEEN_TLS_CLIENT_REQUIRED", .type = CONF_BOOL, .fallback = "false", AT(tls.client_required), \
     .text = "Refuse TLS connections without a client certificate."}, \
    {.name = "QUEEN_TLS_SELF_SIGNED", .type = CONF_BOOL, .fallback = "false", AT(tls.self_signed), \
     .text = "For trying out: without QUEEN_TLS_CERT make a certificate, keep it in the data directory, and log its fingerprint, " \
             "which `queen --fingerprint` accepts."}, \
    {.name = "QUEEN_TLS_PORT", INT(0, 65535), .fallback = "0", AT(tls.port), \
     .text = "Separate port for TLS; the normal port then speaks plain HTTP. 0: the normal port speaks TLS."}
// clang-format on

#endif
