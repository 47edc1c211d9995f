// show_conf.h: `queen serve` and `queen platform` about their settings: --help, --print-config
// and the like.
#ifndef QUEEN_CONF_SHOW_CONF_H
#define QUEEN_CONF_SHOW_CONF_H

#include "base/buf.h"
#include "conf/conf.h"

// Each command has settings of its own type.
struct conf_texts {
    const char *command; // "queen serve"
    void (*help)(struct buf *out);
    void (*print)(const void *conf, struct buf *out);
    void (*markdown)(struct buf *out);
};

// Writes to standard output what the command line asks for.  false: that failed, which was
// told.
MUST_USE bool show_conf(const struct conf_texts *t, enum conf_action action, const void *conf);

#endif
