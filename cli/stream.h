// stream.h: reads JSON values from a file or pipe, one after another.
//
// They may be one per line (NDJSON), pretty-printed, or separated by white space, as jq writes
// them. A value is returned as soon as it is complete, so a pipe is read no faster than its
// values are used.
#ifndef QUEEN_CLI_STREAM_H
#define QUEEN_CLI_STREAM_H

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

struct stream {
    int fd;
    const char *name; // for messages; borrowed
    bool lines;       // each line is text, not JSON
    struct buf bytes; // read and not yet used from `used` on
    size_t used;
    uint64_t offset; // of bytes.ptr in the file
    bool ended;
};

void stream_init(struct stream *s, int fd, const char *name, bool lines);
void stream_deinit(struct stream *s); // does not close fd

// 1: *value is the next one, borrowed until the next call; 0: the end; else a code of err.h
// with the reason in f.
MUST_USE int stream_next(struct stream *s, span *value, struct fault *f);
// Bytes of the file that were used up by the values given so far.
uint64_t stream_offset(const struct stream *s);

#endif
