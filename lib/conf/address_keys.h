// address_keys.h: the settings for limits per client address, rows of the tables of both
// servers.
//
// A table that includes them has a struct conf_addresses as its field addresses and defines
// AT().
#ifndef QUEEN_CONF_ADDRESS_KEYS_H
#define QUEEN_CONF_ADDRESS_KEYS_H

// clang-format off
#define ADDRESS_KEYS \
    {.name = "QUEEN_MAX_CONNECTIONS_PER_ADDRESS", INT(0, 1000000), .fallback = "0", AT(addresses.max_connections), \
     .text = "Connections of one client address (IPv6: of one /64 network); more are closed. " \
             "0: half of all connections. Raise it if most clients come through one proxy."}, \
    {.name = "QUEEN_MAX_AUTH_FAILURES", INT(0, 1000000), .fallback = "0", AT(addresses.max_failures), \
     .text = "Answers with 401 to one client address in 10 s; its further requests get 429 until the 10 s are over. 0: no limit. " \
             "Do not set it if clients share an address."}, \
    {.name = "QUEEN_BODY_TIMEOUT_MS", MS(1000), .fallback = "600000", AT(addresses.body_timeout_ms), \
     .text = "A request body must arrive within this time, and at 1 KB/s or more; else 408."}
// clang-format on

#endif
