// ack.c: entries in, results out.
#include "fake.h"

#include <stdio.h>

#define LANE "6f0d1f5e-2a57-4c55-9f6b-1c2d3e4f5a6b"

static struct ack_entry *entry(unsigned i)
{
    assert_non_null(fake_given.ack);
    assert_true(i < fake_given.ack->n_entries);
    return &fake_given.ack->entries[i];
}

static void one_entry_with_all_fields(void **state)
{
    (void)state;
    SEND(api_ack, "{\"transactionId\":\"t\",\"partitionId\":\"" LANE "\",\"status\":\"failed\","
                  "\"leaseId\":\"l\",\"consumerGroup\":\"g\",\"error\":\"b\\\"oom\"}");
    assert_int_equal(fake_given.ack->n_entries, 1);
    assert_span(fake_given.ack->group, "g");
    assert_non_null(fake_given.ack->arena);
}

static void the_fields_arrive(void **state)
{
    (void)state;
    SEND(api_ack,
         "{\"transactionId\":\"t\\u0041\",\"partitionId\":\"" LANE "\",\"status\":\"failed\","
         "\"leaseId\":\"l\",\"error\":\"b\\\"oom\"}");
    assert_span(entry(0)->txid, "tA");
    assert_false(entry(0)->bad_partition);
    assert_int_equal(entry(0)->partition_id[0], 0x6f);
    assert_int_equal(entry(0)->status, ACK_FAILED);
    assert_span(entry(0)->lease, "l");
    assert_span(entry(0)->error, "b\"oom");
    assert_span(fake_given.ack->group, "__QUEUE_MODE__");
}

static void null_or_a_wrong_type_counts_as_absent(void **state)
{
    (void)state;
    static const char *const values[] = {"null", "5", "[]", "{}", "true", "\"\""};
    static const char *const fields[] = {"leaseId", "consumerGroup", "error", "status"};
    char body[256];

    for (unsigned v = 0; v < countof(values); v++) {
        for (unsigned f = 0; f < countof(fields); f++) {
            if (f == 3 && v > 0)
                continue; // another status: see below
            snprintf(body, sizeof body,
                     "{\"transactionId\":\"t\",\"partitionId\":\"" LANE "\",\"%s\":%s}",
                     fields[f], values[v]);
            SEND(api_ack, body);
            assert_null(entry(0)->lease.ptr);
            assert_null(entry(0)->error.ptr);
            assert_int_equal(entry(0)->status, ACK_COMPLETED);
            assert_span(fake_given.ack->group, "__QUEUE_MODE__");
        }
    }
}

static void every_status_has_its_meaning(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        enum ack_status status;
    } cases[] = {{"completed", ACK_COMPLETED}, {"success", ACK_COMPLETED},
                 {"failed", ACK_FAILED},       {"dlq", ACK_DLQ},
                 {"retry", ACK_RETRY},         {"COMPLETED", ACK_UNKNOWN},
                 {" completed", ACK_UNKNOWN},  {"", ACK_UNKNOWN}};
    char body[256];

    for (unsigned i = 0; i < countof(cases); i++) {
        snprintf(body, sizeof body,
                 "{\"transactionId\":\"t\",\"partitionId\":\"x\",\"status\":\"%s\"}",
                 cases[i].text);
        SEND(api_ack, body);
        assert_int_equal(entry(0)->status, cases[i].status);
        assert_true(entry(0)->bad_partition);
    }
}

static void a_malformed_ack_is_refused(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"", "Invalid JSON"},
        {"{", "Invalid JSON"},
        {"[]", "the body must be an object"},
        {"null", "the body must be an object"},
        {"{}", "transactionId must be a string"},
        {"{\"transactionId\":\"a\"}", "partitionId must be a string"},
        {"{\"partitionId\":\"a\"}", "transactionId must be a string"},
        {"{\"transactionId\":5,\"partitionId\":\"a\"}", "transactionId must be a string"},
        {"{\"transactionId\":\"a\",\"partitionId\":null}", "partitionId must be a string"},
        {"{\"transactionId\":\"a\",\"partitionId\":\"a\",\"status\":5}",
         "status must be a string"},
        {"{\"transactionId\":\"a\",\"partitionId\":\"a\",\"status\":true}",
         "status must be a string"},
        {"{\"transactionId\":\"a\",\"partitionId\":\"a\",\"sttatus\":\"failed\"}",
         "unknown member \"sttatus\"; did you mean \"status\"?"},
        {"{\"transactionId\":\"\xff\",\"partitionId\":\"a\"}", "Invalid JSON"},
    };
    for (unsigned i = 0; i < countof(cases); i++) {
        SEND(api_ack, cases[i].body);
        assert_null(fake_given.ack);
        assert_refused(cases[i].says);
    }
}

static void a_malformed_batch_is_refused_whole(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"{}", "acknowledgments must be an array"},
        {"{\"acknowledgments\":null}", "acknowledgments must be an array"},
        {"{\"acknowledgments\":{}}", "acknowledgments must be an array"},
        {"{\"acknowledgments\":[5]}", "entry 0: must be an object"},
        {"{\"acknowledgments\":[{\"transactionId\":\"a\",\"partitionId\":\"b\"},{}]}",
         "entry 1: transactionId must be a string"},
        {"{\"acknowledgments\":[{\"transactionId\":\"a\",\"partitionId\":\"b\"},{"
         "\"transactionId\":\"\\ud800\"}]}",
         "entry 1: half of a surrogate pair"},
    };
    for (unsigned i = 0; i < countof(cases); i++) {
        SEND(api_ack_batch, cases[i].body);
        assert_null(fake_given.ack);
        assert_refused(cases[i].says);
    }
}

static void the_group_of_a_batch_is_the_one_on_top(void **state)
{
    (void)state;
    SEND(api_ack_batch, "{\"acknowledgments\":[{\"transactionId\":\"a\",\"partitionId\":\"" LANE
                        "\",\"consumerGroup\":\"own\"}],"
                        "\"consumerGroup\":\"top\"}");
    assert_span(fake_given.ack->group, "top");
    SEND(api_ack_batch, "{\"consumerGroup\":null,\"acknowledgments\":[{\"transactionId\":\"a\","
                        "\"partitionId\":\"" LANE "\",\"consumerGroup\":\"own\"}]}");
    assert_span(fake_given.ack->group, "__QUEUE_MODE__");
}

static void an_empty_batch_is_answered_at_once(void **state)
{
    (void)state;
    SEND(api_ack_batch, "{\"acknowledgments\":[]}");
    assert_null(fake_given.ack);
    assert_int_equal(fake_reply.status, 200);
    assert_string_equal(fake_reply.text, "[]");
}

static void each_result_has_the_outcome_of_its_entry(void **state)
{
    (void)state;
    SEND(api_ack_batch,
         "{\"acknowledgments\":["
         "{\"transactionId\":\"a\\n\",\"partitionId\":\"" LANE "\"},"
         "{\"transactionId\":\"b\",\"partitionId\":\"zz\"},"
         "{\"transactionId\":\"c\",\"partitionId\":\"" LANE "\",\"leaseId\":\"x\"},"
         "{\"transactionId\":\"d\",\"partitionId\":\"" LANE "\",\"status\":\"do\\\"ne\"}]}");
    entry(0)->why = ACK_OK, entry(0)->released = 1, entry(0)->dead = true;
    entry(0)->queue = SPAN("q\""), entry(0)->partition = SPAN("p");
    entry(1)->why = ACK_NOT_FOUND, entry(1)->released = -1;
    entry(2)->why = ACK_BAD_LEASE, entry(2)->queue = SPAN("q"), entry(2)->partition = SPAN("p");
    entry(3)->why = ACK_BAD_STATUS, entry(3)->queue = SPAN("q"),
    entry(3)->partition = SPAN("p");
    fake_given.ack->done(fake_given.ack, 0);
    assert_int_equal(fake_reply.status, 200);
    assert_string_equal(
        fake_reply.text,
        "[{\"index\":0,\"transactionId\":\"a\\n\",\"success\":true,\"error\":null,"
        "\"queueName\":\"q\\\"\","
        "\"partitionName\":\"p\",\"leaseReleased\":true,\"dlq\":true},"
        "{\"index\":1,\"transactionId\":\"b\",\"success\":false,\"error\":\"Message not "
        "found\","
        "\"queueName\":null,\"partitionName\":null,\"leaseReleased\":null,\"dlq\":false},"
        "{\"index\":2,\"transactionId\":\"c\",\"success\":false,\"error\":\"Invalid or expired "
        "lease\","
        "\"queueName\":\"q\",\"partitionName\":\"p\",\"leaseReleased\":false,\"dlq\":false},"
        "{\"index\":3,\"transactionId\":\"d\",\"success\":false,\"error\":\"Unknown status "
        "'do\\\"ne'\","
        "\"queueName\":\"q\",\"partitionName\":\"p\",\"leaseReleased\":false,\"dlq\":false}]");
}

static void a_refusal_of_the_broker_passes_through(void **state)
{
    (void)state;
    SEND(api_ack, "{\"transactionId\":\"t\",\"partitionId\":\"" LANE "\"}");
    fake_given.ack->done(fake_given.ack, QE_BUSY);
    assert_int_equal(fake_reply.status, 429);
}

static void a_thousand_entries_keep_their_order(void **state)
{
    (void)state;
    struct buf body = {0};
    buf_put_lit(&body, "{\"acknowledgments\":[");
    for (unsigned i = 0; i < 1000; i++)
        buf_printf(&body, "%s{\"transactionId\":\"m%u\",\"partitionId\":\"" LANE "\"}",
                   i ? "," : "", i);
    buf_put_lit(&body, "]}");
    api_ack_batch.handle(fake_request_span(buf_span(&body)));
    assert_int_equal(fake_given.ack->n_entries, 1000);
    assert_span(entry(999)->txid, "m999");
    fake_given.ack->done(fake_given.ack, 0);
    assert_int_equal(fake_reply.status, 200);
    buf_free(&body);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(one_entry_with_all_fields),
        T(the_fields_arrive),
        T(null_or_a_wrong_type_counts_as_absent),
        T(every_status_has_its_meaning),
        T(a_malformed_ack_is_refused),
        T(a_malformed_batch_is_refused_whole),
        T(the_group_of_a_batch_is_the_one_on_top),
        T(an_empty_batch_is_answered_at_once),
        T(each_result_has_the_outcome_of_its_entry),
        T(a_refusal_of_the_broker_passes_through),
        T(a_thousand_entries_keep_their_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
