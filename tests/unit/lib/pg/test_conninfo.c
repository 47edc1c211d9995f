// conninfo.c: what libpq reads back must be what went in.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <libpq-fe.h>

#include "pg/conninfo.h"

static char *read_back(const char *text, const char *keyword)
{
    char *error = NULL, *value = NULL;
    PQconninfoOption *o = PQconninfoParse(text, &error);

    if (o == NULL)
        fail_msg("%s: %s", text, error);
    for (PQconninfoOption *i = o; i->keyword != NULL; i++)
        if (strcmp(i->keyword, keyword) == 0 && i->val != NULL)
            value = strdup(i->val);
    PQconninfoFree(o);
    return value;
}

static void expect(const struct pg_conninfo *c, const char *keyword, const char *value)
{
    char *text = pg_conninfo_format(c), *got = read_back(text, keyword);

    if (value == NULL)
        assert_null(got);
    else if (got == NULL)
        fail_msg("%s is missing", keyword);
    else
        assert_string_equal(got, value);
    free(got);
    free(text);
}

static void values_survive_quoting(void **state)
{
    (void)state;
    struct pg_conninfo c = {.hosts = "db.example",
                            .port = 5433,
                            .db = "a b",
                            .user = "o'neil",
                            .password = "x' host='evil \\ \" =é"};
    expect(&c, "host", "db.example");
    expect(&c, "port", "5433");
    expect(&c, "dbname", "a b");
    expect(&c, "user", "o'neil");
    expect(&c, "password", c.password);
    expect(&c, "target_session_attrs", NULL);
}

static void unset_values_are_left_to_libpq(void **state)
{
    (void)state;
    struct pg_conninfo c = {.password = ""};
    expect(&c, "host", NULL);
    expect(&c, "password", NULL);
    expect(&c, "tcp_user_timeout", NULL);
}

static void several_hosts_mean_the_one_that_takes_writes(void **state)
{
    (void)state;
    struct pg_conninfo c = {.hosts = "a,b"};
    expect(&c, "target_session_attrs", "read-write");
}

static void ssl_flags_become_a_mode(void **state)
{
    (void)state;
    expect(&(struct pg_conninfo){0}, "sslmode", "disable");
    expect(&(struct pg_conninfo){.sslmode = pg_sslmode("", true, true)}, "sslmode",
           "verify-full");
    expect(&(struct pg_conninfo){.sslmode = pg_sslmode("", true, false)}, "sslmode", "prefer");
    expect(&(struct pg_conninfo){.sslmode = pg_sslmode("", false, true)}, "sslmode", "disable");
    expect(&(struct pg_conninfo){.sslmode = pg_sslmode("verify-ca", false, true)}, "sslmode",
           "verify-ca");
    expect(&(struct pg_conninfo){.ssl_root_cert = "/ca.pem"}, "sslrootcert", "/ca.pem");
}

static void timeouts_are_rounded_up_to_units_of_libpq(void **state)
{
    (void)state;
    expect(&(struct pg_conninfo){.connect_timeout_ms = 1}, "connect_timeout", "1");
    expect(&(struct pg_conninfo){.connect_timeout_ms = 2001}, "connect_timeout", "3");
}

static void session_settings_travel_as_options_unless_forbidden(void **state)
{
    (void)state;
    struct pg_conninfo c = {.statement_timeout_ms = 30000, .lock_timeout_ms = 10000};
    expect(
        &c, "options",
        "-c search_path=pg_catalog,pg_temp -c default_transaction_isolation=read\\ committed "
        "-c statement_timeout=30000 -c lock_timeout=10000");
    c.probes_only = true;
    char *text = pg_conninfo_format(&c);
    assert_non_null(strstr(text, " -c plan_cache_mode=force_generic_plan"));
    free(text);
    c.no_options = true;
    expect(&c, "options", NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_survive_quoting),
        cmocka_unit_test(unset_values_are_left_to_libpq),
        cmocka_unit_test(several_hosts_mean_the_one_that_takes_writes),
        cmocka_unit_test(ssl_flags_become_a_mode),
        cmocka_unit_test(timeouts_are_rounded_up_to_units_of_libpq),
        cmocka_unit_test(session_settings_travel_as_options_unless_forbidden),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
