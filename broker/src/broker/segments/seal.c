// Encryption at rest: which queues want it, sealing for others, and opening what was sealed.
//
// The database has the truth (queen.lanes.sealed) and refuses plain payloads under the lock
// that stores them. The copy here only saves a second try.
#include "broker/broker_int.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "crypt/sealer.h"
#include "segment/keys.h"

enum { TELL_EVERY_US = 60 * 1000 * 1000 };

static unsigned changes_of(const struct broker *b)
{
    return atomic_load_explicit(&b->house->n_changes, memory_order_relaxed);
}

bool queue_is_sealed(struct queue *q)
{
    if (q->sealed_until_us == 0)
        return false;
    // The option may have been switched off, here or elsewhere: try again with a plain payload.
    if (clock_mono_us() >= q->sealed_until_us || q->sealed_version != changes_of(q->broker))
        q->sealed_until_us = 0;
    return q->sealed_until_us != 0;
}

void queue_sealed(struct queue *q)
{
    struct broker *b = q->broker;

    q->sealed_version = changes_of(b);
    q->sealed_until_us = clock_mono_us() + (uint64_t)b->conf.refresh_ms * 1000;
    if (b->sealer || q->logged_no_key)
        return;
    q->logged_no_key = true;
    log_warn("seal.no_key",
             "queue=\"%.*s\" why=\"encryptionEnabled, but QUEEN_ENCRYPTION_KEY is not set: "
             "payloads are %s\"",
             (int)q->name_len, q->name,
             b->conf.must_seal ? "refused unless the queue has allowUnencrypted"
                               : "stored in clear");
}

bool broker_must_seal(const struct broker *b) { return b->conf.must_seal; }

bool broker_seal(struct broker *b, struct buf *out, span plain)
{
    if (!b->sealer && b->conf.must_seal)
        return false;
    if (!b->sealer) {
        log_warn("seal.no_key", "why=\"encryptionEnabled, but QUEEN_ENCRYPTION_KEY is not set: "
                                "a recurring message is stored in clear\"");
        return false;
    }
    sealer_seal(b->sealer, out, plain, NULL); // its messages have different ids
    return true;
}

const uint8_t *broker_seal_key(span txid, const uint8_t *key, uint8_t room[16])
{
    if (!txid.ptr)
        return key;
    if (str_starts(txid, SPAN("redrive-"))) // queen.redrive_elsewhere
        return NULL;
    (void)key_of_text(txid, room);
    return room;
}

void broker_unseal(struct broker *b, struct buf *out, span sealed, const uint8_t *key)
{
    if (b->sealer && sealer_open(b->sealer, out, sealed, key))
        return;
    buf_put(out, sealed);

    uint64_t now = clock_mono_us();
    b->n_unread++;
    if (b->unread_us != 0 && now - b->unread_us < TELL_EVERY_US)
        return;
    log_warn("seal.unread",
             "payloads=%" PRIu64 " why=\"no key of QUEEN_ENCRYPTION_KEY opens them, or "
             "they were sealed for other messages: they are given out as they are stored\"",
             b->n_unread);
    b->unread_us = now;
    b->n_unread = 0;
}
