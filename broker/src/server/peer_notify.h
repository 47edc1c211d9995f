// peer_notify.h: connects the house with the notifications between servers.
#ifndef QUEEN_SERVER_PEER_NOTIFY_H
#define QUEEN_SERVER_PEER_NOTIFY_H

#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"
#include "broker/broker.h"
#include "conf/serve.h"
#include "peer/peers.h"

// *peers stays NULL when the settings name no peers.  Received notes go to *house if it
// exists.
MUST_USE int peer_notify_open(struct peers **peers, uv_loop_t *loop, const struct serve_conf *c,
                              struct house **house, struct fault *f);
// The house notifies the peers from now on. Call before its loops run. peers may be NULL.
void peer_notify_join(struct peers *peers, struct house *house);

#endif
