// args.h: parses options and arguments of a command from its table.
//
// Long options (--batch 5, --batch=5), letters (-n 5, -n5, joined flags: -qf), "--" ends them;
// options and arguments may be mixed. Values are checked while parsing, so the accessors
// cannot fail.
#ifndef QUEEN_CLI_ARGS_H
#define QUEEN_CLI_ARGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

enum cli_kind {
    CLI_FLAG,
    CLI_TEXT,
    CLI_COUNT,    // a whole number
    CLI_DURATION, // 1500ms, 30s, 5m, 2h, 1d; a number alone is seconds
    CLI_TIME,     // ISO 8601 with a zone, "now", or a duration back (-2h) or ahead (+30m)
};

struct cli_option {
    const char *name;
    char letter; // 0: none
    enum cli_kind kind;
    const char *value; // its name in --help: "NAME"; NULL for a flag
    const char *help;  // with the default in brackets
};

enum { ARGS_MAX_OPTIONS = 32 };

struct args {
    const struct cli_option *tables[2]; // of the command, and common ones
    size_t sizes[2];
    const char *values[2][ARGS_MAX_OPTIONS]; // as given; NULL: absent
    char **rest;                             // arguments that are no options
    size_t n_rest;
};

// own and common are borrowed; a command's own option hides a common one with the same letter.
// argv is borrowed and reordered. f holds the reason of a failure.
int args_parse(struct args *a, int argc, char **argv, struct fault *f);
// spec is cli_command.args: checks the number of arguments.
int args_check_count(const struct args *a, const char *spec, struct fault *f);

// It is a bug to request an option that is in no table.
const char *args_text(const struct args *a, const char *name); // NULL: not given
bool args_has(const struct args *a, const char *name);
uint64_t args_count(const struct args *a, const char *name, uint64_t fallback);
uint64_t args_ms(const struct args *a, const char *name, uint64_t fallback); // CLI_DURATION
// A CLI_TIME as ISO 8601 in UTC; false: absent.
enum { ARGS_TIME_SIZE = 32 };
bool args_time(const struct args *a, const char *name, char out[ARGS_TIME_SIZE]);

// Parses "1500ms", "30s", ... to milliseconds.
bool args_read_ms(const char *text, uint64_t *ms);

#endif
