// reply_fault.c: an error of PostgreSQL as a fault.
#include <stdio.h>
#include <string.h>

#include "pg/reply.h"

int pg_reply_fault(struct fault *f, int status, const struct pg_reply *r)
{
    const char *message = pg_reply_message(r);

    if (strcmp(message, err_text(status)) == 0)
        message = ""; // a call that was not sent
    fault_set(f, status, "%s%s%s", err_text(status), *message ? ": " : "", message);
    snprintf(f->sqlstate, sizeof f->sqlstate, "%s", pg_reply_sqlstate(r));
    return status;
}
