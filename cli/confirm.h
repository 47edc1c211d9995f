// confirm.h: asks the user before an irreversible action.
#ifndef QUEEN_CLI_CONFIRM_H
#define QUEEN_CLI_CONFIRM_H

#include "base/attrs.h"
#include "cli/args.h"

struct cli;

#define CONFIRM_OPTION                           \
    {                                            \
        "yes", 'y', CLI_FLAG, NULL, "do not ask" \
    }

// Continues at once with --yes; prompts on a terminal; otherwise fails and mentions --yes.
// CLI_OK: continue. The text is like "remove the queue orders and all its messages".
MUST_USE int confirm(struct cli *cli, const char *fmt, ...) PRINTF_LIKE(2, 3);

#endif
