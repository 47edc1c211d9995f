// money.h: amounts as whole hundredths, so that sums are exact.
#ifndef QUEEN_INGEST_MONEY_H
#define QUEEN_INGEST_MONEY_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

// Parses a JSON number, with or without exponent.  Returns false unless it is a whole number of
// hundredths in range.
bool money_parse(span number, int64_t *hundredths);
void money_put(struct buf *b, int64_t hundredths); // "-12.05"

#endif
