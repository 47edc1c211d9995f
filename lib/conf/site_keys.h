// site_keys.h: the settings for web pages and for public details, rows of the tables of both
// servers.
//
// A table that includes them has a struct conf_site as its field site and defines AT().
#ifndef QUEEN_CONF_SITE_KEYS_H
#define QUEEN_CONF_SITE_KEYS_H

// clang-format off
#define SITE_KEYS \
    {.name = "QUEEN_CORS_ORIGINS", TEXT, .fallback = "", AT(site.origins), \
     .text = "Origins whose web pages may use this server, separated by commas: `https://app.example.com`; `*`: all. " \
             "If empty: all with authentication, none without."}, \
    {.name = "QUEEN_ALLOWED_HOSTS", TEXT, .fallback = "", AT(site.hosts), \
     .text = "Further names of this server, separated by commas; `*`: any. Without authentication a request whose `Host` is " \
             "neither one of them, nor the configured address, an IP address, or a name without a dot, gets 403."}, \
    {.name = "QUEEN_HEALTH_DETAILS", .type = CONF_BOOL, .fallback = "false", AT(site.health_details), \
     .text = "With authentication: show names, version and peers in `/health` to everybody. Without it they are always shown."}
// clang-format on

#endif
