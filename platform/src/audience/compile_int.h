// compile_int.h: the functions that the parts of the compiler share.
#ifndef QUEEN_AUDIENCE_COMPILE_INT_H
#define QUEEN_AUDIENCE_COMPILE_INT_H

#include "audience/compile.h"

// Writes a parameter into the text: its number, or "?".
void sql_put_param(struct compiled *c, struct sql_param p);
void sql_put_int(struct compiled *c, int64_t v);
void sql_put_uuid(struct compiled *c, const uint8_t v[16]);

// Reuses the parameters from this one on.  MySQL cannot: there they are passed again.
void sql_again(struct compiled *c, unsigned from);

// Writes a leaf's test before negation: true, or not true (false or null).
void leaf_put(struct compiled *c, const struct filter *leaf);
// Writes the customer's value of the attribute as JSON text.
void leaf_put_value(struct compiled *c, const struct filter *leaf);

#endif
