// access_keys.h: the settings for API keys, rows of the tables of both servers.
//
// A table that includes them has a struct conf_access as its field access and defines AT().
#ifndef QUEEN_CONF_ACCESS_KEYS_H
#define QUEEN_CONF_ACCESS_KEYS_H

// clang-format off
#define ACCESS_KEYS \
    {.name = "QUEEN_ADMIN_KEY_FILE", TEXT, .fallback = "", AT(access.admin_key_file), \
     .text = "File with the API key of the administrator (`queen init` makes one). With it all requests except public ones " \
             "require a key or a token. It is read again on SIGHUP."}, \
    {.name = "QUEEN_RULES_FILE", TEXT, .fallback = "", AT(access.rules_file), \
     .text = "File with permissions: lines of a subject and its rules, `build-server push:orders.*,pop:orders.*`. It is read again " \
             "on SIGHUP."}, \
    {.name = "JWT_RULES_CLAIM", TEXT, .fallback = "queen_rules", AT(access.rules_claim), \
     .text = "Claim that holds the rules of a token, a text or a list of texts; they replace its role."}, \
    {.name = "QUEEN_LIMITS", TEXT, .fallback = "", AT(access.limits), \
     .text = "Limits of each subject that brings none of its own: `requests=1000,bytes=10000000,connections=100`, per second and process, " \
             "and `stored=50000000000`, bytes of its messages in the database (broker only). More is answered with 429. If empty: no limits."}, \
    {.name = "JWT_LIMITS_CLAIM", TEXT, .fallback = "queen_limits", AT(access.limits_claim), \
     .text = "Claim that holds the limits of a token, as for QUEEN_LIMITS, which they replace."}
// clang-format on

#endif
