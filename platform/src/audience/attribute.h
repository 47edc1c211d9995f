// attribute.h: the catalogue: what a segment may ask about a customer.
//
// Every piece of SQL that a compiled segment is made of stands in the catalogue or in the
// compiler: a request chooses among constants, its values travel as parameters.
//
// An attribute is known in two forms:
//
//      read      an expression over one row of a read model: a.* (customer_attributes) or
//                t.* (customer_transactions)
//      write     the same fact from the write model: a column of the customer (c.*), or an
//                aggregate over the customer's rows of one table
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
    ATTR_DATE,  // a day of the calendar
    ATTR_TIME,  // a point in time
    ATTR_TEXTS, // a set of texts
    ATTR_INTS,  // a set of whole numbers
    ATTR_TYPES
};

enum attribute_model { MODEL_ATTRIBUTES, MODEL_TRANSACTIONS, MODEL_NONE };

struct attribute {
    const char *name;  // as requests call it
    const char *label; // as people call it
    const char *table; // of the write model, without schema; for people and for the fallback
    enum attribute_type type;
    enum attribute_model model; // MODEL_NONE: only the fallback knows it
    const char *read;           // expression over a or t; NULL with MODEL_NONE
    const char *twin;           // its copy in the other model, which has an index; NULL: none
    const char *rows;           // condition on the rows that count; NULL: all of them
    const char *write;          // see below
    const char *write_mysql;    // where MySQL says it otherwise; NULL: as write; "": cannot
    bool zero;                  // a customer without rows has 0 and not "nothing"
    // Counts that may be asked "within the last N days":
    const char *days; // read model: the days of the last ATTRIBUTE_LAST_DAYS rows, newest first
    const char
        *third;     // the third of them as a column of its own, which has an index; NULL: none
    const char *at; // write model: when a row happened
};
enum { ATTRIBUTE_LAST_DAYS = 10 };
// write, by table and type:
//      customer         an expression over c
//      else, BOOL       NULL: is there a row?
//      else, a set      the column whose values make the set
//      else             an aggregate over the rows

extern const struct attribute attribute_catalogue[];
extern const size_t attribute_count;

const struct attribute *attribute_find(span name);    // NULL: there is none
const struct attribute *attribute_nearest(span name); // for "did you mean"; NULL: nothing near
const char *attribute_type_name(enum attribute_type type);
bool attribute_is_set(const struct attribute *a);      // a set of values
bool attribute_of_customer(const struct attribute *a); // a column of the customer's own row

// ---- operators ----

// Those that are compiled; the others are their exact opposites.
enum test {
    TEST_EQ,
    TEST_GT,
    TEST_GTE,
    TEST_LT,
    TEST_LTE,
    TEST_BETWEEN, // both ends belong to it
    TEST_IN,
    TEST_IS_SET,
    TEST_CONTAINS,    // without regard to case
    TEST_STARTS_WITH, // without regard to case
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
    bool opposite; // true where the test is not, customers without a value among them
    enum operand operand;
    unsigned types; // 1 << enum attribute_type each
};

extern const struct operator_kind operator_catalogue[];
extern const size_t operator_count;

const struct operator_kind *operator_find(span name);
bool operator_takes(const struct operator_kind *o, enum attribute_type type);

#endif
