// Datagrams from anybody: decoding stays inside, and what is accepted can be written again.
// build: broker/src/peer/datagram.c -lcrypto
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "peer/datagram.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct peer_note note, again;
    uint8_t wire[PEER_MAX];

    if (peer_decode((span){(const char *)data, size}, SPAN_NONE, &note) != PEER_OK)
        return 0;
    size_t n = peer_encode(&note, SPAN("key"), wire);
    if (n > 0) {
        assert(peer_decode((span){(const char *)wire, n}, SPAN("key"), &again) == PEER_OK);
        assert(span_eq(again.queue, note.queue) && again.sequence == note.sequence);
    }
    return 0;
}
