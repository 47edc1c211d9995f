// push.c: bodies into items, items into the answer.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/id.h"
#include "segment/keys.h"

static struct push_item *item(unsigned i)
{
    assert_non_null(fake_given.push);
    assert_true(i < fake_given.push->n_items);
    return &fake_given.push->items[i];
}

static void all_fields_arrive_where_they_stood(void **state)
{
    (void)state;
    SEND(api_push,
         "{\"items\":[{\"queue\":\"q\",\"partition\":\"p\",\"payload\":{ \"a\" : 1.10 },"
         "\"transactionId\":\"t-1\",\"traceId\":\"0190AAAA-0000-4000-8000-00000000000f\"}]}");
    assert_int_equal(fake_given.push->n_items, 1);
    assert_span(item(0)->queue, "q");
    assert_span(item(0)->partition, "p");
    assert_span(item(0)->payload, "{ \"a\" : 1.10 }");
    assert_span(item(0)->txid, "t-1");
    assert_null(item(0)->producer.ptr);
    assert_true(item(0)->has_trace);
    assert_int_equal(item(0)->trace[15], 15);
    uint8_t key[16];
    key_of_text(SPAN("t-1"), key);
    assert_memory_equal(item(0)->key, key, 16);
    assert_false(item(0)->txid_is_key);
}

static void missing_null_and_empty_members_get_their_defaults(void **state)
{
    (void)state;
    SEND(api_push,
         "{\"items\":[{\"queue\":\"q\"},"
         "{\"queue\":\"q\",\"partition\":null,\"payload\":null,\"transactionId\":null,"
         "\"traceId\":null},"
         "{\"queue\":\"q\",\"partition\":\"\",\"transactionId\":\"\",\"traceId\":\"\"}]}");
    for (unsigned i = 0; i < 3; i++) {
        assert_span(item(i)->partition, "Default");
        assert_span(item(i)->payload, "null");
        assert_null(item(i)->txid.ptr);
        assert_true(item(i)->txid_is_key);
        assert_true(id_is_uuid7(item(i)->key));
        assert_false(item(i)->has_trace);
    }
    assert_memory_not_equal(item(0)->key, item(1)->key, 16);
}

static void escapes_in_keys_names_and_ids_are_undone(void **state)
{
    (void)state;
    SEND(api_push, "{\"\\u0069tems\":[{\"\\u0071ueue\":\"a\\\"b\\u00e9\",\"partition\":\"\\n\","
                   "\"transactionId\":\"\\ud83d\\ude00\",\"payload\":\"\\u0041\"}]}");
    assert_span(item(0)->queue, "a\"b\xc3\xa9");
    assert_span(item(0)->partition, "\n");
    assert_span(item(0)->txid, "\xf0\x9f\x98\x80");
    assert_span(item(0)->payload, "\"\\u0041\""); // as it was sent
}

static void a_uuid_as_transaction_id_is_its_own_key(void **state)
{
    (void)state;
    SEND(api_push, "{\"items\":[{\"queue\":\"q\",\"transactionId\":\"01900000-0000-7000-8000-"
                   "000000000001\"}]}");
    assert_true(item(0)->txid_is_key);
    assert_int_equal(item(0)->key[15], 1);
    assert_span(item(0)->txid, "01900000-0000-7000-8000-000000000001");
}

static void the_last_of_equal_keys_wins(void **state)
{
    (void)state;
    SEND(api_push,
         "{\"items\":5,\"items\":[{\"queue\":7,\"queue\":\"q\",\"payload\":1,\"payload\":2}]}");
    assert_int_equal(fake_given.push->n_items, 1);
    assert_span(item(0)->queue, "q");
    assert_span(item(0)->payload, "2");

    SEND(api_push,
         "{\"items\":[{\"queue\":\"a\"},{\"queue\":\"b\"}],\"items\":[{\"queue\":\"c\"}]}");
    assert_int_equal(fake_given.push->n_items, 1);
    assert_span(item(0)->queue, "c");

    SEND(api_push, "{\"items\":[{\"queue\":\"a\"}],\"items\":null}");
    assert_refused("items must be an array");
}

static void an_empty_list_is_answered_without_the_broker(void **state)
{
    (void)state;
    SEND(api_push, " {\"bufferMs\":5,\"items\":[ ]} ");
    assert_null(fake_given.push);
    assert_int_equal(fake_reply.status, 201);
    assert_string_equal(fake_reply.text, "[]");
}

static void a_bad_item_refuses_the_request_and_is_named(void **state)
{
    (void)state;
    static const struct {
        const char *item, *says;
    } cases[] = {
        {"5", "must be an object"},
        {"null", "must be an object"},
        {"[]", "must be an object"},
        {"{}", "queue must be a string"},
        {"{\"queue\":null}", "queue must be a string"},
        {"{\"queue\":5}", "queue must be a string"},
        {"{\"queue\":{\"a\":1}}", "queue must be a string"},
        {"{\"queue\":\"q\",\"partition\":5}", "partition must be a string"},
        {"{\"queue\":\"q\",\"partition\":[]}", "partition must be a string"},
        {"{\"queue\":\"q\",\"transactionId\":true}", "transactionId must be a string"},
        {"{\"queue\":\"q\",\"traceId\":{}}", "traceId must be a string"},
        {"{\"queue\":\"q\",\"traceId\":\"nope\"}", "traceId must be a UUID"},
        {"{\"queue\":\"q\",\"payload\":\"\\u0000\"}", "\\u0000"},
        {"{\"queue\":\"q\",\"payload\":\"\\ud800\"}", "surrogate"},
        {"{\"queue\":\"q\",\"payload\":\"\xff\"}", "UTF-8"},
        {"{\"queue\":\"q\",\"payload\":1e200000}", "numeric"},
        {"{\"queue\":\"q\",\"payload\":tru}", "Invalid JSON"},
        {"{\"queue\":\"q\",}", "Invalid JSON"},
        {"{\"queue\":\"\\ud800\"}", "Invalid JSON"},
    };
    char body[512];

    for (unsigned i = 0; i < countof(cases); i++) {
        snprintf(body, sizeof body,
                 "{\"items\":[{\"queue\":\"a\"},{\"queue\":\"a\"},%s,{\"queue\":\"a\"}]}",
                 cases[i].item);
        SEND(api_push, body);
        assert_null(fake_given.push);
        assert_refused(cases[i].says);
        assert_refused("item 2");
    }
}

static void names_are_counted_in_characters(void **state)
{
    (void)state;
    char name[4 * 256 + 1], body[8192];
    static const char *const fields[] = {"queue", "partition", "transactionId"};

    for (unsigned f = 0; f < 3; f++) {
        for (unsigned chars = 255; chars < 257; chars++) {
            name[0] = '\0';
            for (unsigned i = 0; i < chars; i++)
                strcat(name, "\xd0\xb6");
            snprintf(body, sizeof body, "{\"items\":[{\"queue\":\"q\",\"%s\":\"%s\"}]}",
                     fields[f], name);
            SEND(api_push, body);
            if (chars == 255)
                assert_int_equal(fake_given.push->n_items, 1);
            else
                assert_refused(fields[f]);
        }
    }
}

static void invalid_json_is_reported_with_its_position(void **state)
{
    (void)state;
    SEND(api_push, "");
    assert_refused("Invalid JSON at byte 0: the body is empty");
    SEND(api_push, "{\"items\":[}");
    assert_refused("Invalid JSON at byte 10, item 0");
    SEND(api_push, "{\"items\":[]} x");
    assert_refused("Invalid JSON");
    assert_null(strstr(fake_reply.text, "item"));
    SEND(api_push, "[]");
    assert_refused("the body must be an object");
    SEND(api_push, "{}");
    assert_refused("items must be an array");
    SEND(api_push, "{\"items\":{}}");
    assert_refused("items must be an array");
}

static void nesting_counts_from_the_whole_body(void **state)
{
    (void)state;
    static char body[4096];
    size_t n =
        (size_t)sprintf(body, "{\"items\":[{\"queue\":\"q\"},{\"queue\":\"q\",\"payload\":");
    memset(body + n, '[', 400);
    memset(body + n + 400, ']', 400);
    strcpy(body + n + 800, "}]}");
    SEND(api_push, body);
    assert_refused("item 1: nested too deeply");
}

static void a_huge_array_keeps_its_order(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct buf body = {0};
    buf_put_lit(&body, "{\"items\":[");
    for (unsigned i = 0; i < N; i++)
        // The first items are far larger than the others, so the guess is wrong.
        buf_printf(
            &body, "%s{\"queue\":\"q\",\"payload\":%u%s}", i ? "," : "", i,
            i < 3 ? ",\"x\":\"............................................................\""
                  : "");
    buf_put_lit(&body, "]}");
    api_push.handle(fake_request_span(buf_span(&body)));
    assert_int_equal(fake_given.push->n_items, N);
    for (unsigned i = 0; i < N; i++) {
        char text[16];
        int n = snprintf(text, sizeof text, "%u", i);
        assert_int_equal(item(i)->payload.len, n);
        assert_memory_equal(item(i)->payload.ptr, text, n);
        item(i)->status = PUSH_QUEUED;
    }
    fake_given.push->done(fake_given.push, 0);
    assert_int_equal(fake_reply.status, 201);
    buf_free(&body);
}

static void the_answer_has_every_key(void **state)
{
    (void)state;
    SEND(api_push, "{\"items\":[{\"queue\":\"q\\n\",\"transactionId\":\"a\\\"b\",\"traceId\":"
                   "\"0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a\"},"
                   "{\"queue\":\"q\",\"transactionId\":\"dup\"},{\"queue\":\"q\"}]}");
    for (unsigned i = 0; i < 3; i++) {
        item(i)->status = i == 1 ? PUSH_DUPLICATE : PUSH_QUEUED;
        fake_uuid(item(i)->message_id, (uint8_t)(0x10 + i));
        fake_uuid(item(i)->partition_id, 0xfe);
    }
    fake_uuid(item(2)->key, 0x9c);
    fake_given.push->done(fake_given.push, 0);
    assert_int_equal(fake_reply.status, 201);
    assert_string_equal(
        fake_reply.text,
        "[{\"index\":0,\"status\":\"queued\",\"transaction_id\":\"a\\\"b\","
        "\"message_id\":\"10101010-1010-1010-1010-101010101010\","
        "\"partition_id\":\"fefefefe-fefe-fefe-fefe-fefefefefefe\","
        "\"trace_id\":\"0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a\","
        "\"partitionId\":\"fefefefe-fefe-fefe-fefe-fefefefefefe\",\"transactionId\":\"a\\\"b\","
        "\"messageId\":\"10101010-1010-1010-1010-101010101010\",\"queueName\":\"q\\n\"},"
        "{\"index\":1,\"status\":\"duplicate\",\"transaction_id\":\"dup\","
        "\"message_id\":\"11111111-1111-1111-1111-111111111111\",\"transactionId\":\"dup\","
        "\"messageId\":\"11111111-1111-1111-1111-111111111111\",\"queueName\":\"q\"},"
        "{\"index\":2,\"status\":\"queued\",\"transaction_id\":\"9c9c9c9c-9c9c-9c9c-9c9c-"
        "9c9c9c9c9c9c\","
        "\"message_id\":\"12121212-1212-1212-1212-121212121212\","
        "\"partition_id\":\"fefefefe-fefe-fefe-fefe-fefefefefefe\",\"trace_id\":null,"
        "\"partitionId\":\"fefefefe-fefe-fefe-fefe-fefefefefefe\","
        "\"transactionId\":\"9c9c9c9c-9c9c-9c9c-9c9c-9c9c9c9c9c9c\","
        "\"messageId\":\"12121212-1212-1212-1212-121212121212\",\"queueName\":\"q\"}]");
}

static void the_longest_texts_fit(void **state)
{
    (void)state;
    char body[16384], name[1600] = "";
    for (unsigned i = 0; i < 255; i++)
        strcat(name, "\\u0001");
    snprintf(body, sizeof body,
             "{\"items\":[{\"queue\":\"a\"},{\"queue\":\"%s\",\"transactionId\":\"%s\","
             "\"traceId\":\"0a0a0a0a-0a0a-0a0a-0a0a-0a0a0a0a0a0a\"}]}",
             name, name);
    SEND(api_push, body);
    item(0)->status = item(1)->status = PUSH_QUEUED;
    fake_given.push->done(fake_given.push, 0);
    assert_int_equal(fake_reply.status, 201);
    assert_non_null(strstr(fake_reply.text, name));
}

static void a_refusal_of_the_broker_passes_through(void **state)
{
    (void)state;
    SEND(api_push, "{\"items\":[{\"queue\":\"q\"}]}");
    fake_given.push->done(fake_given.push, QE_BUSY);
    assert_int_equal(fake_reply.status, 429);

    SEND(api_push, "{\"items\":[{\"queue\":\"q\"}]}");
    fault_set(&fake_given.push->op.why, QE_QUEUE_FULL, "queue \"q\" is full");
    fake_given.push->done(fake_given.push, QE_QUEUE_FULL);
    assert_int_equal(fake_reply.status, 429);
    assert_string_equal(fake_reply.text, "queue \"q\" is full");
}

static void uuids_are_written_like_the_base_writes_them(void **state)
{
    (void)state;
    for (unsigned round = 0; round < 1000; round++) {
        uint8_t id[16];
        char mine[36], theirs[36];
        id_random(id, sizeof id);
        put_uuid(mine, id);
        id_format_uuid(id, theirs);
        assert_memory_equal(mine, theirs, 36);
    }
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(all_fields_arrive_where_they_stood),
        T(missing_null_and_empty_members_get_their_defaults),
        T(escapes_in_keys_names_and_ids_are_undone),
        T(a_uuid_as_transaction_id_is_its_own_key),
        T(the_last_of_equal_keys_wins),
        T(an_empty_list_is_answered_without_the_broker),
        T(a_bad_item_refuses_the_request_and_is_named),
        T(names_are_counted_in_characters),
        T(invalid_json_is_reported_with_its_position),
        T(nesting_counts_from_the_whole_body),
        T(a_huge_array_keeps_its_order),
        T(the_answer_has_every_key),
        T(the_longest_texts_fit),
        T(a_refusal_of_the_broker_passes_through),
        T(uuids_are_written_like_the_base_writes_them),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
