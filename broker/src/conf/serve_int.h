// serve_int.h: the table of the settings of `queen serve`; private to conf/.
#ifndef QUEEN_CONF_SERVE_INT_H
#define QUEEN_CONF_SERVE_INT_H

#include "conf/serve.h"

extern const struct conf_table serve_table;
extern const struct conf_key serve_keys[];
extern const unsigned serve_n_keys;

// Known names that have no effect in this version, and the reason.
struct serve_unused {
    const char *name;
    const char *why;
};
extern const struct serve_unused serve_unused[];
extern const unsigned serve_n_unused;

// Names of clients, tests and tools that have the same prefix.
extern const char *const serve_foreign[];
extern const unsigned serve_n_foreign;

#endif
