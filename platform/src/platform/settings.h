// settings.h: converts the settings of the process to the configuration structs of the modules.
#ifndef QUEEN_PLATFORM_SETTINGS_H
#define QUEEN_PLATFORM_SETTINGS_H

#include <queen/client.h>

#include "conf/platform.h"
#include "http/server.h"
#include "ingest/ingest.h"
#include "pg/database.h"
#include "pg/pool.h"
#include "readmodel/readmodel.h"
#include "tenant/pools.h"

// Checks that the table of settings cannot express.  f names the setting.
MUST_USE int settings_check(const struct platform_conf *c, struct fault *f);

// All of them borrow from c.
struct database_conf settings_control(const struct platform_conf *c);
struct pg_pool_conf settings_control_pool(const struct platform_conf *c, const char *conninfo);
struct tenant_pools_conf settings_pools(const struct platform_conf *c, struct pg_pool *control,
                                        const struct database *home);
struct tenant_auth settings_tenant_auth(const struct platform_conf *c);
struct readmodel_conf settings_readmodel(const struct platform_conf *c);
span settings_read_model_mode(const struct platform_conf *c); // of tenants without their own
struct http_server_conf settings_platform_http(const struct platform_conf *c);
struct ingest_conf settings_ingest(const struct platform_conf *c); // the caller sets owner
struct queen_options settings_queen_client(const struct platform_conf *c, uv_loop_t *loop);

#endif
