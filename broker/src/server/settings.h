// settings.h: the settings of the process -> the small structs of the modules.
#ifndef QUEEN_SERVER_SETTINGS_H
#define QUEEN_SERVER_SETTINGS_H

#include "base/attrs.h"
#include "base/err.h"
#include "broker/broker.h"
#include "conf/serve.h"
#include "crypt/keyring.h"
#include "http/server.h"
#include "pg/database.h"
#include "spool/spool.h"
#include "trace/collector.h"

struct database_conf settings_database(const struct serve_conf *c); // borrows from c

// Given: keyring_free().  NULL and 0: not configured.
MUST_USE int settings_keys(const struct serve_conf *c, struct keyring **k, struct fault *f);

// The sender of traces, given; NULL and 0: not configured.
MUST_USE int settings_traces(const struct serve_conf *c, struct collector **out,
                             struct fault *f);
MUST_USE int settings_check_traces(const struct serve_conf *c, struct fault *f);

// Everything but keys.  conninfo is borrowed by the result.
struct broker_conf settings_broker(const struct serve_conf *c, const char *conninfo,
                                   bool embedded);
struct spool_conf settings_spool(const struct serve_conf *c);
struct replay_conf settings_replay(const struct serve_conf *c);
// Real path of the dashboard's folder, given; NULL: there is none.
MUST_USE int settings_web_root(const struct serve_conf *c, char **root, struct fault *f);
// JSON for GET /api/v1/system/settings.
void settings_json(const struct serve_conf *c, struct buf *out);
// Everything but routes, app and observe.
struct http_server_conf settings_http(const struct serve_conf *c);

#endif
