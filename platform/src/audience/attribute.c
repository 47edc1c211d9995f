// attribute.c: lookups in the catalogue, and the operators.
#include "audience/attribute.h"

#include "base/attrs.h"
#include "base/str.h"

#define T(type)  (1u << ATTR_##type)
#define NUMBERS  (T(INT) | T(MONEY))
#define MOMENTS  (T(DATE) | T(TIME))
#define ORDERED  (NUMBERS | MOMENTS)
#define SETS     (T(TEXTS) | T(INTS))
#define SCALARS  (T(BOOL) | NUMBERS | MOMENTS | T(TEXT))
#define LISTABLE (T(INT) | T(TEXT))

const struct operator_kind operator_catalogue[] = {
    {"eq", "is", TEST_EQ, false, OPERAND_ONE, SCALARS},
    {"ne", "is not", TEST_EQ, true, OPERAND_ONE, SCALARS},
    {"gt", "is more than", TEST_GT, false, OPERAND_ONE, ORDERED},
    {"gte", "is at least", TEST_GTE, false, OPERAND_ONE, ORDERED},
    {"lt", "is less than", TEST_LT, false, OPERAND_ONE, ORDERED},
    {"lte", "is at most", TEST_LTE, false, OPERAND_ONE, ORDERED},
    {"between", "is between", TEST_BETWEEN, false, OPERAND_TWO, ORDERED},
    {"in", "is one of", TEST_IN, false, OPERAND_LIST, LISTABLE},
    {"not_in", "is none of", TEST_IN, true, OPERAND_LIST, LISTABLE},
    {"is_set", "is known", TEST_IS_SET, false, OPERAND_NONE, SCALARS | SETS},
    {"is_not_set", "is not known", TEST_IS_SET, true, OPERAND_NONE, SCALARS | SETS},
    {"contains", "contains", TEST_CONTAINS, false, OPERAND_ONE, T(TEXT)},
    {"not_contains", "does not contain", TEST_CONTAINS, true, OPERAND_ONE, T(TEXT)},
    {"starts_with", "starts with", TEST_STARTS_WITH, false, OPERAND_ONE, T(TEXT)},
    {"any", "has any of", TEST_ANY, false, OPERAND_LIST, SETS},
    {"all", "has all of", TEST_ALL, false, OPERAND_LIST, SETS},
    {"none", "has none of", TEST_ANY, true, OPERAND_LIST, SETS},
    {"in_last_days", "was in the last days", TEST_LAST_DAYS, false, OPERAND_DAYS, MOMENTS},
    {"not_in_last_days", "was not in the last days", TEST_LAST_DAYS, true, OPERAND_DAYS,
     MOMENTS},
    {"in_next_days", "is in the next days", TEST_NEXT_DAYS, false, OPERAND_DAYS, MOMENTS},
};
const size_t operator_count = countof(operator_catalogue);

const struct attribute *attribute_find(span name)
{
    for (size_t i = 0; i < attribute_count; i++)
        if (span_eq(name, span_of(attribute_catalogue[i].name)))
            return &attribute_catalogue[i];
    return NULL;
}

const struct attribute *attribute_nearest(span name)
{
    const struct attribute *best = NULL;
    unsigned least = 4;

    for (size_t i = 0; i < attribute_count; i++) {
        unsigned d = str_distance(name, span_of(attribute_catalogue[i].name));
        if (d < least) {
            least = d;
            best = &attribute_catalogue[i];
        }
    }
    return best;
}

const char *attribute_type_name(enum attribute_type type)
{
    static const char *const names[] = {"boolean", "integer",   "number", "text",
                                        "date",    "timestamp", "texts",  "integers"};
    return names[type];
}

bool attribute_is_set(const struct attribute *a)
{
    return a->type == ATTR_TEXTS || a->type == ATTR_INTS;
}

bool attribute_of_customer(const struct attribute *a)
{
    return span_eq(span_of(a->table), SPAN("customer"));
}

const struct operator_kind *operator_find(span name)
{
    for (size_t i = 0; i < operator_count; i++)
        if (span_eq(name, span_of(operator_catalogue[i].name)))
            return &operator_catalogue[i];
    return NULL;
}

bool operator_takes(const struct operator_kind *o, enum attribute_type type)
{
    return o->types >> type & 1;
}
