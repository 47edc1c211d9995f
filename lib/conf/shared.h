// shared.h: settings that several programs have. Their rows are in jwt_keys.h, access_keys.h,
// site_keys.h, tls_keys.h and trace_keys.h.
#ifndef QUEEN_CONF_SHARED_H
#define QUEEN_CONF_SHARED_H

#include <stdbool.h>

// In the order of the choices of JWT_ALGORITHM and of enum jwt_alg in lib/auth.
enum conf_algorithm {
    CONF_HS256,
    CONF_RS256,
    CONF_EDDSA,
    CONF_ES256,
    CONF_ES384,
    CONF_ES512,
    CONF_PS256,
    CONF_PS384,
    CONF_PS512,
    CONF_AUTO
};

// In the order of the choices of PG_POOLER and of enum pg_pooler in lib/pg.
enum conf_pooler { CONF_POOLER_AUTO, CONF_POOLER_NONE, CONF_POOLER_TRANSACTION };

// JSON Web Tokens; both servers have these settings.
struct conf_jwt {
    bool enabled;
    enum conf_algorithm algorithm;
    const char *secret;
    const char *public_key;
    const char *jwks_url;
    int jwks_refresh_s;
    int jwks_timeout_ms;
    const char *issuer;
    const char *audience;
    int clock_skew_s;
    bool require_exp;
    const char *skip_paths;
    const char *revoked_file;
    const char *roles_claim;
    const char *roles_array_claim;
    const char *role_admin;
    const char *role_read_write;
    const char *role_read_only;
};

// API keys; both servers have these settings.
struct conf_access {
    const char *admin_key_file; // "": none
    const char *rules_file;     // "": none
    const char *rules_claim;    // "": none
    const char *limits;         // "": none
    const char *limits_claim;   // "": none
};

// Web pages and public details; both servers have these settings.
struct conf_site {
    const char *origins; // "": the default
    const char *hosts;
    bool health_details;
};

// Limits per client address; both servers have these settings.
struct conf_addresses {
    int max_connections; // 0: half of all
    int max_failures;    // 0: no limit
    int body_timeout_ms;
};

// TLS; both servers have these settings.
struct conf_tls {
    const char *cert; // "": no TLS
    const char *key;
    const char *client_ca;    // "": no client certificates
    const char *client_roles; // "": they give no access
    bool client_required;
    bool self_signed;
    int port; // 0: the normal port
};

// Traces for OpenTelemetry.
struct conf_trace {
    const char *endpoint; // "": none
    const char *headers;
    const char *service;
    double ratio;
};

#endif
