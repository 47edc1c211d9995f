// targets.h: the databases that QUEEN_MIGRATION_TARGETS allows a migration to write to.
#ifndef QUEEN_TRANSFER_TARGETS_H
#define QUEEN_TRANSFER_TARGETS_H

#include <stdbool.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

// A list of host[:port][/database], separated by commas or spaces. Port: 5432. Without a
// database every database of that server is allowed. IPv6: [::1]:5432. Host names are compared
// as text, without regard to case: a name and its address are different targets.
MUST_USE int transfer_targets_check(const char *list, struct fault *f);
bool transfer_targets_allow(const char *list, span host, unsigned port, span database);

#endif
