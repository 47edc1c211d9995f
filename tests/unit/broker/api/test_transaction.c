// transaction.c: operations flattened into items, entries and steps; outcomes into answers.
#include "fake.h"

#include <stdio.h>

#define LANE "6f0d1f5e-2a57-4c55-9f6b-1c2d3e4f5a6b"
#define ACK  "{\"type\":\"ack\",\"transactionId\":\"t\",\"partitionId\":\"" LANE "\"}"
#define PUSH "{\"type\":\"push\",\"items\":[{\"queue\":\"q\",\"transactionId\":\"p\"}]}"

// From "success" on: what stands before it is a fresh id.
static const char *answer(void)
{
    const char *from = strstr(fake_reply.text, ",\"success\"");
    assert_int_equal(fake_reply.status, 200);
    assert_non_null(from);
    assert_int_equal(from - fake_reply.text, strlen("{\"transactionId\":\"\"") + 36);
    return from;
}

static void operations_are_flattened_in_order(void **state)
{
    (void)state;
    SEND(api_transaction,
         "{\"requiredLeases\":[\"l1\",null,\"\",\"l2\"],\"operations\":["
         "{\"items\":[{\"queue\":\"a\",\"payload\":null},{\"queue\":\"b\"}],\"type\":\"push\"},"
         "{\"type\":\"ack\",\"transactionId\":\"t\",\"partitionId\":\"" LANE
         "\",\"consumerGroup\":\"g\","
         "\"status\":\"dlq\",\"leaseId\":\"l\",\"error\":\"e\"},"
         "{\"type\":\"push\",\"queue\":\"c\",\"data\":{\"x\":1},\"partition\":\"p\"},"
         "{\"type\":\"push\",\"queue\":\"d\",\"data\":1,\"payload\":2}," ACK "]}");
    struct tx_op *op = fake_given.tx;
    assert_int_equal(op->n_items, 4);
    assert_int_equal(op->n_entries, 2);
    assert_span(op->items[0].payload, "null");
    assert_span(op->items[1].payload, "{}");
    assert_span(op->items[1].partition, "Default");
    assert_span(op->items[2].payload, "{\"x\":1}");
    assert_span(op->items[2].partition, "p");
    assert_span(op->items[3].payload, "2");
    assert_int_equal(op->entries[0].status, ACK_DLQ);
    assert_span(op->entries[0].lease, "l");
    assert_span(op->entries[0].error, "e");
    assert_span(op->entry_groups[0], "g");
    assert_span(op->entry_groups[1], "__QUEUE_MODE__");
    assert_int_equal(op->n_required, 2);
    assert_span(op->required[0], "l1");
    assert_span(op->required[1], "l2");
}

static void results_of_a_commit_are_in_request_order(void **state)
{
    (void)state;
    SEND(api_transaction, "{\"operations\":[" ACK "," PUSH "]}");
    struct tx_op *op = fake_given.tx;
    op->committed = true;
    op->failed_item = op->failed_entry = -1;
    op->entries[0].dead = true;
    op->items[0].status = PUSH_QUEUED;
    fake_uuid(op->items[0].message_id, 0x11);
    fake_uuid(op->items[0].partition_id, 0x22);
    op->done(op, 0);
    assert_string_equal(
        answer(),
        ",\"success\":true,\"results\":[{\"index\":0,\"type\":\"ack\",\"success\":true,"
        "\"transactionId\":\"t\",\"error\":null,\"dlq\":true},"
        "{\"index\":1,\"type\":\"push\",\"success\":true,\"transactionId\":\"p\","
        "\"messageId\":\"11111111-1111-1111-1111-111111111111\","
        "\"partitionId\":\"22222222-2222-2222-2222-222222222222\",\"queueName\":\"q\"}]}");
}

static void a_rollback_lists_the_steps_up_to_the_one_at_fault(void **state)
{
    (void)state;
    SEND(api_transaction, "{\"operations\":[" PUSH "," ACK "," PUSH "]}");
    struct tx_op *op = fake_given.tx;
    op->failed_item = -1;
    op->failed_entry = 0;
    op->error = SPAN("Message not found");
    op->done(op, 0);
    assert_string_equal(
        answer(), ",\"success\":false,\"error\":\"Message not found\",\"results\":["
                  "{\"index\":0,\"type\":\"push\",\"success\":true,\"transactionId\":\"p\","
                  "\"messageId\":null,"
                  "\"partitionId\":null,\"queueName\":\"q\"},"
                  "{\"index\":1,\"type\":\"ack\",\"success\":false,\"transactionId\":\"t\","
                  "\"error\":\"Message not found\",\"dlq\":false}]}");

    SEND(api_transaction, "{\"operations\":[" ACK "," PUSH "]}");
    op = fake_given.tx;
    op->failed_item = 0;
    op->failed_entry = -1;
    op->error = SPAN("duplicate");
    op->done(op, 0);
    assert_non_null(strstr(
        answer(), "{\"index\":1,\"type\":\"push\",\"success\":false,\"transactionId\":\"p\","
                  "\"messageId\":null,\"partitionId\":null,\"error\":\"duplicate\","));
}

static void a_rollback_without_a_culprit_lists_nothing(void **state)
{
    (void)state;
    SEND(api_transaction, "{\"operations\":[" ACK "]}");
    struct tx_op *op = fake_given.tx;
    op->failed_item = op->failed_entry = -1;
    op->done(op, 0);
    assert_string_equal(answer(),
                        ",\"success\":false,\"error\":\"Transaction failed\",\"results\":[]}");
}

static void an_unknown_type_aborts_before_the_database_is_called(void **state)
{
    (void)state;
    SEND(api_transaction, "{\"operations\":[" PUSH ",{\"type\":\"da\\\"nce\"}," ACK "]}");
    assert_null(fake_given.tx);
    assert_string_equal(
        answer(),
        ",\"success\":false,\"error\":\"Unknown operation type: da\\\"nce\",\"results\":["
        "{\"index\":0,\"type\":\"push\",\"success\":true,\"transactionId\":\"p\",\"messageId\":"
        "null,"
        "\"partitionId\":null,\"queueName\":\"q\"},"
        "{\"index\":1,\"type\":\"da\\\"nce\",\"success\":false,\"error\":\"Unknown operation "
        "type: da\\\"nce\"}]}");
}

static void a_status_that_transactions_do_not_have_aborts(void **state)
{
    (void)state;
    static const char *const statuses[] = {"retry", "bogus", "COMPLETED"};
    char body[512], part[96];

    for (unsigned i = 0; i < countof(statuses); i++) {
        snprintf(body, sizeof body,
                 "{\"operations\":[" PUSH ",{\"type\":\"ack\",\"transactionId\":\"t\","
                 "\"partitionId\":\"x\",\"status\":\"%s\"}," PUSH "]}",
                 statuses[i]);
        SEND(api_transaction, body);
        assert_null(fake_given.tx);
        snprintf(part, sizeof part,
                 "{\"index\":1,\"type\":\"ack\",\"success\":false,\"transactionId\":\"t\",");
        assert_non_null(strstr(answer(), part));
        snprintf(part, sizeof part, "\"error\":\"Status not allowed in a transaction: %s\"",
                 statuses[i]);
        assert_non_null(strstr(answer(), part));
        assert_null(strstr(answer(), "\"index\":2"));
    }
}

static void malformed_operations_are_refused(void **state)
{
    (void)state;
    static const struct {
        const char *body, *says;
    } cases[] = {
        {"", "Invalid JSON"},
        {"[]", "the body must be an object"},
        {"{}", "operations must be a non-empty array"},
        {"{\"operations\":[]}", "operations must be a non-empty array"},
        {"{\"operations\":{}}", "operations must be a non-empty array"},
        {"{\"operations\":[" PUSH "],\"operations\":[]}",
         "operations must be a non-empty array"},
        {"{\"operations\":[5]}", "operation 0: must be an object"},
        {"{\"operations\":[{}]}", "operation 0: type must be a string"},
        {"{\"operations\":[" PUSH ",{\"type\":7}]}", "operation 1: type must be a string"},
        {"{\"operations\":[{\"type\":\"push\"}]}", "operation 0: queue must be a string"},
        {"{\"operations\":[{\"type\":\"push\",\"items\":5}]}",
         "operation 0: items must be an array"},
        {"{\"operations\":[{\"type\":\"push\",\"items\":[{\"queue\":\"q\"},{}]}]}",
         "operation 0, item 1: queue must be a string"},
        {"{\"operations\":[{\"type\":\"push\",\"items\":[{\"queue\":\"q\",\"traceId\":\"x\"}]}]"
         "}",
         "operation 0, item 0: traceId must be a UUID"},
        {"{\"operations\":[" PUSH ",{\"type\":\"ack\"}]}",
         "operation 1: transactionId must be a string"},
        {"{\"operations\":[{\"type\":\"ack\",\"transactionId\":\"x\"}]}",
         "operation 0: partitionId"},
        {"{\"operations\":[" PUSH
         ",{\"type\":\"push\",\"queue\":\"q\",\"payload\":\"\\u0000\"}]}",
         "operation 1"},
    };
    for (unsigned i = 0; i < countof(cases); i++) {
        SEND(api_transaction, cases[i].body);
        assert_null(fake_given.tx);
        assert_refused(cases[i].says);
    }
}

static void nothing_to_do_is_done_at_once(void **state)
{
    (void)state;
    SEND(api_transaction, "{\"operations\":[{\"type\":\"push\",\"items\":[]}]}");
    assert_null(fake_given.tx);
    assert_string_equal(answer(), ",\"success\":true,\"results\":[]}");
}

static void a_failure_of_the_database_is_not_a_rollback(void **state)
{
    (void)state;
    SEND(api_transaction, "{\"operations\":[" PUSH "]}");
    fake_given.tx->done(fake_given.tx, QE_PG_AWAY);
    assert_int_equal(fake_reply.status, 503);
    SEND(api_transaction, "{\"operations\":[" PUSH "]}");
    fake_given.tx->done(fake_given.tx, QE_BUSY);
    assert_int_equal(fake_reply.status, 429);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(operations_are_flattened_in_order),
        T(results_of_a_commit_are_in_request_order),
        T(a_rollback_lists_the_steps_up_to_the_one_at_fault),
        T(a_rollback_without_a_culprit_lists_nothing),
        T(an_unknown_type_aborts_before_the_database_is_called),
        T(a_status_that_transactions_do_not_have_aborts),
        T(malformed_operations_are_refused),
        T(nothing_to_do_is_done_at_once),
        T(a_failure_of_the_database_is_not_a_rollback),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
