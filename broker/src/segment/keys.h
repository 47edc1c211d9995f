// keys.h: deduplication keys.
//
// The key of a canonical lower-case UUID is the UUID itself, unless it is of version 8; any
// other transaction id gets 16 bytes of its SHA-256, marked as version 8.  So the two kinds
// never meet, and both sides (here and broker/sql/push/transaction_key.sql) agree.
#ifndef QUEEN_SEGMENT_KEYS_H
#define QUEEN_SEGMENT_KEYS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"

// true: txid is the text of the key, so it need not be stored.
bool key_of_text(span txid, uint8_t key[16]);

// The range of times inside the UUIDv7 keys of a segment under construction.
struct key_range {
    uint64_t min_ms, max_ms;
    bool any;
};
// Widens the range by a key; false: that would make it wider than a segment may be (cut first).
// Keys of other kinds always fit.
bool key_range_add(struct key_range *r, const uint8_t key[16]);

#endif
