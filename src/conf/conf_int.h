// conf_int.h: the table of settings, for this folder only.
#ifndef QUEEN_CONF_CONF_INT_H
#define QUEEN_CONF_CONF_INT_H

#include <stdint.h>

#include "conf/conf.h"

enum conf_type {
    CONF_INT,    // int
    CONF_SIZE,   // size_t
    CONF_FLOAT,  // double
    CONF_BOOL,   // bool
    CONF_STRING, // const char *; with choices: one of them
    CONF_ENUM,   // an enum whose values count the choices
};

struct conf_key {
    const char *section; // NULL: as the row before
    const char *name;    // of the environment variable
    const char *alias;   // older name; the name wins if both are set.  Or NULL
    enum conf_type type;
    bool secret;          // never shown
    const char *unit;     // "ms", "bytes", ..., or NULL
    double min, max;      // of numbers
    const char *fallback; // the default, as it would be written
    const char *choices;  // "a|b", or NULL
    const char *text;     // one sentence
    size_t offset;        // in struct conf
};

extern const struct conf_key conf_keys[];
extern const unsigned conf_n_keys;

// Known names that do nothing in this version, and why.
struct conf_unused {
    const char *name;
    const char *why;
};
extern const struct conf_unused conf_unused[];
extern const unsigned conf_n_unused;

// Names of clients, tests and tools that start like ours.
extern const char *const conf_foreign[];
extern const unsigned conf_n_foreign;

enum { CONF_FLAG_MAX = 64 };
// "--port": lower case, dashes, without a leading QUEEN_ unless another setting is called
// like the rest.
void conf_flag(const struct conf_key *key, char out[CONF_FLAG_MAX]);
void conf_put_value(const struct conf *c, const struct conf_key *key, struct buf *out);
// "a whole number from 1 to 65535 (ms)"
void conf_put_expected(const struct conf_key *key, struct buf *out);

#endif
