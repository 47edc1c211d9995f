// banner.h: the lines that `queen serve` prints at its start.
#ifndef QUEEN_SERVER_BANNER_H
#define QUEEN_SERVER_BANNER_H

#include <stdbool.h>

#include "net/listeners.h"

// On stdout: where it listens, where the data is, the first push and pop.  The log is
// elsewhere (stderr), so this stays readable.
void banner_print(const struct listeners *l, bool exposed, const char *where);

#endif
