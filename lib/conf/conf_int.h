// conf_int.h: tables of settings; private to lib/conf.
//
// A table describes the settings of one command: names, ranges, descriptions, and the offsets
// of the values in the command's struct.
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
    CONF_ENUM,   // an enum whose values are positions in choices
};

struct conf_key {
    const char *section; // NULL: same as the previous row
    const char *name;    // of the environment variable
    const char *alias;   // older name, or NULL; if both are set, the name wins
    enum conf_type type;
    bool secret;          // never shown
    const char *unit;     // "ms", "bytes", ..., or NULL
    double min, max;      // of numbers
    const char *fallback; // the default, as a user would write it
    const char *choices;  // "a|b", or NULL
    const char *text;     // one sentence
    size_t offset;        // in the command's struct
};

// For rows; each table defines AT() for its struct.
#define INT(a, b)  .type = CONF_INT, .min = (a), .max = (b)
#define SIZE(a, b) .type = CONF_SIZE, .min = (a), .max = (b)
#define MS(a)      INT(a, 86400000), .unit = "ms"
#define TEXT       .type = CONF_STRING

struct conf_table {
    const char *command; // "serve"
    const char *prefix;  // of names, optional in options: "QUEEN_"
    const struct conf_key *keys;
    unsigned n_keys;
};

// Destination of a table's values.
struct conf_values {
    const struct conf_table *table;
    void *fields; // struct of the keys' offsets
    unsigned char *origin;
    enum conf_action *action;
};

// table.c: defaults, then the environment, then the command line.
MUST_USE int conf_read(const struct conf_values *v, int n, char *const args[],
                       char *const env[], struct fault *f);
const char *conf_env(char *const env[], const char *name); // NULL when unset or empty
// "$XDG_DATA_HOME/queen", or its usual replacement; in the arena.
const char *conf_data_home(struct arena *a, char *const env[], const char *name);

extern const struct conf_table conf_serve;
extern const struct conf_key conf_keys[];
extern const unsigned conf_n_keys;

// Known names that have no effect in this version, and the reason.
struct conf_unused {
    const char *name;
    const char *why;
};
extern const struct conf_unused conf_unused[];
extern const unsigned conf_n_unused;

// Names of clients, tests and tools that have the same prefix.
extern const char *const conf_foreign[];
extern const unsigned conf_n_foreign;

enum { CONF_FLAG_MAX = 64 };
// "--port": lower case with dashes, without the table's prefix unless that would be ambiguous.
void conf_flag(const struct conf_table *t, const struct conf_key *key, char out[CONF_FLAG_MAX]);
void conf_put_value(const void *fields, const struct conf_key *key, struct buf *out);
// "a whole number from 1 to 65535 (ms)"
void conf_put_expected(const struct conf_key *key, struct buf *out);

// show.c: prints a table.
void conf_put_values(const struct conf_table *t, const void *fields,
                     const unsigned char *origin, struct buf *out); // --print-config
void conf_put_help(const struct conf_table *t, struct buf *out);    // the options of --help
void conf_put_tables(const struct conf_table *t, struct buf *out);  // markdown

#endif
