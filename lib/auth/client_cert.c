// client_cert.c: maps the names of a certificate to a role.
#include "auth/client_cert.h"

#include <string.h>

#include "base/str.h"

static bool read_rule(span rule, span *name, enum http_access *level)
{
    static const struct {
        span role;
        enum http_access level;
    } roles[] = {{{"admin", 5}, ACCESS_ADMIN},
                 {{"read-write", 10}, ACCESS_READ_WRITE},
                 {{"read-only", 9}, ACCESS_READ_ONLY}};
    // The last '=': a URI may contain others.
    const char *equals = memrchr(rule.ptr, '=', rule.len);

    if (!equals)
        return false;
    *name = str_trim((span){rule.ptr, (size_t)(equals - rule.ptr)});
    span role = str_trim((span){equals + 1, rule.len - (size_t)(equals + 1 - rule.ptr)});
    for (unsigned i = 0; i < countof(roles); i++) {
        if (span_eq(role, roles[i].role)) {
            *level = roles[i].level;
            return name->len > 0;
        }
    }
    return false;
}

int client_roles_check(const char *list, struct fault *f)
{
    span rest = span_of(list), rule, name;
    enum http_access level;

    while (str_split(&rest, ',', &rule)) {
        rule = str_trim(rule);
        if (rule.len > 0 && !read_rule(rule, &name, &level))
            return fault_set(f, QE_CONF,
                             "QUEEN_TLS_CLIENT_ROLES: \"%.*s\" is not name=role; roles are "
                             "admin, read-write and read-only",
                             (int)(rule.len < 100 ? rule.len : 100), rule.ptr);
    }
    return 0;
}

bool client_roles_find(const char *list, span names, span *name, enum http_access *level)
{
    span rest = span_of(list), rule, wanted, one;

    while (names.len > 0 && str_split(&rest, ',', &rule)) {
        rule = str_trim(rule);
        if (rule.len == 0 || !read_rule(rule, &wanted, level))
            continue;
        for (span left = names; str_split(&left, '\0', &one);) {
            if (!span_eq(wanted, one) && !span_eq(wanted, SPAN("*")))
                continue;
            *name = one;
            return true;
        }
    }
    return false;
}
