// Endpoints that are SQL functions: what goes in, and how rows become the answer.
#include "api/sql_endpoint.h"
#include "db/sql.gen.h"
#include "fake.h"

static const char *const query[] = {"limit", "queue", NULL};
static const char *const members[] = {"a", "filter", NULL};
static const struct sql_endpoint plain = {.route = {.verb = HTTP_GET,
                                                    .path = "/a/:queue/b/:other",
                                                    .handle = sql_endpoint_handle,
                                                    .query = query},
                                          .statement = &pg_stmt_delete_queue,
                                          .changes_queue = true};
static const struct sql_endpoint with_body = {
    .route = {.verb = HTTP_POST, .path = "/a/:queue", .handle = sql_endpoint_handle},
    .statement = &pg_stmt_delete_queue,
    .members = members,
    .body = ENDPOINT_BODY};
static const struct sql_endpoint contract = {.route = {.verb = HTTP_POST,
                                                       .path = "/a/:queue",
                                                       .handle = sql_endpoint_handle,
                                                       .unknown = UNKNOWN_IGNORED},
                                             .statement = &pg_stmt_delete_queue,
                                             .members = members,
                                             .body = ENDPOINT_BODY};
static const struct sql_endpoint destructive = {.route = {.verb = HTTP_DELETE,
                                                          .path = "/a/:queue",
                                                          .handle = sql_endpoint_handle,
                                                          .unknown = UNKNOWN_OR_EMPTY_REFUSED},
                                                .statement = &pg_stmt_delete_queue};
static const struct sql_endpoint may_body = {
    .route = {.verb = HTTP_POST, .path = "/a/:queue", .handle = sql_endpoint_handle},
    .statement = &pg_stmt_delete_queue,
    .body = ENDPOINT_MAY_BODY};

static void ask(const struct sql_endpoint *r, struct http_req *req)
{
    fake_set_route(&r->route);
    sql_endpoint_handle(req);
}

static span args(void)
{
    const struct pg_params *p = &fake_given.custom->params;
    assert_int_equal(p->n, 1);
    return (span){p->data.ptr + p->param[0].at, p->param[0].len};
}

static void drop(void) { pg_params_free(&fake_given.custom->params); }

static void the_path_comes_behind_the_query(void **state)
{
    (void)state;
    ask(&plain, fake_get("limit=5&x=1&queue=wrong", "q\"1", "o"));
    assert_span(args(),
                "{\"limit\":\"5\",\"queue\":\"wrong\",\"queue\":\"q\\\"1\",\"other\":\"o\","
                "\"\":\"\"}");
    drop();
    ask(&plain, fake_get("limit=", "q", "o")); // empty: not sent
    assert_span(args(), "{\"queue\":\"q\",\"other\":\"o\",\"\":\"\"}");
    drop();
}

static void bad_text_is_refused_with_its_name(void **state)
{
    (void)state;
    ask(&plain, fake_get("limit=\xff", "q", "o"));
    assert_refused("limit must be UTF-8 text");
    ask(&plain, fake_get("", "q", "%zz"));
    assert_refused("other in the path is malformed");
    assert_null(fake_given.custom);
}

static void a_body_is_passed_as_it_came(void **state)
{
    (void)state;
    ask(&with_body, fake_post("q", " {\"a\": 1.0} "));
    assert_span(args(), "{\"queue\":\"q\",\"body\":{\"a\": 1.0},\"\":\"\"}");
    drop();
    static const char *const bad[] = {"", " ", "[]", "null", "\"x\"", "{\"a\":}", "{}{}"};
    for (unsigned i = 0; i < countof(bad); i++) {
        ask(&with_body, fake_post("q", bad[i]));
        assert_refused("");
        assert_null(fake_given.custom);
    }
}

static void unknown_members_are_refused(void **state)
{
    (void)state;
    ask(&with_body, fake_post("q", "{\"a\":1,\"filtre\":{}}"));
    assert_refused("unknown member \"filtre\"; did you mean \"filter\"?");
    ask(&contract, fake_post("q", "{\"filtre\":{}}"));
    assert_refused("unknown member");
    ask(&contract, fake_post("q", "{\"other\":{}}"));
    assert_span(args(), "{\"queue\":\"q\",\"body\":{\"other\":{}},\"\":\"\"}");
    drop();
}

static void a_body_that_was_meant_as_a_filter_is_refused(void **state)
{
    (void)state;
    ask(&destructive, fake_post("q", "{\"partition\":\"p\"}"));
    assert_refused("unknown member");
    ask(&destructive, fake_post("q", "[]"));
    assert_span(args(), "{\"queue\":\"q\",\"\":\"\"}");
    drop();
}

static void a_body_may_be_missing_in_the_ways_clients_do_it(void **state)
{
    (void)state;
    static const char *const none[] = {"", " ", "{}", "[]", "[ ]", "null"};
    for (unsigned i = 0; i < countof(none); i++) {
        ask(&may_body, fake_post("q", none[i]));
        assert_span(args(), "{\"queue\":\"q\",\"body\":{},\"\":\"\"}");
        drop();
    }
    ask(&may_body, fake_post("q", "[1]"));
    assert_refused("must be a JSON object");
    ask(&may_body, fake_post("q", "{"));
    assert_refused("Invalid JSON");
}

static void pieces_and_payloads_become_the_answer(void **state)
{
    (void)state;
    static const char *const rows[][2] = {
        {"{\"a\":", "1.10"}, {",\"b\":", "\"x\""}, {"}", NULL}};
    struct pg_reply reply = {.rows = 3, .status = 201, .pieces = rows};

    ask(&plain, fake_get("", "q", "o"));
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_int_equal(fake_reply.status, 201);
    assert_string_equal(fake_reply.text, "{\"a\":1.10,\"b\":\"x\"}");
    assert_span(fake_given.changed, "q");
}

static void a_sealed_payload_is_opened_on_the_way_out(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"{\"a\":", "{\"encrypted\":0}"}, {"}", NULL}};
    struct pg_reply reply = {.rows = 2, .status = 200, .pieces = rows, .sealed = true};

    ask(&plain, fake_get("", "q", "o"));
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_string_equal(fake_reply.text, "{\"a\":[\"opened\",{\"encrypted\":0}]}");
}

static void a_step_is_followed_by_the_next_with_the_sealed_payload(void **state)
{
    (void)state;
    static const char *const more[][2] = {{"{\"at\":7}", NULL}};
    static const char *const seal[][2] = {{"{\"at\":8}", "{\"p\":1}"}};
    static const char *const done[][2] = {{"{}", NULL}};
    struct pg_reply reply = {.rows = 1, .status = 0, .pieces = more};

    ask(&plain, fake_get("", "q", "o"));
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_span(args(), "{\"at\":7}");
    reply.pieces = seal;
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_span(args(), "{\"at\":8,\"sealed\":[\"sealed\",{\"p\":1}]}");
    reply = (struct pg_reply){.rows = 1, .status = 200, .pieces = done};
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_int_equal(fake_reply.status, 200);
}

static void a_failure_changes_nothing(void **state)
{
    (void)state;
    static const char *const rows[][2] = {{"{\"error\":\"no\"}", NULL}};
    struct pg_reply reply = {.rows = 1, .status = 404, .pieces = rows};

    ask(&plain, fake_get("", "q", "o"));
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_int_equal(fake_reply.status, 404);
    assert_null(fake_given.changed.ptr);

    ask(&plain, fake_get("", "q", "o"));
    fault_set(&fake_given.custom->op.why, QE_PG_DATA, "from must be a timestamp");
    fake_given.custom->done(fake_given.custom, QE_PG_DATA, &reply);
    assert_refused("from must be a timestamp");

    ask(&plain, fake_get("", "q", "o"));
    reply.rows = 0;
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_int_equal(fake_reply.status, 500);
}

static void rows_of_a_list_are_put_by_its_shape(void **state)
{
    (void)state;
    static const char *const pieces[][2] = {{"{\"a\":[", NULL},  {NULL, NULL}, {NULL, NULL},
                                            {"],\"b\":[", NULL}, {NULL, NULL}, {"]}", NULL}};
    static const char *const values[][FAKE_VALUES] = {
        {"{\"x\":$1,\"y\":[$3,$1]}", NULL, NULL, NULL},
        {NULL, "1", NULL, "\"c\""},
        {NULL, "2", NULL, NULL},
        {"$2", "3", "4", NULL},
        {NULL, "5", "6", NULL},
        {NULL, NULL, NULL, NULL}};
    struct pg_reply reply = {.rows = 6, .status = 200, .pieces = pieces, .values = values};

    ask(&plain, fake_get("", "q", "o"));
    fake_given.custom->done(fake_given.custom, 0, &reply);
    assert_int_equal(fake_reply.status, 200);
    assert_string_equal(fake_reply.text,
                        "{\"a\":[{\"x\":1,\"y\":[\"c\",1]},{\"x\":2,\"y\":[null,2]}"
                        "],\"b\":[4,6]}");
}

static void a_shape_that_names_no_column_is_an_odd_answer(void **state)
{
    (void)state;
    static const char *const pieces[][2] = {{"[", NULL}};
    static const char *const bad[] = {"$4", "$0", "$", "$x", "$99"};

    for (unsigned i = 0; i < countof(bad); i++) {
        const char *const values[][FAKE_VALUES] = {{bad[i], NULL, NULL, NULL}};
        struct pg_reply reply = {.rows = 1, .status = 200, .pieces = pieces, .values = values};
        ask(&plain, fake_get("", "q", "o"));
        fake_given.custom->done(fake_given.custom, 0, &reply);
        assert_int_equal(fake_reply.status, 500);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_path_comes_behind_the_query),
        cmocka_unit_test(bad_text_is_refused_with_its_name),
        cmocka_unit_test(a_body_is_passed_as_it_came),
        cmocka_unit_test(unknown_members_are_refused),
        cmocka_unit_test(a_body_that_was_meant_as_a_filter_is_refused),
        cmocka_unit_test(a_body_may_be_missing_in_the_ways_clients_do_it),
        cmocka_unit_test(pieces_and_payloads_become_the_answer),
        cmocka_unit_test(a_sealed_payload_is_opened_on_the_way_out),
        cmocka_unit_test(a_step_is_followed_by_the_next_with_the_sealed_payload),
        cmocka_unit_test(a_failure_changes_nothing),
        cmocka_unit_test(rows_of_a_list_are_put_by_its_shape),
        cmocka_unit_test(a_shape_that_names_no_column_is_an_odd_answer),
    };
    return cmocka_run_group_tests(tests, fake_setup, fake_teardown);
}
