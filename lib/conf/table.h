// table.h: tables of settings: reading and printing them.
//
// A table describes the settings of one command: names, ranges, descriptions, and the offsets
// of the values in the command's struct.
#ifndef QUEEN_CONF_TABLE_H
#define QUEEN_CONF_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

enum conf_action {
    CONF_RUN,
    CONF_SHOW_HELP,
    CONF_SHOW_CONFIG,
    CONF_SHOW_MARKDOWN,
    CONF_SHOW_VERSION
};
enum conf_origin { CONF_FROM_DEFAULT, CONF_FROM_ENVIRONMENT, CONF_FROM_FLAG, CONF_FROM_FILE };
enum { CONF_MAX_KEYS = 256 }; // most rows of a table

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
    bool secret;          // never shown; NAME_FILE may name a file with the value
    bool file;            // the same for a value that is no secret
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
    struct arena *arena; // for values from files; lives as long as fields
};

// table.c: defaults, then the environment, then the command line.
MUST_USE int conf_read(const struct conf_values *v, int n, char *const args[],
                       char *const env[], struct fault *f);
// hide.c: overwrites the secrets in the arguments and the environment, which /proc shows. The
// values in the struct become copies. env and args must be those of the process.
void conf_hide_secrets(const struct conf_values *v, int n, char *args[], char *env[]);
const char *conf_env(char *const env[], const char *name); // NULL when unset or empty
// "$XDG_DATA_HOME/queen", or its usual replacement; in the arena.
const char *conf_data_home(struct arena *a, char *const env[], const char *name);

enum { CONF_FLAG_MAX = 64 };
// "--port": lower case with dashes, without the table's prefix unless that would be ambiguous.
void conf_flag(const struct conf_table *t, const struct conf_key *key, char out[CONF_FLAG_MAX]);
void conf_put_value(const void *fields, const struct conf_key *key, struct buf *out);
// "a whole number from 1 to 65535 (ms)"
void conf_put_expected(const struct conf_key *key, struct buf *out);

// show.c: the values in effect, secrets hidden.
struct conf_value {
    const char *name, *origin, *unit, *text; // unit may be NULL; text: one sentence
    span value;                              // borrowed during the call
};
void conf_each_value(const struct conf_table *t, const void *fields,
                     const unsigned char *origin,
                     void (*each)(void *ctx, const struct conf_value *v), void *ctx);

// show.c: prints a table.
void conf_put_values(const struct conf_table *t, const void *fields,
                     const unsigned char *origin, struct buf *out); // --print-config
void conf_put_help(const struct conf_table *t, struct buf *out);    // the options of --help
void conf_put_tables(const struct conf_table *t, struct buf *out);  // markdown

#endif
