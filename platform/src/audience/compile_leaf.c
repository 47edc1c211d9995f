// compile_leaf.c: compiles one filter to a condition.
//
// Over a read model it compares a column.  Over the write model it tests a column of the
// customer, or membership in a sub-select, one per filter:
//
//       c.customer_uuid in (select r.customer_id from crm.wallet_account r
//                           group by r.customer_id having sum(r.balance) > $1)
#include "audience/compile_int.h"

#include <stdio.h>

#include "base/str.h"

// The current day in UTC, whatever time zone the session has.
static const char today_pg[] = "(now() at time zone 'UTC')::date";
static const char today_mysql[] = "utc_date()";
static const char now_mysql[] = "utc_timestamp(6)";

static void put_recent(struct compiled *c, const struct filter *leaf);
static void put_write(struct compiled *c, const struct filter *leaf);
static void put_set_rows(struct compiled *c, const struct filter *leaf);
static void put_number(struct compiled *c, const struct filter *leaf);
static void put_test(struct compiled *c, const struct filter *leaf, const char *operand);

static void put(struct compiled *c, const char *constant)
{
    buf_put(&c->text, span_of(constant));
}

static const char *write_of(const struct compiled *c, const struct attribute *a)
{
    return c->dialect == SQL_MYSQL && a->write_mysql ? a->write_mysql : a->write;
}

// The indexed copy finds candidates; the original decides.  The copy of a set is null for a
// customer who has too many values for the index.
static void put_twins(struct compiled *c, const struct filter *leaf)
{
    unsigned from = c->next_param;
    bool may_be_null = leaf->attribute->type != ATTR_BOOL;

    put(c, "(");
    put_test(c, leaf, leaf->attribute->read);
    sql_again(c, from);
    put(c, may_be_null ? " and (" : " and ");
    put_test(c, leaf, leaf->attribute->twin);
    if (may_be_null) {
        put(c, " or ");
        put(c, leaf->attribute->twin);
        put(c, " is null)");
    }
    put(c, ")");
}

void leaf_put(struct compiled *c, const struct filter *leaf)
{
    unsigned *first = &c->leaf_param[leaf->number];

    if (*first == 0)
        *first = c->next_param + 1;
    else
        sql_again(c, *first - 1);
    if (c->path == PATH_FALLBACK)
        put_write(c, leaf);
    else if (leaf->within > 0)
        put_recent(c, leaf);
    else if (c->twins >> leaf->number & 1)
        put_twins(c, leaf);
    else
        put_test(c, leaf, leaf->attribute->read);
    c->next_param = c->n_params;
}

// Compares text byte by byte.  Otherwise MySQL uses the collation of the column, which may
// ignore case, accents and trailing spaces.  The column may have another character set than the
// values, which are UTF-8.
static void put_exact(struct compiled *c, const char *text)
{
    bool my = c->dialect == SQL_MYSQL;

    put(c, my ? "cast(convert(" : "");
    put(c, text);
    put(c, my ? " using utf8mb4) as binary)" : "");
}

// ---- the read models: counts of the last days ----

// At least n: the n-th newest row is recent enough.
static void put_at_least(struct compiled *c, const struct filter *leaf, int64_t n)
{
    if (n <= 0) {
        put(c, "true");
        return;
    }
    put(c, "(");
    if (n == 3 && leaf->attribute->third) {
        put(c, leaf->attribute->third);
    } else {
        put(c, leaf->attribute->days);
        put(c, "[");
        sql_put_int(c, n);
        put(c, "::int]");
    }
    put(c, " > ");
    put(c, today_pg);
    put(c, " - ");
    sql_put_int(c, leaf->within);
    put(c, "::int)");
}

static void put_fewer(struct compiled *c, const struct filter *leaf, int64_t n)
{
    put(c, "(");
    put_at_least(c, leaf, n);
    put(c, " is not true)");
}

static void put_recent(struct compiled *c, const struct filter *leaf)
{
    int64_t n = leaf->n_values > 0 ? leaf->values[0].number : 0;

    switch (leaf->op->test) {
    case TEST_GTE:
        put_at_least(c, leaf, n);
        return;
    case TEST_GT:
        put_at_least(c, leaf, n + 1);
        return;
    case TEST_LT:
        put_fewer(c, leaf, n);
        return;
    case TEST_LTE:
        put_fewer(c, leaf, n + 1);
        return;
    case TEST_EQ:
    case TEST_IN:
    case TEST_BETWEEN:
        for (unsigned i = 0; i < leaf->n_values; i++) {
            bool between = leaf->op->test == TEST_BETWEEN;
            put(c, i == 0 ? "((" : " or (");
            put_at_least(c, leaf, leaf->values[i].number);
            put(c, " and ");
            put_fewer(c, leaf, leaf->values[between ? ++i : i].number + 1);
            put(c, ")");
        }
        put(c, ")");
        return;
    default:
        put(c, "true"); // a count is never null
    }
}

// ---- the write model ----

// Writes the condition on rows, " where ..." if there is one.  Returns the word that must
// precede another condition.
static const char *put_which(struct compiled *c, const struct filter *leaf)
{
    const struct attribute *a = leaf->attribute;

    if (a->rows) {
        put(c, " where ");
        put(c, a->rows);
    }
    if (leaf->within > 0) {
        put(c, a->rows ? " and " : " where ");
        put(c, a->at);
        if (c->dialect == SQL_PG) {
            put(c, " >= (");
            put(c, today_pg);
            put(c, " - ");
            sql_put_int(c, leaf->within - 1);
            put(c, "::int)::timestamp at time zone 'UTC'");
        } else {
            put(c, " >= date_sub(utc_date(), interval ");
            sql_put_int(c, leaf->within - 1);
            put(c, " day)");
        }
    }
    return a->rows || leaf->within > 0 ? " and " : " where ";
}

static const char *put_rows(struct compiled *c, const struct filter *leaf)
{
    put(c, "select r.customer_id from ");
    if (c->dialect == SQL_PG)
        put(c, "crm.");
    put(c, leaf->attribute->table);
    put(c, " r");
    return put_which(c, leaf);
}

static void put_write(struct compiled *c, const struct filter *leaf)
{
    const struct attribute *a = leaf->attribute;

    if (attribute_of_customer(a)) {
        put_test(c, leaf, write_of(c, a));
    } else if (attribute_is_set(a)) {
        put_set_rows(c, leaf);
    } else if (a->type == ATTR_BOOL) {
        // For a flag that is never null, the negation of "a row exists" is "no row exists".
        bool wanted = leaf->op->test == TEST_IS_SET || leaf->values[0].yes;
        if (leaf->op->test == TEST_IS_SET) {
            put(c, "true");
            return;
        }
        put(c, wanted ? "c.customer_uuid in (" : "not exists (select 1 from (");
        put_rows(c, leaf);
        put(c, wanted ? ")" : ") x where x.customer_id = c.customer_uuid)");
    } else {
        put_number(c, leaf);
    }
}

static void put_set_column(struct compiled *c, const struct attribute *a)
{
    char column[64];

    snprintf(column, sizeof column, "r.%s", a->write);
    if (a->type == ATTR_TEXTS)
        put_exact(c, column);
    else
        put(c, column);
}

// A set consists of the distinct values of a column of the customer's rows.
static void put_set_rows(struct compiled *c, const struct filter *leaf)
{
    const struct attribute *a = leaf->attribute;
    bool all = leaf->op->test == TEST_ALL;

    put(c, "c.customer_uuid in (");
    put(c, put_rows(c, leaf));
    put_set_column(c, a);
    if (leaf->op->test == TEST_IS_SET) {
        put(c, " is not null)");
        return;
    }
    struct sql_param list = {.kind = a->type == ATTR_TEXTS ? SQL_TEXTS : SQL_INTS,
                             .values = leaf->values,
                             .n = leaf->n_values};
    put(c, c->dialect == SQL_PG ? " = any(" : " in (");
    sql_put_param(c, list);
    put(c, ")");
    if (all) {
        put(c, " group by r.customer_id having count(distinct ");
        put_set_column(c, a);
        // The number of different values requested: the list may contain one twice.
        unsigned different = 0;
        for (unsigned i = 0; i < leaf->n_values; i++) {
            unsigned k = 0;
            while (k < i && (leaf->values[k].number != leaf->values[i].number ||
                             !span_eq(leaf->values[k].text, leaf->values[i].text)))
                k++;
            different += k == i;
        }
        put(c, ") = ");
        sql_put_int(c, different);
    }
    put(c, ")");
}

// Does 0, the value of a customer without rows, pass the test?
static bool zero_passes(const struct filter *leaf)
{
    double v[2] = {0, 0};

    for (unsigned i = 0; i < leaf->n_values; i++) {
        const struct filter_value *value = &leaf->values[i];
        double x = (double)value->number;
        if (leaf->attribute->type == ATTR_MONEY && !str_parse_double(value->text, &x))
            BUG("a number that is none");
        if (leaf->op->test == TEST_IN && x == 0)
            return true;
        if (i < 2)
            v[i] = x;
    }
    switch (leaf->op->test) {
    case TEST_EQ:
        return v[0] == 0;
    case TEST_GT:
        return 0 > v[0];
    case TEST_GTE:
        return 0 >= v[0];
    case TEST_LT:
        return 0 < v[0];
    case TEST_LTE:
        return 0 <= v[0];
    case TEST_BETWEEN:
        return v[0] <= 0 && 0 <= v[1];
    default:
        return leaf->op->test == TEST_IS_SET;
    }
}

// Selects customers whose rows pass.  If 0 passes, selects all except those whose rows fail, so
// that customers without rows are included.  (With "or" it could not be a join and would run
// once per customer.)
static void put_number(struct compiled *c, const struct filter *leaf)
{
    const struct attribute *a = leaf->attribute;
    bool all_but = a->zero && zero_passes(leaf);

    put(c, all_but ? "not exists (select 1 from (" : "c.customer_uuid in (");
    put_rows(c, leaf);
    put(c, all_but ? " group by r.customer_id having (" : " group by r.customer_id having ");
    put_test(c, leaf, write_of(c, a));
    put(c, all_but ? ") is not true) x where x.customer_id = c.customer_uuid)" : ")");
}

// ---- the test ----

static void put_value(struct compiled *c, const struct filter *leaf, unsigned i)
{
    const struct filter_value *v = &leaf->values[i];
    bool pg = c->dialect == SQL_PG;

    switch (leaf->attribute->type) {
    case ATTR_INT:
    case ATTR_INTS:
        sql_put_int(c, v->number);
        return;
    case ATTR_MONEY:
        put(c, "cast(");
        sql_put_param(c, (struct sql_param){.kind = SQL_TEXT, .text = v->text});
        put(c, pg ? " as numeric)" : " as decimal(30,6))");
        return;
    case ATTR_DATE:
        put(c, pg ? "(date '2000-01-01' + " : "date_add('2000-01-01', interval ");
        sql_put_int(c, v->number);
        put(c, pg ? "::int)" : " day)");
        return;
    case ATTR_TIME:
        sql_put_param(c, (struct sql_param){.kind = SQL_TIME, .number = v->number});
        return;
    default:
        sql_put_param(c, (struct sql_param){.kind = SQL_TEXT, .text = v->text});
    }
}

static void put_operand(struct compiled *c, const struct filter *leaf, const char *operand)
{
    if (leaf->attribute->type == ATTR_TEXT)
        put_exact(c, operand);
    else
        put(c, operand);
}

static void put_compare(struct compiled *c, const struct filter *leaf, const char *operand,
                        const char *sign)
{
    put_operand(c, leaf, operand);
    put(c, sign);
    put_value(c, leaf, 0);
}

static void put_in(struct compiled *c, const struct filter *leaf, const char *operand)
{
    bool ints = leaf->attribute->type == ATTR_INT;

    put_operand(c, leaf, operand);
    put(c, c->dialect == SQL_PG ? " = any(" : " in (");
    sql_put_param(c, (struct sql_param){.kind = ints ? SQL_INTS : SQL_TEXTS,
                                        .values = leaf->values,
                                        .n = leaf->n_values});
    put(c, ")");
}

static void put_set(struct compiled *c, const struct filter *leaf, const char *operand)
{
    bool texts = leaf->attribute->type == ATTR_TEXTS, any = leaf->op->test == TEST_ANY;
    struct sql_param list = {
        .kind = texts ? SQL_TEXTS : SQL_INTS, .values = leaf->values, .n = leaf->n_values};

    if (c->dialect == SQL_PG) {
        put(c, operand);
        put(c, any ? " && " : " @> ");
        sql_put_param(c, list);
        return;
    }
    // MySQL stores a set as a JSON array, and compares the texts as they are written: the same
    // writer must have written both (ingest/value.c).
    for (unsigned i = 0; i < leaf->n_values; i++) {
        put(c, i == 0 ? "(" : any ? " or " : " and ");
        put(c, "json_contains(");
        put(c, operand);
        put(c, ", ");
        sql_put_param(c, (struct sql_param){.kind = SQL_JSON, .text = leaf->values[i].text});
        put(c, ")");
    }
    put(c, ")");
}

static void put_search(struct compiled *c, const struct filter *leaf, const char *operand)
{
    bool starts = leaf->op->test == TEST_STARTS_WITH;

    if (c->dialect == SQL_MYSQL) {
        put(c, "locate(cast(lower(");
        put_value(c, leaf, 0);
        put(c, ") as binary), cast(lower(convert(");
        put(c, operand);
        put(c,
            starts ? " using utf8mb4)) as binary)) = 1" : " using utf8mb4)) as binary)) > 0");
        return;
    }
    put(c, starts ? "starts_with(lower(" : "strpos(lower(");
    put(c, operand);
    put(c, "), lower(");
    put_value(c, leaf, 0);
    put(c, starts ? "))" : ")) > 0");
}

// Ranges end or start now: (now - n days, now] and [now, now + n days).  For dates, today is
// one of the n days.
static void put_days(struct compiled *c, const struct filter *leaf, const char *operand)
{
    bool last = leaf->op->test == TEST_LAST_DAYS, date = leaf->attribute->type == ATTR_DATE;
    bool pg = c->dialect == SQL_PG;
    const char *now = date ? (pg ? today_pg : today_mysql) : pg ? "now()" : now_mysql;

    put(c, "(");
    put(c, operand);
    put(c, last ? " <= " : " >= ");
    put(c, now);
    put(c, " and ");
    put(c, operand);
    put(c, last ? " > " : " < ");
    if (pg) {
        put(c, now);
        put(c, last ? " - " : " + ");
        // In hours, because a day in the session's time zone may have 23 or 25.
        put(c, date ? "" : "make_interval(hours => 24 * ");
        sql_put_int(c, leaf->values[0].number);
        put(c, date ? "::int)" : "::int))");
    } else {
        put(c, last ? "date_sub(" : "date_add(");
        put(c, now);
        put(c, ", interval ");
        sql_put_int(c, leaf->values[0].number);
        put(c, " day))");
    }
}

static void put_test(struct compiled *c, const struct filter *leaf, const char *operand)
{
    const char *is_some = c->dialect == SQL_PG ? "cardinality(" : "json_length(";

    switch (leaf->op->test) {
    case TEST_EQ:
        if (leaf->attribute->type == ATTR_BOOL) {
            put(c, leaf->values[0].yes ? "" : "not ");
            put(c, operand);
        } else {
            put_compare(c, leaf, operand, " = ");
        }
        break;
    case TEST_GT:
        put_compare(c, leaf, operand, " > ");
        break;
    case TEST_GTE:
        put_compare(c, leaf, operand, " >= ");
        break;
    case TEST_LT:
        put_compare(c, leaf, operand, " < ");
        break;
    case TEST_LTE:
        put_compare(c, leaf, operand, " <= ");
        break;
    case TEST_BETWEEN:
        put_compare(c, leaf, operand, " between ");
        put(c, " and ");
        put_value(c, leaf, 1);
        break;
    case TEST_IN:
        put_in(c, leaf, operand);
        break;
    case TEST_IS_SET:
        put(c, attribute_is_set(leaf->attribute) ? is_some : "");
        put(c, operand);
        put(c, attribute_is_set(leaf->attribute) ? ") > 0" : " is not null");
        break;
    case TEST_CONTAINS:
    case TEST_STARTS_WITH:
        put_search(c, leaf, operand);
        break;
    case TEST_ANY:
    case TEST_ALL:
        put_set(c, leaf, operand);
        break;
    case TEST_LAST_DAYS:
    case TEST_NEXT_DAYS:
        put_days(c, leaf, operand);
        break;
    }
}

// ---- the value, for people ----

static void put_rows_value(struct compiled *c, const struct filter *leaf)
{
    const struct attribute *a = leaf->attribute;

    put(c, "(select to_jsonb(");
    if (attribute_is_set(a)) {
        put(c, "array_agg(distinct r.");
        put(c, a->write);
        put(c, ")");
    } else {
        put(c, a->type == ATTR_BOOL ? "count(*) > 0" : a->write);
    }
    put(c, ") from crm.");
    put(c, a->table);
    put(c, " r");
    put(c, put_which(c, leaf));
    put(c, "r.customer_id = c.customer_uuid)::text");
}

void leaf_put_value(struct compiled *c, const struct filter *leaf)
{
    const struct attribute *a = leaf->attribute;

    if (c->dialect == SQL_MYSQL) {
        put(c, "null"); // only the result of the test is reported there
    } else if (c->path == PATH_FALLBACK && !attribute_of_customer(a)) {
        put_rows_value(c, leaf);
    } else if (leaf->within > 0) {
        put(c, "(select count(*) from unnest(");
        put(c, a->days);
        put(c, ") d where d > ");
        put(c, today_pg);
        put(c, " - ");
        sql_put_int(c, leaf->within);
        put(c, "::int)::text");
    } else {
        put(c, "to_jsonb(");
        put(c, c->path == PATH_FALLBACK ? a->write : a->read);
        put(c, ")::text");
    }
}
