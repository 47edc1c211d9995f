// Events of the house as datagrams, and back.
#include "server/peer_notify.h"

static void notify(void *ctx, enum house_event what, span queue, span partition)
{
    static const enum peer_kind kinds[] = {
        [HOUSE_STORED] = PEER_AVAILABLE,
        [HOUSE_FREED] = PEER_FREE,
        [HOUSE_CONFIGURED] = PEER_CONFIGURED,
        [HOUSE_MODES] = PEER_PUSH_MODE,
        [HOUSE_KEYS] = PEER_KEYS,
    };

    peers_notify(ctx, kinds[what], queue, partition, false);
}

// The value of a mode is not taken from a datagram: both modes are read from the database.
static void on_note(void *ctx, const struct peer_note *note)
{
    struct house *house = *(struct house **)ctx;

    if (!house)
        return;
    switch (note->kind) {
    case PEER_AVAILABLE:
        house_notified(house, HOUSE_STORED, note->queue);
        break;
    case PEER_FREE:
        house_notified(house, HOUSE_FREED, note->queue);
        break;
    case PEER_CONFIGURED:
    case PEER_DELETED:
        house_notified(house, HOUSE_CONFIGURED, note->queue);
        break;
    case PEER_PUSH_MODE:
    case PEER_POP_MODE:
        house_notified(house, HOUSE_MODES, SPAN_NONE);
        break;
    case PEER_KEYS:
        house_notified(house, HOUSE_KEYS, SPAN_NONE);
        break;
    default: // of a later version
        break;
    }
}

int peer_notify_open(struct peers **peers, uv_loop_t *loop, const struct serve_conf *c,
                     struct house **house, struct fault *f)
{
    *peers = NULL;
    if (!c->sync_enabled || c->udp_peers[0] == '\0')
        return 0;
    return peers_open(peers, loop,
                      &(struct peers_conf){.peers = c->udp_peers,
                                           .host = c->host,
                                           .port = (unsigned)c->udp_port,
                                           .secret = c->sync_secret,
                                           .heartbeat_ms = (unsigned)c->sync_heartbeat_ms,
                                           .dead_ms = (unsigned)c->sync_dead_ms,
                                           .receive_mb = (unsigned)c->sync_receive_mb,
                                           .on_note = on_note,
                                           .ctx = house},
                      f);
}

void peer_notify_join(struct peers *peers, struct house *house)
{
    if (peers)
        house_notify_with(house, notify, peers);
}
