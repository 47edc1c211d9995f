// doctor.h: checks of `queen doctor` and their results.
#ifndef QUEEN_CLI_DOCTOR_H
#define QUEEN_CLI_DOCTOR_H

#include "base/attrs.h"

struct cli;

enum verdict { DOCTOR_FINE, DOCTOR_WARN, DOCTOR_BAD };

struct doctor {
    struct cli *cli;
    unsigned warned, bad;
};

// Prints one line: the subject, the finding, and advice (NULL when fine).
void doctor_say(struct doctor *d, enum verdict v, const char *what, const char *advice,
                const char *fmt, ...) PRINTF_LIKE(5, 6);

// Checks messages and background work, from the server's metrics.
void doctor_work(struct doctor *d);

// Checks PostgreSQL itself, through a connection of our own.
void doctor_postgres(struct doctor *d, const char *conninfo);

#endif
