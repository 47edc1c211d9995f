// filter.h: a segment's definition: a tree of filters.
//
//       {"and": [{"attribute": "is_active_subscriber", "operator": "eq", "value": true},
//                {"attribute": "visit_count", "operator": "gte", "value": 3, "withinDays": 30},
//                {"or": [...]}, {"not": {...}}]}
//
// A filter is true or false for a customer, never unknown.  A test of a missing value is false;
// "not" and the negated operators (ne, not_in, none, ...) make it true.  {"all": true} matches
// every customer.
//
// filter_read() checks everything against the catalogue: an accepted filter can be compiled.
#ifndef QUEEN_AUDIENCE_FILTER_H
#define QUEEN_AUDIENCE_FILTER_H

#include <stdint.h>

#include "audience/attribute.h"
#include "base/arena.h"
#include "base/attrs.h"
#include "base/err.h"
#include "base/span.h"

enum filter_kind { FILTER_AND, FILTER_OR, FILTER_NOT, FILTER_LEAF };

// By type of the attribute: BOOL: yes; INT and numbers of days: number; DATE: number, days
// since 2000-01-01; TIME: number, microseconds since 1970; MONEY: text, a plain decimal number;
// TEXT: text.
struct filter_value {
    span text;
    int64_t number;
    bool yes;
};

struct filter {
    enum filter_kind kind;
    struct filter *first; // child; NULL in a leaf and in an "and" that matches everybody
    struct filter *next;  // sibling
    // for leaves
    const struct attribute *attribute;
    const struct operator_kind *op;
    const struct filter_value *values;
    unsigned n_values;
    unsigned within; // only rows of the last so many days (UTC), today included; 0: all
    unsigned number; // of the leaf, from 0, in order of the text
    span path;       // position: "/and/0"
    span source;     // its text; borrowed from the definition
};

struct filter_limits {
    unsigned depth;      // nesting of and/or/not
    unsigned leaves;     // total
    unsigned list;       // values per list
    unsigned text_bytes; // per text
    unsigned cost;       // see filter_facts
};
extern const struct filter_limits filter_default_limits;
enum { FILTER_MAX_LEAVES = 32 };

// Properties that a caller needs before it compiles.
struct filter_facts {
    unsigned leaves;
    unsigned depth;
    unsigned cost;       // 1 per comparison, more for text searches and long lists
    bool models[3];      // by enum attribute_model: used?
    bool fallback_only;  // uses an attribute that no read model contains
    bool not_mysql;      // uses an attribute that MySQL cannot compute
    bool of_this_moment; // depends on the current time
};

// The tree is allocated in a; text is borrowed for the life of the tree.  Returns 0, or a code
// with the position in f: "filter/and/1/value: must be a whole number".
MUST_USE int filter_read(span text, struct arena *a, const struct filter_limits *limits,
                         struct filter **out, struct filter_facts *facts, struct fault *f);

// Reads the value of a leaf (raw JSON) by its attribute and operator; for filter.c.
MUST_USE int filter_read_days(span raw, int64_t *days, struct fault *f); // 1 to 36500
MUST_USE int filter_read_value(struct filter *leaf, span raw, struct arena *a,
                               const struct filter_limits *limits, struct fault *f);

// Calls the function for each leaf, in order.
typedef void (*filter_leaf_cb)(const struct filter *leaf, void *ctx);
void filter_each_leaf(const struct filter *f, filter_leaf_cb each, void *ctx);

#endif
