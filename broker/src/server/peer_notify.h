// peers.h: between the house, which knows what happens, and the mesh, which tells other
// servers.
#ifndef QUEEN_SERVER_PEER_NOTIFY_H
#define QUEEN_SERVER_PEER_NOTIFY_H

#include <uv.h>

#include "base/attrs.h"
#include "base/err.h"
#include "broker/broker.h"
#include "conf/conf.h"
#include "peer/peers.h"

// *peers stays NULL when the settings name no peers.  What is heard goes to *house, while there
// is one.
MUST_USE int peer_notify_open(struct peers **peers, uv_loop_t *loop, const struct conf *c,
                              struct house **house, struct fault *f);
// What happens in the house is told from now on; before its loops run.  mesh may be NULL.
void peer_notify_join(struct peers *peers, struct house *house);

#endif
