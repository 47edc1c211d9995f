// attribute.h: the catalogue of attributes that a segment may use.
//
// All SQL of a compiled segment comes from constants in the catalogue or the compiler.  A
// request selects among them, and its values are passed as parameters.
//
// An attribute has two forms:
//
//       read      an expression over one row of a read model: a.* (customer_attributes) or
//                 t.* (customer_transactions)
//       write     the same fact from the write model: a column of the customer (c.*), or an
//                 aggregate over the customer's rows of one table
#ifndef QUEEN_AUDIENCE_ATTRIBUTE_H
#define QUEEN_AUDIENCE_ATTRIBUTE_H

#include <stdbool.h>
#include <stddef.h>

#include "base/span.h"

enum attribute_type {
    ATTR_BOOL,
    ATTR_INT,
    ATTR_MONEY, // numeric
    ATTR_TEXT,
    ATTR_DATE,  // a calendar day
    ATTR_TIME,  // a point in time
    ATTR_TEXTS, // a set of texts
    ATTR_INTS,  // a set of whole numbers
    ATTR_TYPES
};

enum attribute_model { MODEL_ATTRIBUTES, MODEL_TRANSACTIONS, MODEL_NONE };

struct attribute {
    const char *name;  // in requests
    const char *label; // for people
    const char *table; // of the write model, without schema; for documentation and the fallback
    enum attribute_type type;
    enum attribute_model model; // MODEL_NONE: available only in the fallback
    const char *read;           // expression over a or t; NULL with MODEL_NONE
    const char *twin;           // indexed copy in the other model; NULL: none
    const char *rows;           // condition on the rows that count; NULL: all of them
    const char *write;          // see below
    const char *write_mysql;    // NULL: same as write; "": not supported by MySQL
    bool zero;                  // a customer without rows has the value 0, not null
    // For counts that support withinDays:
    const char *days; // read model: the days of the last ATTRIBUTE_LAST_DAYS rows, newest first
    const char *third; // the third of them as an indexed column of its own; NULL: none
    const char *at;    // write model: time of a row
};
enum { ATTRIBUTE_LAST_DAYS = 10 };
// write, by table and type:
//       customer         an expression over c
//       else, BOOL       NULL: tests whether a row exists
//       else, a set      the column whose values form the set
//       else             an aggregate over the rows

extern const struct attribute attribute_catalogue[];
extern const size_t attribute_count;

const struct attribute *attribute_find(span name);    // NULL: unknown
const struct attribute *attribute_nearest(span name); // for "did you mean"; NULL: none is close
const char *attribute_type_name(enum attribute_type type);
bool attribute_is_set(const struct attribute *a);      // a set of values
bool attribute_of_customer(const struct attribute *a); // a column of the customer's own row

// ---- operators ----

// The tests that are compiled; other operators negate one of them.
enum test {
    TEST_EQ,
    TEST_GT,
    TEST_GTE,
    TEST_LT,
    TEST_LTE,
    TEST_BETWEEN, // inclusive
    TEST_IN,
    TEST_IS_SET,
    TEST_CONTAINS,    // case-insensitive
    TEST_STARTS_WITH, // case-insensitive
    TEST_ANY,
    TEST_ALL,
    TEST_LAST_DAYS,
    TEST_NEXT_DAYS,
};

enum operand { OPERAND_NONE, OPERAND_ONE, OPERAND_TWO, OPERAND_LIST, OPERAND_DAYS };

struct operator_kind {
    const char *name;
    const char *label;
    enum test test;
    bool opposite; // negates the test; true for customers without a value
    enum operand operand;
    unsigned types; // 1 << enum attribute_type each
};

extern const struct operator_kind operator_catalogue[];
extern const size_t operator_count;

const struct operator_kind *operator_find(span name);
bool operator_takes(const struct operator_kind *o, enum attribute_type type);

#endif
