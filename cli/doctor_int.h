// doctor_int.h: shared by the checks of PostgreSQL.
#ifndef QUEEN_CLI_DOCTOR_INT_H
#define QUEEN_CLI_DOCTOR_INT_H

#include <libpq-fe.h>

#include "cli/doctor.h"

// The rows, given; NULL after printing the error.
PGresult *doctor_query(struct doctor *d, PGconn *c, const char *what, const char *sql);

// Checks what the role may do in its database.
void doctor_rights(struct doctor *d, PGconn *c);

#endif
