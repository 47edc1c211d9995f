// confirm.h: what cannot be undone is asked for twice.
#ifndef QUEEN_CLI_CONFIRM_H
#define QUEEN_CLI_CONFIRM_H

#include "base/attrs.h"
#include "cli/args.h"

struct cli;

#define CONFIRM_OPTION                           \
    {                                            \
        "yes", 'y', CLI_FLAG, NULL, "do not ask" \
    }

// With --yes at once; on a terminal asks; else says that --yes is needed.  CLI_OK: go on.
// question: "remove the queue orders and all its messages"
MUST_USE int confirm(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
