// params.c and reply.c: bytes written here, read by a real server, and back.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/attrs.h"
#include "base/err.h"
#include "pg/params.h"
#include "pg/reply_int.h"
#include "support/pg_cluster.h"

static struct pg_cluster cluster;
static PGconn *pg;
static PGresult *result;
static struct pg_reply reply;

static const struct pg_reply *ask(const char *sql, struct pg_params *p, int format)
{
    const char *values[PG_MAX_PARAMS];
    Oid types[PG_MAX_PARAMS];
    int lengths[PG_MAX_PARAMS], formats[PG_MAX_PARAMS];
    unsigned n = p != NULL ? p->n : 0;

    for (unsigned i = 0; i < n; i++) {
        size_t len = p->param[i].len;
        types[i] = p->param[i].oid;
        values[i] = len == SIZE_MAX ? NULL : p->data.ptr + p->param[i].at;
        lengths[i] = len == SIZE_MAX ? 0 : (int)len;
        formats[i] = 1;
    }
    PQclear(result);
    result = PQexecParams(pg, sql, (int)n, types, values, lengths, formats, format);
    reply = (struct pg_reply){.result = result, .message = "none"};
    if (p != NULL) {
        assert_false(pg_params_failed(p));
        pg_params_free(p);
    }
    return &reply;
}

static void expect_text(const char *sql, struct pg_params *p, const char *expected)
{
    ask(sql, p, 0);
    if (PQresultStatus(result) != PGRES_TUPLES_OK)
        fail_msg("%s", PQresultErrorMessage(result));
    assert_string_equal(PQgetvalue(result, 0, 0), expected);
}

static const uint8_t uuid[16] = {0x01, 0x90, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 0xff};

static void scalars_arrive(void **state)
{
    (void)state;
    struct pg_params p = {0};
    pg_param_i64(&p, INT64_MIN);
    pg_param_i32(&p, -7);
    pg_param_bool(&p, true);
    pg_param_text(&p, SPAN("é'\""));
    pg_param_bytea(&p, SPAN("\0\1\377"));
    pg_param_uuid(&p, uuid);
    pg_param_f64(&p, -0.5);
    pg_param_unix_us(&p, INT64_C(1700000000123456));
    pg_param_null(&p, PG_INT8);
    pg_param_text(&p, SPAN_NONE);
    expect_text("select concat_ws('|', $1, $2, $3, $4, $5, $6, $7, $8 at time zone 'UTC', $9, "
                "'<' || $10 || '>')",
                &p,
                "-9223372036854775808|-7|t|é'\"|\\x0001ff|01900203-0405-0607-0809-0a0b0c0d0eff|"
                "-0.5|2023-11-14 22:13:20.123456|<>");
}

static void arrays_arrive(void **state)
{
    (void)state;
    struct pg_params p = {0};
    pg_begin_array(&p, PG_INT8);
    pg_put_i64(&p, 1), pg_put_null(&p), pg_put_i64(&p, -2);
    pg_end_array(&p);
    pg_begin_array(&p, PG_INT4);
    pg_put_i32(&p, 3);
    pg_end_array(&p);
    pg_begin_array(&p, PG_INT2);
    pg_put_i16(&p, -4), pg_put_i16(&p, 5);
    pg_end_array(&p);
    pg_begin_array(&p, PG_TEXT);
    pg_put_text(&p, SPAN("a,b")), pg_put_text(&p, SPAN(""));
    size_t mark;
    struct buf *b = pg_open_element(&p, &mark);
    buf_put(b, SPAN("in ")), buf_put(b, SPAN("place"));
    pg_close_element(&p, mark);
    pg_end_array(&p);
    pg_begin_array(&p, PG_BYTEA);
    pg_put_bytea(&p, SPAN("\xff\0"));
    pg_end_array(&p);
    pg_begin_array(&p, PG_BOOL);
    pg_put_bool(&p, false), pg_put_bool(&p, true);
    pg_end_array(&p);
    pg_begin_array(&p, PG_UUID);
    pg_put_uuid(&p, uuid);
    pg_end_array(&p);
    pg_begin_array(&p, PG_FLOAT8);
    pg_put_f64(&p, 1.25);
    pg_end_array(&p);
    pg_begin_array(&p, PG_TIMESTAMPTZ);
    pg_put_unix_us(&p, 0);
    pg_end_array(&p);
    expect_text("select concat_ws('|', $1, $2, $3, $4, $5, $6, $7, $8, $9)", &p,
                "{1,NULL,-2}|{3}|{-4,5}|{\"a,b\",\"\",\"in place\"}|{\"\\\\xff00\"}|{f,t}|"
                "{01900203-0405-0607-0809-0a0b0c0d0eff}|{1.25}|{\"1970-01-01 00:00:00+00\"}");
}

static void an_empty_array_is_empty_and_not_null(void **state)
{
    (void)state;
    struct pg_params p = {0};
    pg_begin_array(&p, PG_TEXT);
    pg_end_array(&p);
    pg_param_i32(&p, 9); // starts where the array ended
    expect_text("select ($1 = '{}' and array_ndims($1) is null and $2 = 9)::text", &p, "true");
}

static void reset_keeps_memory_and_forgets_the_rest(void **state)
{
    (void)state;
    struct pg_params p = {0};
    pg_param_text(&p, SPAN("first"));
    const char *at = p.data.ptr;
    pg_params_reset(&p);
    pg_param_text(&p, SPAN("again"));
    assert_ptr_equal(p.data.ptr, at);
    assert_int_equal(p.n, 1);
    expect_text("select $1", &p, "again");
}

static void exceeding_the_maximum_is_reported(void **state)
{
    (void)state;
    struct pg_params p = {.data.max = 40};
    pg_begin_array(&p, PG_INT8);
    for (int i = 0; i < 100; i++)
        pg_put_i64(&p, i);
    pg_end_array(&p);
    assert_true(pg_params_failed(&p));
    assert_true(p.data.len <= 40);
    pg_params_reset(&p);
    assert_false(pg_params_failed(&p));
    pg_params_free(&p);
}

static void cells_are_read_in_binary(void **state)
{
    (void)state;
    const struct pg_reply *r =
        ask("select (-2)::int2, (-3)::int4, (-4)::int8, true, 0.1::float8, 'té'::text, "
            "'\\x00ff'::bytea, '01900203-0405-0607-0809-0a0b0c0d0eff'::uuid, "
            "'2023-11-14 22:13:20.123456+00'::timestamptz, '{\"a\": 1}'::json, ''::text "
            "union all select null, null, null, null, null, null, null, null, null, null, null",
            NULL, 1);
    assert_int_equal(pg_reply_rows(r), 2);
    assert_int_equal(pg_reply_cols(r), 11);
    assert_int_equal(pg_reply_i16(r, 0, 0), -2);
    assert_int_equal(pg_reply_i32(r, 0, 1), -3);
    assert_int_equal(pg_reply_i64(r, 0, 2), -4);
    assert_int_equal(pg_reply_i64(r, 0, 0), -2); // widened
    assert_true(pg_reply_bool(r, 0, 3));
    assert_true(pg_reply_f64(r, 0, 4) == 0.1);
    assert_true(span_eq(pg_reply_bytes(r, 0, 5), SPAN("té")));
    assert_true(span_eq(pg_reply_bytes(r, 0, 6), SPAN("\0\377")));
    assert_memory_equal(pg_reply_uuid(r, 0, 7), uuid, 16);
    assert_int_equal(pg_reply_unix_us(r, 0, 8), INT64_C(1700000000123456));
    assert_true(span_eq(pg_reply_bytes(r, 0, 9), SPAN("{\"a\": 1}")));
    assert_non_null(pg_reply_bytes(r, 0, 10).ptr); // empty, not NULL

    for (unsigned col = 0; col < 11; col++)
        assert_true(pg_reply_is_null(r, 1, col));
    assert_int_equal(pg_reply_i64(r, 1, 2), 0);
    assert_false(pg_reply_bool(r, 1, 3));
    assert_null(pg_reply_bytes(r, 1, 5).ptr);
    assert_null(pg_reply_uuid(r, 1, 7));
    assert_int_equal(pg_reply_unix_us(r, 1, 8), INT64_MIN);
    assert_string_equal(pg_reply_sqlstate(r), "");
    assert_int_equal(reply_status(result), 0);
}

static void a_reply_without_a_server_is_empty(void **state)
{
    (void)state;
    struct pg_reply r = {.message = "why"};
    assert_int_equal(pg_reply_rows(&r), 0);
    assert_int_equal(pg_reply_cols(&r), 0);
    assert_string_equal(pg_reply_sqlstate(&r), "");
    assert_string_equal(pg_reply_message(&r), "why");
}

static void every_sqlstate_has_its_code(void **state)
{
    (void)state;
    static const struct {
        const char *state;
        int code;
    } cases[] = {
        {"08006", QE_PG_GONE},      {"57P01", QE_PG_GONE},   {"57P02", QE_PG_GONE},
        {"57P03", QE_PG_GONE},      {"40001", QE_PG_RETRY},  {"40P01", QE_PG_RETRY},
        {"55P03", QE_PG_RETRY},     {"57014", QE_PG_RETRY},  {"53300", QE_PG_RETRY},
        {"53100", QE_PG_FULL},      {"53200", QE_PG_FULL},   {"58030", QE_PG_FULL},
        {"25006", QE_PG_READ_ONLY}, {"22P02", QE_PG_DATA},   {"23505", QE_PG_DATA},
        {"QN001", QE_PG_DATA},      {"42601", QE_PG_FAILED}, {"57000", QE_PG_FAILED},
        {"", QE_PG_GONE},
    };
    for (size_t i = 0; i < countof(cases); i++)
        assert_int_equal(reply_code(cases[i].state), cases[i].code);
}

static void the_servers_own_words_are_kept(void **state)
{
    (void)state;
    const struct pg_reply *r = ask("select 'x'::text::int", NULL, 1);
    assert_string_equal(pg_reply_sqlstate(r), "22P02");
    assert_string_equal(pg_reply_message(r), "invalid input syntax for type integer: \"x\"");
    assert_int_equal(reply_status(result), QE_PG_DATA);
}

static void cells_become_json_by_their_type(void **state)
{
    (void)state;
    const struct pg_reply *r =
        ask("select true, 7::int2, -8::int4, 9007199254740993::int8, 0.25::float8, "
            "'a\"\\b'::text, 'v'::varchar,"
            " '{\"k\": 1}'::json, '00112233-4455-6677-8899-aabbccddeeff'::uuid,"
            " '2026-02-03T04:05:06.123999Z'::timestamptz, null::int8, 1::numeric",
            NULL, 1);
    struct buf out = {0};

    for (unsigned col = 0; col < 11; col++) {
        assert_true(pg_reply_has_json(r, col));
        pg_reply_put_json(r, 0, col, &out);
        buf_putc(&out, ' ');
    }
    assert_false(pg_reply_has_json(r, 11));
    buf_putc(&out, '\0');
    assert_string_equal(
        out.ptr, "true 7 -8 9007199254740993 0.25 \"a\\\"\\\\b\" \"v\" {\"k\": 1} "
                 "\"00112233-4455-6677-8899-aabbccddeeff\" \"2026-02-03T04:05:06.123Z\" null ");
    buf_free(&out);
}

// A server may announce a type and send a value of another length.
static PGresult *forged(Oid type, int len)
{
    PGresAttDesc column = {
        .name = (char[]){"forged"}, .format = 1, .typid = type, .typlen = 8, .atttypmod = -1};
    PGresult *r = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);

    assert_true(PQsetResultAttrs(r, 1, &column));
    assert_true(PQsetvalue(r, 0, 0, (char[]){"xxxxxxxxxxxxxxxxxxxxxxxx"}, len));
    return r;
}

static void a_value_of_the_wrong_length_is_an_error_of_the_call(void **state)
{
    static const struct {
        Oid type;
        const char *returns;
    } all[] = {{16, "B"},  {20, "L"},  {20, "l"},   {23, "I"},   {21, "h"},
               {701, "F"}, {701, "f"}, {1184, "Z"}, {2950, "U"}, {2950, "u"}};
    char why[160];

    (void)state;
    for (unsigned i = 0; i < countof(all); i++) {
        for (int len = 3; len < 24; len += 2) { // no type has such a length
            PGresult *r = forged(all[i].type, len);
            if (reply_check(r, all[i].returns, why, sizeof why) != QE_PG_SHAPE)
                fail_msg("type %u accepts %d bytes", all[i].type, len);
            PQclear(r);
        }
    }
    PGresult *r = PQmakeEmptyPGresult(NULL, PGRES_TUPLES_OK);
    assert_int_equal(reply_check(r, "", why, sizeof why), 0);
    assert_int_equal(reply_check(r, "1", why, sizeof why), QE_PG_SHAPE);
    assert_string_equal(why, "no row");
    PQclear(r);
}

// Every reader, on every cell that does not have its type, with and without a place for the
// complaint.
static void reading_an_unexpected_cell_does_not_abort(void **state)
{
    (void)state;
    for (int len = 3; len < 24; len += 2) {
        PGresult *r = forged(25, len);
        struct reply_odd odd = {0};
        for (unsigned at = 0; at < 2; at++) {
            struct pg_reply both[] = {{.result = r}, {.result = r, .odd = &odd}};
            for (unsigned i = 0; i < countof(both); i++) {
                assert_int_equal(pg_reply_i64(&both[i], at, at), 0);
                assert_int_equal(pg_reply_i32(&both[i], at, at), 0);
                assert_int_equal(pg_reply_i16(&both[i], at, at), 0);
                assert_false(pg_reply_bool(&both[i], at, at));
                assert_true(pg_reply_f64(&both[i], at, at) == 0);
                assert_null(pg_reply_uuid(&both[i], at, at));
                (void)pg_reply_unix_us(&both[i], at, at);
                assert_int_equal(pg_reply_bytes(&both[i], at, at).len, at == 0 ? len : 0);
            }
        }
        assert_string_equal(odd.what, "is not an integer"); // the first one
        PQclear(r);
    }
}

int main(void)
{
    pg_cluster_new(&cluster);
    pg = PQconnectdb(cluster.conninfo);
    PQclear(PQexec(pg, "set timezone = 'UTC'"));
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(scalars_arrive),
        cmocka_unit_test(arrays_arrive),
        cmocka_unit_test(an_empty_array_is_empty_and_not_null),
        cmocka_unit_test(reset_keeps_memory_and_forgets_the_rest),
        cmocka_unit_test(exceeding_the_maximum_is_reported),
        cmocka_unit_test(cells_are_read_in_binary),
        cmocka_unit_test(a_reply_without_a_server_is_empty),
        cmocka_unit_test(every_sqlstate_has_its_code),
        cmocka_unit_test(the_servers_own_words_are_kept),
        cmocka_unit_test(cells_become_json_by_their_type),
        cmocka_unit_test(a_value_of_the_wrong_length_is_an_error_of_the_call),
        cmocka_unit_test(reading_an_unexpected_cell_does_not_abort),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    PQclear(result);
    PQfinish(pg);
    pg_cluster_free(&cluster);
    return failed;
}
