// compile_int.h: what the parts of the compiler share.
#ifndef QUEEN_AUDIENCE_COMPILE_INT_H
#define QUEEN_AUDIENCE_COMPILE_INT_H

#include "audience/compile.h"

// A parameter into the text: its number, or "?".
void sql_put_param(struct compiled *c, struct sql_param p);
void sql_put_int(struct compiled *c, int64_t v);
void sql_put_uuid(struct compiled *c, const uint8_t v[16]);

// The parameters from this one on are named again.  MySQL cannot: there they are given again.
void sql_again(struct compiled *c, unsigned from);

// A leaf's test, true or not (false or null), opposite operators not yet turned around.
void leaf_put(struct compiled *c, const struct filter *leaf);
// What the customer has there, as JSON text.
void leaf_put_value(struct compiled *c, const struct filter *leaf);

#endif
