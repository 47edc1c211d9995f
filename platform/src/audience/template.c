// template.c: finds the names in a template and replaces them by values.
#include "audience/template.h"

#include <string.h>

#include "json/write.h"

static const char *const names[TEMPLATE_NAMES] = {
    "customer", "first_name", "last_name", "email",    "phone", "language",
    "city",     "country",    "tenant",    "campaign", "run"};

// Finds the next {{name}} from `at` on: its start and the end.  Returns NULL if there is none.
static const char *template_find(const char *at, const char *end, span *name,
                                 const char **after)
{
    const char *open;

    for (; (open = memmem(at, (size_t)(end - at), "{{", 2)) != NULL; at = open + 1) {
        const char *p = open + 2;
        while (p < end && ((*p >= 'a' && *p <= 'z') || *p == '_'))
            p++;
        if (end - p >= 2 && p[0] == '}' && p[1] == '}') {
            *name = (span){open + 2, (size_t)(p - open - 2)};
            *after = p + 2;
            return open;
        }
    }
    return NULL;
}

static unsigned template_which(span name)
{
    unsigned i = 0;

    while (i < TEMPLATE_NAMES && !span_eq(name, span_of(names[i])))
        i++;
    return i;
}

// "{{" can occur only inside a string, because an object must start with a key.  A lone "}}"
// may be the end of two objects, and "{{" in a string may have no end: both are left as they
// are.
int template_check(span text, struct fault *f)
{
    const char *at = text.ptr, *end = text.ptr + text.len;
    span name;

    while (template_find(at, end, &name, &at))
        if (template_which(name) == TEMPLATE_NAMES)
            return fault_set(f, QE_BAD_PARAM,
                             "template: unknown name {{%.*s}}; must be one of customer, "
                             "first_name, last_name, "
                             "email, phone, language, city, country, tenant, campaign, run",
                             (int)(name.len < 40 ? name.len : 40), name.ptr);
    return 0;
}

void template_put(struct buf *out, span text, const span values[TEMPLATE_NAMES])
{
    const char *at = text.ptr, *end = text.ptr + text.len, *open, *after;
    span name;

    while ((open = template_find(at, end, &name, &after)) != NULL) {
        unsigned i = template_which(name);
        buf_put_bytes(out, at, (size_t)(open - at));
        if (i < TEMPLATE_NAMES)
            js_put_escaped(out, values[i]);
        at = after;
    }
    buf_put_bytes(out, at, (size_t)(end - at));
}
