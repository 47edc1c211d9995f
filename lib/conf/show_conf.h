// show_conf.h: --help, --print-config and --print-markdown of `queen serve` and `queen
// platform`.
#ifndef QUEEN_CONF_SHOW_CONF_H
#define QUEEN_CONF_SHOW_CONF_H

#include "base/buf.h"
#include "conf/table.h"

// Each command has its own type of settings.
struct conf_texts {
    const char *command; // "queen serve"
    void (*help)(struct buf *out);
    void (*print)(const void *conf, struct buf *out);
    void (*markdown)(struct buf *out);
};

// Prints what the command line requested. false: writing failed, and the error was printed.
MUST_USE bool show_conf(const struct conf_texts *t, enum conf_action action, const void *conf);

#endif
