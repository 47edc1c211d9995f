// The table that tools/embed_web.py writes.
#ifndef QUEEN_WEB_WEB_INT_H
#define QUEEN_WEB_WEB_INT_H

#include "base/span.h"

struct web_file {
    const char *path; // NULL ends the table
    const char *type;
    const char *etag; // with its quotes
    span plain;
    span packed; // gzip
};

extern const struct web_file web_files[];

#endif
