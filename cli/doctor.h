// doctor.h: checks and their verdicts.
#ifndef QUEEN_CLI_DOCTOR_H
#define QUEEN_CLI_DOCTOR_H

#include "base/attrs.h"

struct cli;

enum verdict { DOCTOR_FINE, DOCTOR_WARN, DOCTOR_BAD };

struct doctor {
    struct cli *cli;
    unsigned warned, bad;
};

// One line: what was looked at, what was found, and, unless it is fine, what to do (advice;
// NULL when fine).
void doctor_say(struct doctor *d, enum verdict v, const char *what, const char *advice,
                const char *fmt, ...) PRINTF_LIKE(5, 6);

// Everything that PostgreSQL itself can tell, through a connection of our own.
void doctor_postgres(struct doctor *d, const char *conninfo);

#endif
