// settings.h: the settings of the process -> the small structs of the modules.
#ifndef QUEEN_SERVER_SETTINGS_H
#define QUEEN_SERVER_SETTINGS_H

#include "auth/auth.h"
#include "base/attrs.h"
#include "base/err.h"
#include "broker/broker.h"
#include "conf/conf.h"
#include "crypt/keyring.h"
#include "http/server.h"
#include "spool/spool.h"

enum settings_use {
    SETTINGS_POOL,  // the workers' connections
    SETTINGS_CHORE, // migrations: no limits on time, the planner left alone
};

// The connection string to a server that is not ours.  Given: free().  Holds the password.
char *settings_conninfo(const struct conf *c, enum settings_use use);
// The same for the embedded one, which lives behind a socket folder.
char *settings_embedded_conninfo(const struct conf *c, const char *socket_dir,
                                 enum settings_use use);

// Given: auth_free(), keyring_free().  NULL and 0: not asked for.
MUST_USE int settings_auth(const struct conf *c, struct auth **a, struct fault *f);
MUST_USE int settings_keys(const struct conf *c, struct keyring **k, struct fault *f);

// Everything but keys.  conninfo is borrowed by the result.
struct broker_conf settings_broker(const struct conf *c, const char *conninfo, bool embedded);
struct spool_conf settings_spool(const struct conf *c);
struct replay_conf settings_replay(const struct conf *c);
// Everything but routes, app and observe.
// Real path of the dashboard's folder, given; NULL: there is none.
MUST_USE int settings_web_root(const struct conf *c, char **root, struct fault *f);
struct http_server_conf settings_http(const struct conf *c);

#endif
