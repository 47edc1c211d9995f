// conf_int.h: tables of settings, for this folder only.
//
// A table says everything about the settings of one command: names, ranges, sentences, and
// where in a struct of the command's own the values go.
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
    size_t offset;        // in the command's struct
};

// For rows; the type's own struct is named by AT() in each table.
#define INT(a, b)  .type = CONF_INT, .min = (a), .max = (b)
#define SIZE(a, b) .type = CONF_SIZE, .min = (a), .max = (b)
#define MS(a)      INT(a, 86400000), .unit = "ms"
#define TEXT       .type = CONF_STRING

struct conf_table {
    const char *command; // "serve"
    const char *prefix;  // of names, which options may leave out: "QUEEN_"
    const struct conf_key *keys;
    unsigned n_keys;
};

// Where the values of a table go.
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
// "$XDG_DATA_HOME/queen", or where data goes without that; in the arena.
const char *conf_data_home(struct arena *a, char *const env[], const char *name);

extern const struct conf_table conf_serve;
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
// "--port": lower case, dashes, without the table's prefix unless another setting is called
// like the rest.
void conf_flag(const struct conf_table *t, const struct conf_key *key, char out[CONF_FLAG_MAX]);
void conf_put_value(const void *fields, const struct conf_key *key, struct buf *out);
// "a whole number from 1 to 65535 (ms)"
void conf_put_expected(const struct conf_key *key, struct buf *out);

// show.c: a table for people.
void conf_put_values(const struct conf_table *t, const void *fields,
                     const unsigned char *origin, struct buf *out); // --print-config
void conf_put_help(const struct conf_table *t, struct buf *out);    // the options of --help
void conf_put_tables(const struct conf_table *t, struct buf *out);  // markdown

#endif
