// segs.h: the messages of one call, cut into segments.
//
//      segs_add (each item) ──► segs_cut ──► segs_fill ──► call ──► seg_stored ──► segs_free
//
// While items are added their lanes chain them; after the cut only the segments do.
#ifndef QUEEN_BROKER_SEGS_H
#define QUEEN_BROKER_SEGS_H

#include "broker/broker_int.h"
#include "segment/keys.h"

struct seg {
    struct lane *lane;
    // Number and id of the lane as they were sent: a queue that is deleted and created again
    // while the call is out gives its lane others.
    int64_t num;
    uint8_t lane_id[16];
    struct push_item *first; // count of them, chained by next
    unsigned count, nth;     // nth segment of its lane in this call
    int64_t before;          // messages of this call before it in its lane
    struct key_range range;
    bool sealed; // its payloads go encrypted
    bool bare;   // they should, and cannot
    bool stored;
    bool untold; // has messages that an earlier try stored; no consumer was woken for them
};

struct segs {
    struct lane *lanes; // while adding
    unsigned n_lanes, n;
    bool correlated; // some message has a correlation id
    struct seg *at;
};

// item->lane must be set.  No other segs may be adding to the same lane.
void segs_add(struct segs *f, struct push_item *it);
// Items whose key came before in the same lane are left out; their `same` points to the first.
void segs_cut(struct segs *f, unsigned n_items);
// The parameters of queen.push_segments from p_lanes on.
void segs_fill(const struct segs *f, struct pg_params *p);
// One message as it stands in a body, with room for an id that the database gives; *id_at is
// where (0-based).  The payload goes encrypted if its queue wants it so and we can.
void message_put(struct buf *out, const struct push_item *it, size_t *id_at);
// Those of queen.push_correlated that follow.
void segs_fill_correlated(const struct segs *f, struct pg_params *p);
uint64_t item_bytes(const struct push_item *it); // in a segment, unencrypted
struct push_item *seg_item(const struct seg *s, unsigned pos);
void seg_stored(struct seg *s, int64_t created_us);        // its items are queued, with ids
void seg_lane_gone(struct broker *b, const struct seg *s); // was deleted: its number is void
void segs_free(struct segs *f);

#endif
