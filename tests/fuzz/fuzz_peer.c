// Datagrams from anybody: decoding stays inside the buffer, accepted datagrams can be written
// again, and the same datagram is not accepted twice.
// build: broker/src/peer/datagram.c broker/src/peer/replay_window.c -lcrypto
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

#include "peer/datagram.h"
#include "peer/replay_window.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct replay_windows windows;
    static struct replay_clock clock = {.dead_us = 100};
    struct peer_note note, again;
    uint8_t wire[PEER_MAX];

    if (peer_decode((span){(const char *)data, size}, SPAN_NONE, &note) != PEER_OK)
        return 0;
    clock.now_us += size % 7;
    clock.wall_ms = note.at_ms + size % 70000;
    (void)replay_window_admit(&windows, &note, &clock);
    assert(replay_window_admit(&windows, &note, &clock) != REPLAY_NEW);
    assert(windows.n <= REPLAY_WINDOWS_MAX);
    size_t n = peer_encode(&note, SPAN("key"), wire);
    if (n > 0) {
        assert(peer_decode((span){(const char *)wire, n}, SPAN("key"), &again) == PEER_OK);
        assert(span_eq(again.queue, note.queue) && again.sequence == note.sequence);
    }
    return 0;
}
