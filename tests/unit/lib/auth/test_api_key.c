// Form, hash and comparison of API keys; the table of keys and its epochs.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "auth/api_key.h"
#include "auth/key_table.h"
#include "base/map.h"

static void a_new_key_is_recognised(void **state)
{
    char a[API_KEY_TEXT + 1], b[API_KEY_TEXT + 1];
    uint8_t hash[API_KEY_HASH];

    (void)state;
    for (unsigned i = 0; i < 1000; i++) {
        api_key_make(a);
        assert_int_equal(strlen(a), API_KEY_TEXT);
        assert_int_equal(api_key_id(span_of(a)).len, API_KEY_ID);
        assert_true(api_key_is_meant(span_of(a)));
    }
    api_key_make(b);
    api_key_hash(span_of(a), hash);
    assert_true(api_key_matches(span_of(a), hash));
    assert_false(api_key_matches(span_of(b), hash));
    a[API_KEY_TEXT - 2] = a[API_KEY_TEXT - 2] == 'A' ? 'B' : 'A';
    assert_false(api_key_matches(span_of(a), hash));
}

static void other_texts_are_not_keys(void **state)
{
    static const char *const bad[] = {
        "",
        "qk_",
        "qk_0123456789abcdef_",
        "qk_0123456789ABCDEF_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "qk_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "qk_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "qk_0123456789abcdef-AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
        "qk_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAA AAAAAAAAAAAAAAAAAAAA",
        "QK_0123456789abcdef_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA",
    };

    (void)state;
    for (unsigned i = 0; i < sizeof bad / sizeof bad[0]; i++)
        assert_null(api_key_id(span_of(bad[i])).ptr);
    assert_true(api_key_is_meant(SPAN("qk_anything")));
    assert_false(api_key_is_meant(SPAN("qk_a.b.c")));
    assert_false(api_key_is_meant(SPAN("eyJhbGciOiJIUzI1NiJ9.e30.x")));
}

static void count_call(void *ctx) { ++*(unsigned *)ctx; }

static struct key_list *list_of(const char *id)
{
    struct key_list *l = key_list_new();

    key_list_add(l, &(struct key_record){.id = span_of(id),
                                         .name = SPAN("ci"),
                                         .until_s = INT64_MAX,
                                         .level = ACCESS_READ_WRITE});
    return l;
}

static bool has(struct key_table *t, const char *id)
{
    struct key_list *l = key_table_current(t);
    bool found = key_list_find(l, span_of(id)) != NULL;

    key_list_unref(l);
    return found;
}

static void an_answer_from_before_a_change_is_ignored(void **state)
{
    struct key_table *t = key_table_new();
    unsigned n_calls = 0;
    struct key_watcher w = {.changed = count_call, .ctx = &n_calls};

    (void)state;
    key_table_watch(t, &w);
    unsigned before = key_table_epoch(t);
    assert_true(key_table_replace(t, list_of("0123456789abcdef"), before));
    assert_true(has(t, "0123456789abcdef"));
    assert_int_equal(n_calls, 1);

    // A lookup started before the revocation: its answer must not restore the key.
    key_table_drop(t, SPAN("0123456789abcdef"));
    assert_false(has(t, "0123456789abcdef"));
    assert_false(key_table_replace(t, list_of("0123456789abcdef"), before));
    assert_false(has(t, "0123456789abcdef"));
    assert_int_equal(n_calls, 2);
    key_table_unwatch(t, &w);
    key_table_free(t);
}

static void the_key_of_the_file_outlives_reads_of_the_database(void **state)
{
    char path[] = "/tmp/queen-test-key-XXXXXX", text[API_KEY_TEXT + 1], id[API_KEY_ID + 1];
    struct key_table *t = key_table_new();
    struct fault f;
    int fd = mkstemp(path);

    (void)state;
    assert_true(fd >= 0);
    api_key_make(text);
    dprintf(fd, "  %s\r\n", text);
    close(fd);
    assert_int_equal(key_table_read_admin(t, path, &f), 0);
    snprintf(id, sizeof id, "%.*s", API_KEY_ID, api_key_id(span_of(text)).ptr);
    assert_true(key_table_replace(t, list_of("0123456789abcdef"), key_table_epoch(t)));
    assert_true(has(t, id) && has(t, "0123456789abcdef"));
    key_table_drop(t, span_of(id)); // there is no such key in the database
    assert_true(has(t, id));

    FILE *file = fopen(path, "w");
    fputs("no key", file);
    fclose(file);
    assert_int_equal(key_table_read_admin(t, path, &f), QE_CONF);
    assert_true(has(t, id));
    unlink(path);
    assert_int_equal(key_table_read_admin(t, path, &f), QE_CONF);
    key_table_free(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_new_key_is_recognised),
        cmocka_unit_test(other_texts_are_not_keys),
        cmocka_unit_test(an_answer_from_before_a_change_is_ignored),
        cmocka_unit_test(the_key_of_the_file_outlives_reads_of_the_database),
    };

    map_setup();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
