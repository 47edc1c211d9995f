// value.c: checks the values of a filter against the attribute's type.
#include "audience/filter.h"
#include "base/moment.h"
#include "base/str.h"
#include "json/scan.h"

enum {
    MAX_DAYS = 36500,
    DAYS_1970_TO_2000 = 10957,
    MAX_MONEY_DIGITS = 15,
    MAX_MONEY_PLACES = 6
};
#define DAY_US INT64_C(86400000000)

static int read_one(const struct filter *leaf, span raw, struct arena *a,
                    const struct filter_limits *limits, struct filter_value *v,
                    struct fault *f);

static int value_read_list(struct filter *leaf, span raw, unsigned least, unsigned most,
                           struct arena *a, const struct filter_limits *limits, struct fault *f)
{
    struct js count = js_read(raw), j = js_read(raw);
    unsigned n = 0;

    if (js_type_of(raw) != JS_ARRAY)
        return fault_set(f, QE_BAD_PARAM, "must be an array");
    js_enter_array(&count);
    for (; js_next_item(&count); js_skip(&count))
        n++;
    if (n < least || n > most)
        return least == most
                   ? fault_set(f, QE_BAD_PARAM, "must be an array of %u values", least)
                   : fault_set(f, QE_BAD_PARAM, "must be an array of %u to %u values", least,
                               most);

    struct filter_value *values = arena_new_array(a, struct filter_value, n);
    js_enter_array(&j);
    for (unsigned i = 0; js_next_item(&j); i++) {
        int rc = read_one(leaf, js_skip(&j), a, limits, &values[i], f);
        if (rc != 0) {
            fault_prefix(f, "item %u ", i);
            return rc;
        }
    }
    leaf->values = values;
    leaf->n_values = n;
    return 0;
}

int filter_read_days(span raw, int64_t *days, struct fault *f)
{
    if (js_type_of(raw) != JS_NUMBER || !js_int(raw, days) || *days < 1 || *days > MAX_DAYS)
        return fault_set(f, QE_BAD_PARAM, "must be a number of days from 1 to %d", MAX_DAYS);
    return 0;
}

int filter_read_value(struct filter *leaf, span raw, struct arena *a,
                      const struct filter_limits *limits, struct fault *f)
{
    struct filter_value *v;

    switch (leaf->op->operand) {
    case OPERAND_NONE:
        if (raw.ptr != NULL && js_type_of(raw) != JS_NULL)
            return fault_set(f, QE_BAD_PARAM, "operator %s takes no value", leaf->op->name);
        return 0;
    case OPERAND_ONE:
        v = arena_new(a, struct filter_value);
        leaf->values = v;
        leaf->n_values = 1;
        return read_one(leaf, raw, a, limits, v, f);
    case OPERAND_TWO:
        return value_read_list(leaf, raw, 2, 2, a, limits, f);
    case OPERAND_LIST:
        return value_read_list(leaf, raw, 1, limits->list, a, limits, f);
    case OPERAND_DAYS:
        v = arena_new(a, struct filter_value);
        leaf->values = v;
        leaf->n_values = 1;
        return filter_read_days(raw, &v->number, f);
    }
    return QE_INTERNAL;
}

static int attribute_read_text(span raw, struct arena *a, const struct filter_limits *limits,
                               struct filter_value *v, struct fault *f)
{
    if (js_type_of(raw) != JS_STRING)
        return fault_set(f, QE_BAD_PARAM, "must be a string");
    v->text = js_text(raw, a);
    if (v->text.len > limits->text_bytes)
        return fault_set(f, QE_BAD_PARAM, "must be at most %u bytes long", limits->text_bytes);
    return 0;
}

// Digits, a point, digits: no exponent that makes numeric_in() allocate gigabytes.
static bool is_money(span raw)
{
    span rest = raw;
    size_t whole = 0, places = 0;

    if (rest.len > 0 && rest.ptr[0] == '-')
        rest.ptr++, rest.len--;
    while (whole < rest.len && rest.ptr[whole] >= '0' && rest.ptr[whole] <= '9')
        whole++;
    if (whole < rest.len) {
        if (rest.ptr[whole] != '.')
            return false;
        places = rest.len - whole - 1;
        for (size_t i = whole + 1; i < rest.len; i++)
            if (rest.ptr[i] < '0' || rest.ptr[i] > '9')
                return false;
    }
    return whole > 0 && whole <= MAX_MONEY_DIGITS && places <= MAX_MONEY_PLACES;
}

static bool attribute_read_date(span text, int64_t *days)
{
    char moment[] = "YYYY-MM-DDT00:00Z";
    int64_t us;

    if (text.len != 10)
        return false;
    memcpy(moment, text.ptr, 10);
    if (!moment_parse((span){moment, sizeof moment - 1}, &us))
        return false;
    *days = us / DAY_US - (us % DAY_US < 0) - DAYS_1970_TO_2000;
    return true;
}

static int read_one(const struct filter *leaf, span raw, struct arena *a,
                    const struct filter_limits *limits, struct filter_value *v, struct fault *f)
{
    bool is_text = js_type_of(raw) == JS_STRING, is_number = js_type_of(raw) == JS_NUMBER;

    switch (leaf->attribute->type) {
    case ATTR_BOOL:
        if (!js_bool(raw, &v->yes))
            return fault_set(f, QE_BAD_PARAM, "must be true or false");
        return 0;
    case ATTR_INT:
    case ATTR_INTS:
        if (!is_number || !js_int(raw, &v->number) || v->number < INT32_MIN ||
            v->number > INT32_MAX)
            return fault_set(f, QE_BAD_PARAM, "must be a whole number of at most %d",
                             INT32_MAX);
        return 0;
    case ATTR_MONEY:
        if (!is_number || !is_money(raw))
            return fault_set(f, QE_BAD_PARAM,
                             "must be a number of at most %d digits and %d decimal places",
                             MAX_MONEY_DIGITS, MAX_MONEY_PLACES);
        v->text = raw;
        return 0;
    case ATTR_TEXT:
    case ATTR_TEXTS:
        return attribute_read_text(raw, a, limits, v, f);
    case ATTR_DATE:
        if (!is_text || !attribute_read_date(js_text(raw, a), &v->number))
            return fault_set(f, QE_BAD_PARAM, "must be a date: \"2026-11-16\"");
        return 0;
    case ATTR_TIME:
        if (!is_text || !moment_parse(js_text(raw, a), &v->number))
            return fault_set(f, QE_BAD_PARAM, "must be a time: \"2026-11-16T08:00:00Z\"");
        return 0;
    case ATTR_TYPES:
        break;
    }
    return QE_INTERNAL;
}
