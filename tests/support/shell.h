// shell.h: commands that tests run to make and stop servers.
#ifndef QUEEN_TESTS_SHELL_H
#define QUEEN_TESTS_SHELL_H

#include "base/attrs.h"

void shell_run(const char *fmt, ...) PRINTF_LIKE(1, 2); // aborts if it fails
// In front of a command: servers refuse to be root, so it runs as another user then.
const char *shell_as_another(void);

#endif
