// compile.c: builds whole statements around the tree of filters.
#include "audience/compile.h"

#include <assert.h>

#include "audience/compile_int.h"
#include "pg/params.h"

static_assert((int)COMPILE_MAX_PARAMS <= (int)PG_MAX_PARAMS, "a call takes them all");

static void put_tree(struct compiled *c, const struct filter *f);
static void put_from(struct compiled *c, const struct filter_facts *facts, bool customer);

const char *audience_path_name(enum audience_path path)
{
    return path == PATH_LIVE ? "live" : path == PATH_VIEWS ? "views" : "fallback";
}

void compile_deinit(struct compiled *c) { buf_free(&c->text); }

static void compile_put(struct compiled *c, const char *constant)
{
    buf_put(&c->text, span_of(constant));
}

// True for "at least 3 in the last N days".
static bool is_third(const struct filter *leaf)
{
    return leaf->within > 0 && leaf->attribute->third &&
           ((leaf->op->test == TEST_GTE && leaf->values[0].number == 3) ||
            (leaf->op->test == TEST_GT && leaf->values[0].number == 2));
}

// The model of transactions has one index for frequent subscribers and their locations.
// Without it, all subscribers are joined with all frequent visitors.  The index is useful only
// if both conditions are present and required of every customer.
static uint32_t find_twins(const struct filter *f)
{
    bool third = false, subscriber = false;
    uint32_t twins = 0;

    for (const struct filter *leaf = f->kind == FILTER_AND ? f->first : NULL; leaf;
         leaf = leaf->next) {
        if (leaf->kind != FILTER_LEAF || leaf->op->opposite)
            continue;
        third |= is_third(leaf);
        if (!leaf->attribute->twin || leaf->op->test == TEST_IS_SET)
            continue;
        if (leaf->attribute->type == ATTR_BOOL) {
            if (!leaf->values[0].yes)
                continue;
            subscriber = true;
        }
        twins |= UINT32_C(1) << leaf->number;
    }
    return third && subscriber ? twins : 0;
}

static_assert(FILTER_MAX_LEAVES <= 32, "compiled.twins has a bit for each");

static void compile_begin(struct compiled *c, const struct filter *f)
{
    c->text.max = COMPILE_MAX_TEXT;
    c->rc = 0;
    c->twins = c->path == PATH_FALLBACK ? 0 : find_twins(f);
}

static void compile_finish(struct compiled *c)
{
    if (c->text.failed)
        c->rc = QE_TOO_LARGE;
}

// ---- parameters ----

static bool add_param(struct compiled *c, struct sql_param p)
{
    if (c->next_param == COMPILE_MAX_PARAMS) {
        c->rc = QE_TOO_LARGE;
        return false;
    }
    c->params[c->next_param++] = p; // a reused parameter is unchanged
    if (c->n_params < c->next_param)
        c->n_params = c->next_param;
    return true;
}

// MySQL has no arrays: a list becomes as many parameters.
static void put_list_mysql(struct compiled *c, struct sql_param p)
{
    for (unsigned i = 0; i < p.n; i++) {
        struct sql_param one = {.kind = p.kind == SQL_INTS ? SQL_INT : SQL_TEXT,
                                .number = p.values[i].number,
                                .text = p.values[i].text};
        if (add_param(c, one))
            compile_put(c, i > 0 ? ", ?" : "?");
    }
}

void sql_put_param(struct compiled *c, struct sql_param p)
{
    if (c->dialect == SQL_MYSQL && (p.kind == SQL_TEXTS || p.kind == SQL_INTS)) {
        put_list_mysql(c, p);
    } else if (add_param(c, p)) {
        if (c->dialect == SQL_MYSQL)
            compile_put(c, "?");
        else
            buf_printf(&c->text, "$%u", c->next_param);
    }
}

void sql_put_int(struct compiled *c, int64_t v)
{
    sql_put_param(c, (struct sql_param){.kind = SQL_INT, .number = v});
}

void sql_put_uuid(struct compiled *c, const uint8_t v[16])
{
    sql_put_param(c, (struct sql_param){.kind = SQL_UUID, .uuid = v});
}

void sql_again(struct compiled *c, unsigned from)
{
    if (c->dialect == SQL_PG)
        c->next_param = from;
}

void compile_bind(const struct compiled *c, struct pg_params *out)
{
    pg_params_reset(out);
    for (unsigned i = 0; i < c->n_params; i++) {
        const struct sql_param *p = &c->params[i];
        switch (p->kind) {
        case SQL_INT:
            pg_param_i64(out, p->number);
            break;
        case SQL_TIME:
            pg_param_unix_us(out, p->number);
            break;
        case SQL_TEXT:
        case SQL_JSON:
            pg_param_text(out, p->text);
            break;
        case SQL_UUID:
            pg_param_uuid(out, p->uuid);
            break;
        case SQL_TEXTS:
            pg_begin_array(out, PG_TEXT);
            for (unsigned k = 0; k < p->n; k++)
                pg_put_text(out, p->values[k].text);
            pg_end_array(out);
            break;
        case SQL_INTS:
            pg_begin_array(out, PG_INT4);
            for (unsigned k = 0; k < p->n; k++)
                pg_put_i32(out, (int32_t)p->values[k].number);
            pg_end_array(out);
            break;
        }
    }
}

// ---- statements ----

void compile_count(struct compiled *c, const struct filter *f, const struct filter_facts *facts)
{
    compile_begin(c, f);
    compile_put(c, "select count(*)");
    put_from(c, facts, false);
    compile_put(c, " where ");
    put_tree(c, f);
    compile_finish(c);
}

void compile_page(struct compiled *c, const struct filter *f, const struct filter_facts *facts,
                  int64_t after, int64_t limit)
{
    compile_begin(c, f);
    compile_put(c, c->dialect == SQL_PG ? "select c.id, c.customer_uuid::text"
                                        : "select c.id, c.customer_uuid");
    compile_put(c, ", c.first_name, c.last_name, c.email, c.phone, c.city");
    put_from(c, facts, true);
    compile_put(c, " where c.id > ");
    sql_put_int(c, after);
    compile_put(c, " and ");
    put_tree(c, f);
    compile_put(c, " order by c.id limit ");
    sql_put_int(c, limit);
    compile_finish(c);
}

void compile_uuids(struct compiled *c, const struct filter *f, const struct filter_facts *facts)
{
    compile_begin(c, f);
    compile_put(c, "select ");
    compile_put(c, c->path == PATH_FALLBACK || !(facts->models[MODEL_TRANSACTIONS] ||
                                                 facts->models[MODEL_ATTRIBUTES])
                       ? "c.customer_uuid"
                   : facts->models[MODEL_ATTRIBUTES] ? "a.customer_uuid"
                                                     : "t.customer_uuid");
    put_from(c, facts, false);
    compile_put(c, " where ");
    put_tree(c, f);
    compile_finish(c);
}

static void put_leaf_verdict(const struct filter *leaf, void *ctx)
{
    struct compiled *c = ctx;

    compile_put(c, ", ((");
    leaf_put(c, leaf);
    compile_put(c, leaf->op->opposite ? ") is not true), " : ") is true), ");
    leaf_put_value(c, leaf);
}

void compile_explain(struct compiled *c, const struct filter *f,
                     const struct filter_facts *facts, const uint8_t customer[16])
{
    compile_begin(c, f);
    compile_put(c, "select ((");
    put_tree(c, f);
    compile_put(c, ") is true)");
    filter_each_leaf(f, put_leaf_verdict, c);
    put_from(c, facts, true);
    compile_put(c, " where c.customer_uuid = ");
    sql_put_uuid(c, customer);
    compile_finish(c);
}

// ---- the relations ----

// One row per customer, whatever is selected.  c is joined when the caller needs columns of the
// customer, and when there is no other relation.
static void put_from(struct compiled *c, const struct filter_facts *facts, bool customer)
{
    static const char *const names[][2] = {
        [PATH_LIVE] = {"crm.customer_attributes_live a", "crm.customer_transactions_live t"},
        [PATH_VIEWS] = {"crm.customer_attributes_mv a", "crm.customer_transactions_mv t"},
    };
    bool attributes = facts->models[MODEL_ATTRIBUTES],
         transactions = facts->models[MODEL_TRANSACTIONS];

    compile_put(c, " from ");
    if (c->path == PATH_FALLBACK || customer || (!attributes && !transactions))
        compile_put(c, c->dialect == SQL_PG ? "crm.customer c" : "customer c");
    if (c->path == PATH_FALLBACK)
        return;
    if (attributes) {
        compile_put(c, customer ? " join " : "");
        compile_put(c, names[c->path][0]);
        compile_put(c, customer ? " on a.id = c.id" : "");
    }
    if (transactions) {
        compile_put(c, customer || attributes ? " join " : "");
        compile_put(c, names[c->path][1]);
        compile_put(c, customer ? " on t.id = c.id" : attributes ? " on t.id = a.id" : "");
    }
}

// ---- the tree ----

static void put_group(struct compiled *c, const struct filter *f)
{
    if (f->first == NULL) {
        compile_put(c, "true");
        return;
    }
    compile_put(c, "(");
    for (const struct filter *child = f->first; child; child = child->next) {
        put_tree(c, child);
        if (child->next)
            compile_put(c, f->kind == FILTER_AND ? " and " : " or ");
    }
    compile_put(c, ")");
}

// Writes a condition that is true or not true.  Null is not true, and "and" and "or" preserve
// that; only a negation must handle null explicitly.
static void put_tree(struct compiled *c, const struct filter *f)
{
    switch (f->kind) {
    case FILTER_AND:
    case FILTER_OR:
        put_group(c, f);
        break;
    case FILTER_NOT:
        compile_put(c, "((");
        put_tree(c, f->first);
        compile_put(c, ") is not true)");
        break;
    case FILTER_LEAF:
        compile_put(c, f->op->opposite ? "((" : "");
        leaf_put(c, f);
        compile_put(c, f->op->opposite ? ") is not true)" : "");
        break;
    }
}
