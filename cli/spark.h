// spark.h: draws the last values as a row of bars.
#ifndef QUEEN_CLI_SPARK_H
#define QUEEN_CLI_SPARK_H

#include "base/buf.h"

enum { SPARK_MAX = 120 };

// {0} is empty.
struct spark {
    double values[SPARK_MAX]; // a ring
    unsigned n;               // total number added
};

void spark_add(struct spark *s, double value);
// The last `width` values, the newest to the right, scaled from 0 to their maximum; blanks
// where there are none yet.
void spark_put(struct buf *b, const struct spark *s, unsigned width);

#endif
