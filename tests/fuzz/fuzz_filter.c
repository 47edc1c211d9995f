// fuzz_filter.c: any bytes as a segment's definition: no crash, and what is accepted becomes
// SQL whose text is the same whatever the values are: nothing of a request is in it.
//
// build: platform/src/audience/attribute.c platform/src/audience/catalogue.c
// build: platform/src/audience/compile.c platform/src/audience/compile_leaf.c
// build: platform/src/audience/filter.c platform/src/audience/value.c lib/json/scan.c
// build: lib/json/text.c lib/pg/params.c
#include <stdlib.h>
#include <string.h>

#include "audience/compile.h"
#include "base/err.h"
#include "pg/params.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int sign_of(span number)
{
    for (size_t i = 0; i < number.len; i++)
        if (number.ptr[i] >= '1' && number.ptr[i] <= '9')
            return number.ptr[0] == '-' ? -1 : 1;
    return 0;
}

// The same tree with other values of the same signs: whether 0 passes a test is a choice
// between two constants.
static struct filter *other(struct arena *a, const struct filter *f)
{
    struct filter *o = arena_new(a, struct filter), **end = &o->first;

    *o = *f;
    o->first = NULL;
    if (f->n_values > 0) {
        struct filter_value *values = arena_new_array(a, struct filter_value, f->n_values);
        for (unsigned i = 0; i < f->n_values; i++) {
            const struct filter_value *v = &f->values[i];
            int sign = f->attribute->type == ATTR_MONEY ? sign_of(v->text)
                                                        : (v->number > 0) - (v->number < 0);
            values[i] = (struct filter_value){.text = sign == 0  ? SPAN("0")
                                                      : sign < 0 ? SPAN("-7")
                                                                 : SPAN("7"),
                                              .number = sign * 7,
                                              .yes = v->yes};
            if (f->within > 0) // "at least 3" has a column of its own
                values[i].number = v->number;
        }
        o->values = values;
    }
    for (const struct filter *child = f->first; child; child = child->next) {
        *end = other(a, child);
        end = &(*end)->next;
    }
    *end = NULL;
    return o;
}

static void put(struct compiled *c, unsigned what, const struct filter *f,
                const struct filter_facts *facts)
{
    static const uint8_t customer[16] = "fifteen letters";

    if (what == 0)
        compile_count(c, f, facts);
    else if (what == 1)
        compile_page(c, f, facts, 1, 50);
    else if (what == 2)
        compile_uuids(c, f, facts);
    else
        compile_explain(c, f, facts, customer);
}

static void check_text(const struct compiled *c)
{
    for (size_t i = 0; i < c->text.len; i++) {
        char ch = c->text.ptr[i];
        if (ch < ' ' || ch > '~' || ch == ';' || ch == '\\' || ch == '"')
            BUG("byte %d in SQL", ch);
        if (ch == '$' && (unsigned)strtoul(c->text.ptr + i + 1, NULL, 10) > c->n_params)
            BUG("a parameter that is not there");
        if (ch == '-' && i + 1 < c->text.len && c->text.ptr[i + 1] == '-')
            BUG("a comment");
    }
}

static void compile(struct arena *a, const struct filter *f, const struct filter_facts *facts,
                    enum sql_dialect dialect, enum audience_path path, unsigned what)
{
    struct compiled c = {.dialect = dialect, .path = path},
                    d = {.dialect = dialect, .path = path};
    struct pg_params params = {0};

    put(&c, what, f, facts);
    put(&d, what, other(a, f), facts);
    if (c.rc != d.rc)
        BUG("values decide whether it can be compiled");
    if (c.rc == 0) {
        if (c.text.len != d.text.len || memcmp(c.text.ptr, d.text.ptr, c.text.len) != 0)
            BUG("values are in the text: %.*s", (int)c.text.len, c.text.ptr);
        if (c.n_params != d.n_params)
            BUG("another number of parameters");
        check_text(&c);
        if (dialect == SQL_PG)
            compile_bind(&c, &params);
    }
    pg_params_free(&params);
    compile_deinit(&c);
    compile_deinit(&d);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *copy = malloc(size + 1); // of exact length, so that ASan sees an overrun
    struct filter_facts facts;
    struct filter *f;
    struct arena a;
    struct fault why;

    memcpy(copy, data, size);
    arena_init(&a);
    if (filter_read((span){copy, size}, &a, &filter_default_limits, &f, &facts, &why) == 0) {
        for (unsigned what = 0; what < 4; what++) {
            if (!facts.fallback_only) {
                compile(&a, f, &facts, SQL_PG, PATH_LIVE, what);
                compile(&a, f, &facts, SQL_PG, PATH_VIEWS, what);
            }
            compile(&a, f, &facts, SQL_PG, PATH_FALLBACK, what);
            if (!facts.not_mysql)
                compile(&a, f, &facts, SQL_MYSQL, PATH_FALLBACK, what);
        }
    } else if (why.text[0] == '\0') {
        BUG("refused without a word");
    }
    arena_deinit(&a);
    free(copy);
    return 0;
}
