// check.c: which settings are valid, for `queen serve` and `queen serve --print-config` alike.
//
// Changes nothing and contacts no server. A port in use or a folder that is not writable is
// found by the start only.
#include <stdlib.h>

#include "peer/address.h"
#include "pg/database.h"
#include "server/server.h"
#include "server/settings.h"
#include "settings/auth.h"
#include "settings/listen.h"
#include "transfer/targets.h"

static int check_peers(const struct serve_conf *c, struct fault *f)
{
    struct peer_name names[PEERS_MAX];
    unsigned n;

    return c->sync_enabled ? peer_names_parse(c->udp_peers, (unsigned)c->udp_port, names, &n, f)
                           : 0;
}

static int check_encryption_keys(const struct serve_conf *c, struct fault *f)
{
    struct keyring *keys;
    int rc = settings_keys(c, &keys, f);

    keyring_free(keys);
    return rc;
}

static int check_web_root(const struct serve_conf *c, struct fault *f)
{
    char *root;
    int rc = settings_web_root(c, &root, f);

    free(root);
    return rc;
}

int server_check(const struct serve_conf *c, struct fault *f)
{
    struct database_conf database = settings_database(c);
    int rc = settings_check_auth(&c->jwt, &c->access, &c->tls, f);

    if (rc == 0)
        rc = settings_check_tls(&c->tls, f);
    if (rc == 0)
        rc = check_encryption_keys(c, f);
    if (rc == 0)
        rc = transfer_targets_check(c->migration_targets, f);
    if (rc == 0)
        rc = check_peers(c, f);
    if (rc == 0)
        rc = check_web_root(c, f);
    if (rc == 0)
        rc = settings_check_traces(c, f);
    if (rc == 0)
        rc = database_conf_check(&database, f);
    return rc;
}
