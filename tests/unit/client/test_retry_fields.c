// Tests of the fields with which a program takes part in retries: attempt, correlation id,
// first failure and last error of a delivery; error code of an acknowledgement; next attempt
// of its result.
#include "consumer_fixture.h"

#include <limits.h>
#include <string.h>

static struct queen_batch *pop_one(struct rig *g, const char *more)
{
    g->store.left = 1;
    g->store.more = more;
    struct queen_batch *b = queen_pop(g->client, &(struct queen_pop){.queue = "q"}, &err);
    assert_non_null(b);
    assert_int_equal(b->n, 1);
    return b;
}

static void a_scheduled_retry_includes_its_history(void **state)
{
    (void)state;
    struct rig *g = open_rig(1);
    struct queen_batch *b = pop_one(
        g, ",\"attempt\":4,\"correlationId\":\"campaign-7\",\"eventType\":\"mail\","
           "\"firstFailedAt\":\"2026-02-03T04:05:06.123Z\",\"lastError\":\"a \\\"b\\\"\"");
    const struct queen_delivery *d = &b->items[0];

    assert_int_equal(d->attempt, 4);
    assert_string_equal(d->correlation_id, "campaign-7");
    assert_string_equal(d->event_type, "mail");
    assert_string_equal(d->first_failed_at, "2026-02-03T04:05:06.123Z");
    assert_string_equal(d->last_error, "a \"b\"");
    queen_batch_free(b);
    close_rig(g);
}

// The fake server delivers with retryCount 2.
static void without_a_scheduled_retry_the_attempt_follows_the_retry_count(void **state)
{
    (void)state;
    struct rig *g = open_rig(1);
    struct queen_batch *b = pop_one(g, NULL);
    const struct queen_delivery *d = &b->items[0];

    assert_int_equal(d->attempt, 3);
    assert_null(d->correlation_id);
    assert_null(d->event_type);
    assert_null(d->first_failed_at);
    assert_null(d->last_error);
    queen_batch_free(b);
    close_rig(g);
}

static void numbers_that_do_not_fit_are_limited(void **state)
{
    (void)state;
    struct rig *g = open_rig(1);
    struct queen_batch *b = pop_one(g, ",\"attempt\":99999999999");

    assert_int_equal(b->items[0].attempt, INT_MAX);
    queen_batch_free(b);
    b = pop_one(g, ",\"attempt\":-3");
    assert_int_equal(b->items[0].attempt, 3);
    queen_batch_free(b);
    close_rig(g);
}

static struct queen_ack_results *ack_one(struct rig *g, const char *more)
{
    struct queen_ack a = {.transaction_id = "t",
                          .partition_id = "p",
                          .status = QUEEN_ACK_FAILED,
                          .error = "no",
                          .error_code = "BAD_\xff",
                          .worker = "mailer-3"};

    g->store.ack_more = more;
    struct queen_ack_results *r = queen_ack(g->client, "g", &a, 1, &err);
    assert_non_null(r);
    assert_int_equal(r->n, 1);
    return r;
}

static void an_error_code_and_a_worker_are_sent(void **state)
{
    (void)state;
    struct rig *g = open_rig(0);

    queen_ack_results_free(ack_one(g, NULL));
    assert_string_equal(
        g->store.acks, "{\"consumerGroup\":\"g\",\"acknowledgments\":[{\"transactionId\":\"t\","
                       "\"partitionId\":\"p\",\"error\":\"no\",\"errorCode\":\"BAD_?\","
                       "\"worker\":\"mailer-3\",\"status\":\"failed\"}]}");
    close_rig(g);
}

static void a_result_has_the_next_attempt(void **state)
{
    (void)state;
    struct rig *g = open_rig(0);
    struct queen_ack_results *r =
        ack_one(g, ",\"nextAttempt\":2,\"nextAttemptAt\":\"2026-02-03T04:05:06.123456Z\"");

    assert_int_equal(r->items[0].next_attempt, 2);
    assert_string_equal(r->items[0].next_attempt_at, "2026-02-03T04:05:06.123456Z");
    queen_ack_results_free(r);
    r = ack_one(g, ",\"nextAttempt\":99999999999,\"nextAttemptAt\":null");
    assert_int_equal(r->items[0].next_attempt, 0);
    assert_null(r->items[0].next_attempt_at);
    queen_ack_results_free(r);
    close_rig(g);
}

static void an_acknowledgement_in_a_transaction_has_them_too(void **state)
{
    (void)state;
    struct rig *g = open_rig(0);
    struct queen_transaction *t = queen_transaction_new();

    queen_transaction_settle(t, "g",
                             &(struct queen_ack){.transaction_id = "t",
                                                 .partition_id = "p",
                                                 .lease_id = "l",
                                                 .status = QUEEN_ACK_DLQ,
                                                 .error_code = "BAD"});
    // The fake server answers with an array, which is not the result of a transaction.
    assert_int_equal(queen_transaction_commit(g->client, t, &err), QUEEN_E_PROTOCOL);
    assert_string_equal(g->store.acks,
                        "{\"operations\":[{\"type\":\"ack\",\"transactionId\":\"t\","
                        "\"partitionId\":\"p\",\"consumerGroup\":\"g\",\"errorCode\":\"BAD\","
                        "\"status\":\"dlq\"}],\"requiredLeases\":[\"l\"]}");
    t = queen_transaction_new();
    queen_transaction_settle(t, NULL, &(struct queen_ack){.partition_id = "p"});
    assert_int_equal(queen_transaction_commit(g->client, t, &err), QUEEN_E_ARGUMENT);
    close_rig(g);
}

static enum queen_verdict give_back(struct queen_job *job, void *ctx)
{
    (void)ctx;
    queen_job_settle(job, 0, QUEEN_ACK_COMPLETED, NULL);
    queen_job_settle_after(job, 1, 7);
    queen_job_settle_after(job, 2, 8);
    queen_job_settle(job, 2, QUEEN_ACK_RETRY, NULL); // replaces the delay
    queen_job_settle_after(job, 99, 9);              // there is no such message
    queen_job_retry_after(job, 30);
    return QUEEN_RETRY;
}

static enum queen_verdict fail_all(struct queen_job *job, void *ctx)
{
    (void)ctx;
    queen_job_retry_after(job, 30); // applies only to QUEEN_RETRY
    return QUEEN_FAIL;
}

static void consume_four(struct rig *g, queen_handler handler)
{
    struct queen_consumer_options o = options(g, handler);

    o.limit = 4;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    assert_non_null(c);
    assert_int_equal(queen_consumer_wait(c, &err), 0);
    queen_consumer_free(c);
}

static void messages_can_be_given_back_for_later(void **state)
{
    (void)state;
    struct rig *g = open_rig(4);

    consume_four(g, give_back);
    assert_string_equal(
        g->store.acks,
        "{\"consumerGroup\":\"g\",\"acknowledgments\":["
        "{\"transactionId\":\"t0\",\"partitionId\":\"p\",\"leaseId\":\"0\",\"status\":"
        "\"completed\"},"
        "{\"transactionId\":\"t1\",\"partitionId\":\"p\",\"leaseId\":\"0\",\"retryAfter\":7,"
        "\"status\":\"retry\"},"
        "{\"transactionId\":\"t2\",\"partitionId\":\"p\",\"leaseId\":\"0\",\"status\":"
        "\"retry\"},"
        "{\"transactionId\":\"t3\",\"partitionId\":\"p\",\"leaseId\":\"0\",\"retryAfter\":30,"
        "\"status\":\"retry\"}]}");
    close_rig(g);
}

static void a_failure_has_no_delay_of_its_own(void **state)
{
    (void)state;
    struct rig *g = open_rig(4);

    consume_four(g, fail_all);
    assert_null(strstr(g->store.acks, "retryAfter"));
    assert_non_null(strstr(g->store.acks, "\"status\":\"failed\""));
    close_rig(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_scheduled_retry_includes_its_history),
        cmocka_unit_test(without_a_scheduled_retry_the_attempt_follows_the_retry_count),
        cmocka_unit_test(numbers_that_do_not_fit_are_limited),
        cmocka_unit_test(an_error_code_and_a_worker_are_sent),
        cmocka_unit_test(a_result_has_the_next_attempt),
        cmocka_unit_test(an_acknowledgement_in_a_transaction_has_them_too),
        cmocka_unit_test(messages_can_be_given_back_for_later),
        cmocka_unit_test(a_failure_has_no_delay_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
