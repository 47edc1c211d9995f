// filter.h: a segment's definition: a tree of filters.
//
//      {"and": [{"attribute": "is_active_subscriber", "operator": "eq", "value": true},
//               {"attribute": "visit_count", "operator": "gte", "value": 3, "withinDays": 30},
//               {"or": [...]}, {"not": {...}}]}
//
// A filter is true or false for a customer, never unknown: what is asked of a value that is not
// there is false, and "not" (also ne, not_in, none, ...) makes it true.  {} is everybody.
//
// Reading one checks everything against the catalogue: what is accepted can be compiled.
#ifndef QUEEN_AUDIENCE_FILTER_H
#define QUEEN_AUDIENCE_FILTER_H

#include <stdint.h>

#include "audience/attribute.h"
#include "base/arena.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

enum filter_kind { FILTER_AND, FILTER_OR, FILTER_NOT, FILTER_LEAF };

// By the attribute's type: BOOL yes; INT, and days: number; DATE: number, days since
// 2000-01-01; TIME: number, microseconds since 1970; MONEY: text, an ordinary decimal number;
// TEXT: text.
struct filter_value {
    span text;
    int64_t number;
    bool yes;
};

struct filter {
    enum filter_kind kind;
    struct filter *first; // of the children; NULL in a leaf, and in an "and" of nothing
    struct filter *next;  // beside it
    // leaves
    const struct attribute *attribute;
    const struct operator_kind *op;
    const struct filter_value *values;
    unsigned n_values;
    unsigned
        within; // only what happened in the last so many days (UTC), today one of them; 0: ever
    unsigned number; // of the leaf, from 0, in the order of the text
    span path;       // where it stands: "/and/0"
    span source;     // its text; borrowed from the definition
};

struct filter_limits {
    unsigned depth;      // of and/or/not above each other
    unsigned leaves;     // filters in all
    unsigned list;       // values of one list
    unsigned text_bytes; // of one text
    unsigned cost;       // see filter_facts
};
extern const struct filter_limits filter_default_limits;
enum { FILTER_MAX_LEAVES = 32 };

// What a caller needs to know before it compiles.
struct filter_facts {
    unsigned leaves;
    unsigned depth;
    unsigned cost;       // 1 for each comparison, more for searches in text and long lists
    bool models[3];      // by enum attribute_model: asked of?
    bool fallback_only;  // something that no read model knows
    bool not_mysql;      // something that MySQL cannot compute
    bool of_this_moment; // depends on what time it is
};

// The tree lives in a; text is borrowed as long as the tree.  0, or a code with f naming the
// place: "filter/and/1/value: must be a whole number".
MUST_USE int filter_read(span text, struct arena *a, const struct filter_limits *limits,
                         struct filter **out, struct filter_facts *facts, struct fault *f);

// The value of a leaf (raw JSON) by its attribute and operator; filter.c calls it.
MUST_USE int filter_read_days(span raw, int64_t *days, struct fault *f); // 1 to 36500
MUST_USE int filter_read_value(struct filter *leaf, span raw, struct arena *a,
                               const struct filter_limits *limits, struct fault *f);

// Leaves in their order; *at starts with NULL.  false after the last.
typedef void (*filter_leaf_cb)(const struct filter *leaf, void *ctx);
void filter_each_leaf(const struct filter *f, filter_leaf_cb each, void *ctx);

#endif
