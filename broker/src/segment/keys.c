// Transaction ids to 16-byte keys, and the time range of a segment's keys.
#include "segment/keys.h"

#include <openssl/sha.h>
#include <string.h>

#include "base/id.h"
#include "segment/codec.h"

bool key_of_text(span txid, uint8_t key[16])
{
    if (id_parse_uuid_canonical(txid, key) && key[6] >> 4 != 8)
        return true;

    uint8_t hash[SHA256_DIGEST_LENGTH];
    SHA256((const unsigned char *)(txid.len > 0 ? txid.ptr : ""), txid.len, hash);
    memcpy(key, hash, 16);
    key[6] = (uint8_t)((key[6] & 0x0f) | 0x80);
    return false;
}

bool key_range_add(struct key_range *r, const uint8_t key[16])
{
    if (!id_is_uuid7(key))
        return true;

    uint64_t ms = id_uuid7_ms(key);
    uint64_t min = r->any && r->min_ms < ms ? r->min_ms : ms;
    uint64_t max = r->any && r->max_ms > ms ? r->max_ms : ms;
    if (max - min > SEGMENT_KEY_SPAN_MS)
        return false;
    *r = (struct key_range){min, max, true};
    return true;
}
