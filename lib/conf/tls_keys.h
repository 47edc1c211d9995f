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
    {.name = "QUEEN_TLS_PORT", INT(0, 65535), .fallback = "0", AT(tls.port), \
     .text = "Separate port for TLS; the normal port then speaks plain HTTP. 0: the normal port speaks TLS."}
// clang-format on

#endif
