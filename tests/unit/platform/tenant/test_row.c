// row.c, my_place.c, pg/conninfo_url.c: names, passwords, addresses.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "pg/conninfo.h"
#include "tenant/my_int.h"
#include "tenant/my_pool.h"
#include "tenant/row.h"

static void names_are_small_and_plain(void **state)
{
    (void)state;
    assert_true(tenant_is_name(SPAN("a")));
    assert_true(tenant_is_name(SPAN("7-up_2")));
    assert_false(tenant_is_name(SPAN("")));
    assert_false(tenant_is_name(SPAN("-a")));
    assert_false(tenant_is_name(SPAN("A")));
    assert_false(tenant_is_name(SPAN("a;drop")));
    assert_false(tenant_is_name((span){"a\0b", 3}));
    assert_false(tenant_is_name(SPAN("a234567890123456789012345678901234567890123456789")));
}

static const struct tenant_auth auth = {.dir = "/tmp", .env_prefix = "QUEEN_TEST_"};

static void expect_refused(const struct tenant_auth *a, const char *credential)
{
    char *got;
    struct fault f;

    assert_int_equal(credential_check(a, credential, &f), QE_BAD_PARAM);
    assert_int_equal(credential_read(a, credential, &got, &f), QE_CONF);
    assert_null(got);
}

static void credentials_cannot_name_other_files_and_variables(void **state)
{
    static const struct tenant_auth none = {.dir = "", .env_prefix = ""};
    char dir[] = "/tmp/queen-creds-XXXXXX", outside[64], *got;
    struct fault f;

    (void)state;
    setenv("QUEEN_TEST_SECRET", "from outside", 1);
    assert_non_null(mkdtemp(dir));
    struct tenant_auth a = {.dir = dir, .env_prefix = "QUEEN_TEST_"};
    expect_refused(&a, "file:/etc/passwd");
    expect_refused(&a, "env:PATH");
    expect_refused(&none, "env:QUEEN_TEST_SECRET");
    expect_refused(&none, "file:/etc/passwd");
    snprintf(outside, sizeof outside, "file:%s/../../etc/passwd", dir);
    expect_refused(&a, outside);
    snprintf(outside, sizeof outside, "file:%s/link", dir);
    assert_int_equal(symlink("/etc/passwd", outside + 5), 0);
    assert_int_equal(credential_read(&a, outside, &got, &f), QE_CONF);
    assert_non_null(strstr(f.text, "PLATFORM_CREDENTIAL_DIR"));
    unlink(outside + 5);
    snprintf(outside, sizeof outside, "file:%s-sibling", dir); // the same beginning
    FILE *sibling = fopen(outside + 5, "w");
    assert_non_null(sibling);
    fclose(sibling);
    assert_int_equal(credential_read(&a, outside, &got, &f), QE_CONF);
    unlink(outside + 5);
    rmdir(dir);
}

static void addresses_may_have_few_parameters(void **state)
{
    static const char *const bad[] = {"connect_timeout=600",
                                      "options=-c%20jit%3Don",
                                      "passfile=/etc/shadow",
                                      "sslkey=/etc/key",
                                      "service=x",
                                      "sslrootcert=/x"};
    struct pg_conninfo like = {.password = "pw", .bind_password = true};
    struct fault f;
    char url[128], *a, *b, *c;

    (void)state;
    for (unsigned i = 0; i < countof(bad); i++) {
        snprintf(url, sizeof url, "postgresql://u@h/d?%s", bad[i]);
        assert_null(pg_conninfo_of_url(url, &like, &f));
        assert_int_equal(pg_url_split(url, &a, &b, &c, &f), QE_BAD_PARAM);
    }
    char *text = pg_conninfo_of_url("postgresql://u@h/d?sslmode=verify-full", &like, &f);
    assert_non_null(strstr(text, "channel_binding='require'"));
    assert_non_null(strstr(text, "sslmode='verify-full'"));
    free(text);
    like.password = NULL;
    text = pg_conninfo_of_url("postgresql://u@h/d", &like, &f);
    assert_non_null(strstr(text, "password=''")); // not that of PGPASSWORD
    assert_null(strstr(text, "channel_binding"));
    free(text);
}

static void expect_secret(const char *credential, const char *secret)
{
    char *got;
    struct fault f;

    assert_int_equal(credential_read(&auth, credential, &got, &f), 0);
    if (secret)
        assert_string_equal(got, secret);
    else
        assert_null(got);
    free(got);
}

static void passwords_come_from_the_source_named_by_the_credential(void **state)
{
    (void)state;
    char path[] = "/tmp/queen-secret-XXXXXX", reference[64];
    char *got;
    struct fault f;
    int fd = mkstemp(path);

    assert_int_equal(write(fd, "from a file\n\n", 13), 13);
    close(fd);
    setenv("QUEEN_TEST_SECRET", "from outside", 1);
    snprintf(reference, sizeof reference, "file:%s", path);
    expect_secret(NULL, NULL);
    expect_secret("text:env:not a reference", "env:not a reference");
    expect_secret("env:QUEEN_TEST_SECRET", "from outside");
    expect_secret(reference, "from a file");
    unlink(path);
    assert_int_equal(credential_read(&auth, reference, &got, &f), QE_CONF);
    assert_non_null(strstr(f.text, path));
    assert_int_equal(credential_read(&auth, "env:QUEEN_TEST_NOTHING", &got, &f), QE_CONF);
}

static void an_address_of_mysql_is_taken_apart_and_put_together(void **state)
{
    (void)state;
    struct my_place p;
    struct fault f;

    assert_int_equal(my_place_parse("mysql://me:p%40ss@db.example:3307/shop?tls=true", &p, &f),
                     0);
    assert_string_equal(p.user, "me");
    assert_string_equal(p.password, "p@ss");
    assert_string_equal(p.host, "db.example");
    assert_string_equal(p.db, "shop");
    assert_int_equal(p.port, 3307);
    assert_true(p.tls);
    char *url = my_place_url(&p);
    assert_string_equal(url, "mysql://me@db.example:3307/shop?tls=true");
    free(url);
    my_place_deinit(&p);

    assert_int_equal(my_place_parse("mariadb://me@[::1]:3307/shop", &p, &f), 0);
    assert_string_equal(p.host, "::1");
    assert_int_equal(p.port, 3307);
    my_place_deinit(&p);
    assert_int_equal(my_place_parse("mariadb://me@[::1]/shop", &p, &f), 0);
    assert_string_equal(p.host, "::1");
    assert_int_equal(p.port, 3306);
    my_place_deinit(&p);
    assert_int_equal(my_place_parse("mysql://me@h/shop?tls=skip-verify", &p, &f), 0);
    assert_true(p.tls && p.tls_unchecked);
    url = my_place_url(&p);
    assert_string_equal(url, "mysql://me@h:3306/shop?tls=skip-verify");
    free(url);
    my_place_deinit(&p);
    static const char *const bad[] = {
        "mysql://me@h/d?tls=yes", "http://me@h/d",    "mysql://me@h", "mysql://me@h/",
        "mysql://me@h:0/d",       "mysql://me@h:x/d", "mysql:///d",   "mysql://me@h/d?x=1"};
    for (size_t i = 0; i < countof(bad); i++)
        assert_int_equal(my_place_parse(bad[i], &p, &f), QE_BAD_PARAM);
}

static my_bool verifies(const char *url)
{
    struct my_place p;
    struct fault f;
    my_bool on = 0;
    MYSQL my;

    assert_int_equal(my_place_parse(url, &p, &f), 0);
    p.tls_ca = "/etc/ssl/ca.pem";
    mysql_init(&my);
    my_place_secure(&p, &my);
    assert_int_equal(mysql_get_optionv(&my, MYSQL_OPT_SSL_VERIFY_SERVER_CERT, &on), 0);
    mysql_close(&my);
    my_place_deinit(&p);
    return on;
}

static void tls_of_mysql_verifies_the_server_unless_the_address_refuses(void **state)
{
    (void)state;
    assert_true(verifies("mysql://me@h/d?tls=true"));
    assert_false(verifies("mysql://me@h/d?tls=skip-verify"));
    assert_false(verifies("mysql://me@h/d"));
}

static void an_address_of_postgresql_loses_its_password(void **state)
{
    (void)state;
    char *without, *password, *db;
    struct fault f;

    assert_int_equal(pg_url_split("postgresql://me:s%3Ac@h:5433/crm?sslmode=require", &without,
                                  &password, &db, &f),
                     0);
    assert_string_equal(without, "postgresql://me@h:5433/crm?sslmode=require");
    assert_string_equal(password, "s:c");
    assert_string_equal(db, "crm");
    free(without);
    free(password);
    free(db);
    assert_int_equal(pg_url_split("postgresql://h/d?password=x", &without, &password, &db, &f),
                     QE_BAD_PARAM);
    static const char *const hidden[] = {
        "postgresql://h/d?pass%77ord=geheim", "postgresql://h/d?%70assword=geheim",
        "postgresql://u:a@h/d?sslmode=require&p%61ssword=geheim"};
    for (size_t i = 0; i < countof(hidden); i++) {
        assert_int_equal(pg_url_split(hidden[i], &without, &password, &db, &f), QE_BAD_PARAM);
        assert_null(strstr(f.text, "geheim"));
    }
    // libpq quotes parts of an address that it cannot read.
    static const char *const odd[] = {
        "postgresql://u:geheim%zz@h/d", "postgresql://u:geheim@[h/d",
        "postgresql://u:geheim@h/d?a=b=c", "postgresql://u:geheim@h/d?geheim"};
    for (size_t i = 0; i < countof(odd); i++) {
        if (pg_url_split(odd[i], &without, &password, &db, &f) == 0)
            fail_msg("accepted: %s", odd[i]);
        assert_null(strstr(f.text, "geheim"));
    }
    assert_int_equal(pg_url_split("postgresql://h", &without, &password, &db, &f),
                     QE_BAD_PARAM);
    char *info = pg_conninfo_of_url("postgresql://me@h/crm",
                                    &(struct pg_conninfo){.password = "it's"}, &f);
    assert_non_null(strstr(info, "dbname='crm'"));
    assert_non_null(strstr(info, "password='it\\'s'"));
    free(info);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_are_small_and_plain),
        cmocka_unit_test(credentials_cannot_name_other_files_and_variables),
        cmocka_unit_test(addresses_may_have_few_parameters),
        cmocka_unit_test(passwords_come_from_the_source_named_by_the_credential),
        cmocka_unit_test(an_address_of_mysql_is_taken_apart_and_put_together),
        cmocka_unit_test(tls_of_mysql_verifies_the_server_unless_the_address_refuses),
        cmocka_unit_test(an_address_of_postgresql_loses_its_password),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
