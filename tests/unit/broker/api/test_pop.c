// pop.c and pop_render.c: parameters in, segments out.
#include "fake.h"

#include <stdio.h>

#include "base/id.h"
#include "segment/codec.h"
#include "segment/keys.h"

static struct pop_op *pop(const char *query)
{
    api_pop_queue.handle(fake_get(query, "q", NULL));
    return fake_given.pop;
}

static void the_defaults_are_those_of_the_worker(void **state)
{
    (void)state;
    fake_api.default_batch = 7;
    fake_api.default_timeout_ms = 1234;
    fake_api.default_subscription_mode = SPAN("new");
    struct pop_op *op = pop("");
    assert_span(op->queue, "q");
    assert_null(op->partition.ptr);
    assert_null(op->namespace_.ptr);
    assert_span(op->group, "__QUEUE_MODE__");
    assert_span(op->sub_mode, "new");
    assert_null(op->sub_from.ptr);
    assert_int_equal(op->batch, 7);
    assert_int_equal(op->partitions, 1);
    assert_int_equal(op->timeout_ms, 1234);
    assert_false(op->wait);
    assert_false(op->auto_ack);
}

static void parameters_arrive_and_are_clamped(void **state)
{
    (void)state;
    struct pop_op *op =
        pop("batch=20&partitions=4&wait=true&timeout=5&consumerGroup=g&autoAck=1"
            "&subscriptionMode=new&subscriptionFrom=now&namespace=n&task=t");
    assert_int_equal(op->batch, 20);
    assert_int_equal(op->partitions, 4);
    assert_int_equal(op->timeout_ms, 5);
    assert_true(op->wait && op->auto_ack);
    assert_span(op->group, "g");
    assert_span(op->sub_mode, "new");
    assert_span(op->sub_from, "now");
    assert_null(op->namespace_.ptr); // of form 3 only
    assert_null(op->task.ptr);

    op = pop("batch=0&partitions=-3&timeout=-1&wait=yes&consumerGroup=");
    assert_int_equal(op->batch, 1);
    assert_int_equal(op->partitions, 1);
    assert_int_equal(op->timeout_ms, 0);
    assert_false(op->wait);
    assert_span(op->group, "__QUEUE_MODE__");

    op = pop("batch=99999999999&timeout=99999999999&partitions=99999999999");
    assert_int_equal(op->batch, 1000000);
    assert_int_equal(op->timeout_ms, 86400000);
    assert_int_equal(op->partitions, 1000000);

    op = pop("batch=5abc&timeout=abc");
    assert_int_equal(op->batch, 5);
    assert_int_equal(op->timeout_ms, 30000);
}

static void each_form_of_a_pop_selects_its_messages(void **state)
{
    (void)state;
    api_pop_partition.handle(fake_get("partitions=9", "q", "p"));
    assert_span(fake_given.pop->queue, "q");
    assert_span(fake_given.pop->partition, "p");
    assert_int_equal(fake_given.pop->partitions, 1);

    api_pop.handle(fake_get("namespace=n&task=t", NULL, NULL));
    assert_null(fake_given.pop->queue.ptr);
    assert_span(fake_given.pop->namespace_, "n");
    assert_span(fake_given.pop->task, "t");

    api_pop.handle(fake_get("queue=q&namespace=n", NULL, NULL));
    assert_span(fake_given.pop->queue, "q");
    assert_null(fake_given.pop->partition.ptr);
    assert_null(fake_given.pop->namespace_.ptr);

    api_pop.handle(fake_get("queue=q&partition=p", NULL, NULL));
    assert_span(fake_given.pop->partition, "p");

    static const char *const nothing[] = {"", "batch=5", "partition=p",
                                          "queue=", "namespace=&task="};
    for (unsigned i = 0; i < countof(nothing); i++) {
        api_pop.handle(fake_get(nothing[i], NULL, NULL));
        assert_null(fake_given.pop);
        assert_refused("queue");
    }
}

static void names_that_the_database_cannot_hold_are_refused(void **state)
{
    (void)state;
    char query[600] = "consumerGroup=";
    memset(query + 14, 'x', 256);
    assert_null(pop(query));
    assert_refused("consumerGroup");
    assert_null(pop("subscriptionFrom=\xff"));
    assert_refused("subscriptionFrom");
    api_pop_queue.handle(fake_get("", "%zz", NULL));
    assert_refused("path");
}

static void a_head_request_takes_nothing(void **state)
{
    (void)state;
    struct http_req *req = fake_get("", "q", NULL);
    fake_set_verb(HTTP_HEAD);
    api_pop_queue.handle(req);
    assert_null(fake_given.pop);
    assert_int_equal(fake_reply.status, 405);
}

// ---- segments ----

struct seg {
    struct buf keys, body;
    struct pop_run run;
};

static void seg_add(struct seg *s, const char *txid, const char *payload, const uint8_t *trace,
                    const char *producer, const uint8_t *id)
{
    uint8_t key[16];
    bool is_key = key_of_text(span_of(txid), key);

    if (s->body.len == 0)
        segment_begin(&s->body);
    buf_put_bytes(&s->keys, key, 16);
    segment_put(&s->body, &(struct segment_message){.txid = is_key ? SPAN_NONE : span_of(txid),
                                                    .payload = span_of(payload),
                                                    .trace = trace,
                                                    .producer = span_of(producer),
                                                    .id = id});
}

static struct pop_run seg_slice(struct seg *s, int64_t created_us, unsigned from, unsigned n)
{
    return (struct pop_run){buf_span(&s->keys), buf_span(&s->body), 100, created_us, from, n};
}

static void seg_free(struct seg *s)
{
    buf_free(&s->keys);
    buf_free(&s->body);
}

static void finish(struct pop_op *op, const struct pop_result *result)
{
    op->n_messages = result->n_messages;
    op->render(op, result);
    op->done(op, 0);
}

static void the_answer_has_every_key(void **state)
{
    (void)state;
    struct seg s = {0};
    uint8_t trace[16], own[16], lane[16], lease[16];
    fake_uuid(trace, 0x77), fake_uuid(own, 0x55), fake_uuid(lane, 0xab), fake_uuid(lease, 0xcd);
    seg_add(&s, "skipped", "0", NULL, NULL, NULL);
    seg_add(&s, "01900000-0000-7000-8000-000000000001", "{ \"no\" : 41 }", NULL, NULL, NULL);
    seg_add(&s, "a\"b", "null", trace, "me \"too\"", own);
    seg_add(&s, "skipped", "0", NULL, NULL, NULL);

    struct pop_run run = seg_slice(&s, 1770091506123456, 1, 2);
    struct pop_claim claim = {SPAN("inv\"oices"), SPAN("acct\n7"), lane, 9, 2, 1, 2, &run};
    struct pop_result result = {1, 2, &claim, lease, NULL};
    uint8_t id[16];
    char id_text[37] = "", expected[4096];
    segment_message_id(run.created_us, 1, 9, id);
    id_format_uuid(id, id_text);

    finish(pop("consumerGroup=led\"ger"), &result);
    snprintf(
        expected, sizeof expected,
        "{\"success\":true,\"queue\":\"inv\\\"oices\",\"partition\":\"acct\\n7\","
        "\"partitionId\":\"abababab-abab-abab-abab-abababababab\","
        "\"leaseId\":\"cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd\",\"consumerGroup\":\"led\\\"ger\","
        "\"partitionsClaimed\":1,\"messages\":["
        "{\"id\":\"%s\",\"transactionId\":\"01900000-0000-7000-8000-000000000001\",\"traceId\":"
        "null,"
        "\"data\":{ \"no\" : 41 "
        "},\"producerSub\":null,\"createdAt\":\"2026-02-03T04:05:06.123456Z\","
        "\"partitionId\":\"abababab-abab-abab-abab-abababababab\",\"partition\":\"acct\\n7\","
        "\"leaseId\":\"cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd\",\"consumerGroup\":\"led\\\"ger\","
        "\"queue\":\"inv\\\"oices\",\"retryCount\":2},"
        "{\"id\":\"55555555-5555-5555-5555-555555555555\",\"transactionId\":\"a\\\"b\","
        "\"traceId\":\"77777777-7777-7777-7777-777777777777\",\"data\":null,\"producerSub\":"
        "\"me \\\"too\\\"\","
        "\"createdAt\":\"2026-02-03T04:05:06.123456Z\","
        "\"partitionId\":\"abababab-abab-abab-abab-abababababab\",\"partition\":\"acct\\n7\","
        "\"leaseId\":\"cdcdcdcd-cdcd-cdcd-cdcd-cdcdcdcdcdcd\",\"consumerGroup\":\"led\\\"ger\","
        "\"queue\":\"inv\\\"oices\",\"retryCount\":2}]}",
        id_text);
    assert_int_equal(fake_reply.status, 200);
    assert_string_equal(fake_reply.text, expected);
    assert_int_equal(fake_given.n_given_back, 0);
    seg_free(&s);
}

static unsigned count(const char *needle)
{
    unsigned n = 0;
    for (const char *p = fake_reply.text; (p = strstr(p, needle)); p++)
        n++;
    return n;
}

static void slices_and_claims_keep_their_own_times_and_names(void **state)
{
    (void)state;
    struct seg s = {0};
    uint8_t lane[2][16];
    fake_uuid(lane[0], 1), fake_uuid(lane[1], 2);
    for (unsigned i = 0; i < 4; i++)
        seg_add(&s, "t", "1", NULL, NULL, NULL);
    struct pop_run runs[] = {seg_slice(&s, 1000000, 3, 1), seg_slice(&s, 2000000, 0, 4),
                             seg_slice(&s, 3000000, 0, 2)};
    struct pop_claim claims[] = {{SPAN("qa"), SPAN("pa"), lane[0], 1, 0, 2, 5, runs},
                                 {SPAN("qb"), SPAN("pb"), lane[1], 2, 3, 1, 2, runs + 2}};
    finish(pop(""), &(struct pop_result){2, 7, claims, NULL, NULL});

    assert_int_equal(count("\"createdAt\":\"1970-01-01T00:00:01.000000Z\""), 1);
    assert_int_equal(count("\"createdAt\":\"1970-01-01T00:00:02.000000Z\""), 4);
    assert_int_equal(count("\"createdAt\":\"1970-01-01T00:00:03.000000Z\""), 2);
    assert_int_equal(count("\"queue\":\"qa\",\"retryCount\":0}"), 5);
    assert_int_equal(count("\"queue\":\"qb\",\"retryCount\":3}"), 2);
    assert_int_equal(count("\"leaseId\":\"\""), 8); // acknowledged already
    assert_int_equal(count("\"partitionsClaimed\":2"), 1);
    seg_free(&s);
}

static void a_thousand_large_messages_are_rendered(void **state)
{
    (void)state;
    struct seg s = {0};
    uint8_t lane[16] = {0};
    char payload[2000];
    memset(payload, '1', sizeof payload - 1);
    payload[sizeof payload - 1] = '\0';
    seg_add(&s, "first", "1", NULL, NULL, NULL); // misleads the guess
    for (unsigned i = 1; i < 1000; i++)
        seg_add(&s, "\x01\x02", payload, NULL, "\x03", NULL);
    struct pop_run run = seg_slice(&s, 1, 0, 1000);
    struct pop_claim claim = {SPAN("q"), SPAN("p"), lane, 1, 0, 1, 1000, &run};
    finish(pop(""), &(struct pop_result){1, 1000, &claim, NULL, NULL});
    assert_int_equal(fake_reply.status, 200);
    assert_true(fake_reply.len > 999 * sizeof payload);
    seg_free(&s);
}

static void a_damaged_message_is_set_aside_and_its_neighbours_are_delivered(void **state)
{
    (void)state;
    struct seg s = {0};
    uint8_t lane[16] = {0}, lease[16];
    fake_uuid(lease, 5);
    seg_add(&s, "good", "1", NULL, NULL, NULL);
    seg_add(&s, "cut", "1", NULL, NULL, NULL);
    struct pop_run runs[] = {seg_slice(&s, 1, 0, 2), seg_slice(&s, 2, 0, 1)};
    runs[0].body.len--;
    struct pop_claim claim = {SPAN("q"), SPAN("p"), lane, 1, 0, 2, 3, runs};
    finish(pop(""), &(struct pop_result){1, 3, &claim, lease, NULL});
    assert_int_equal(fake_reply.status, 0); // not before they are set aside
    assert_non_null(fake_given.custom);
    fake_given.custom->done(fake_given.custom, 0, NULL);
    assert_int_equal(fake_reply.status, 200);
    assert_int_equal(count("\"transactionId\":\"good\""), 2);
    assert_int_equal(count("\"transactionId\":\"cut\""), 0);
    assert_int_equal(fake_given.n_given_back, 0);
    seg_free(&s);
}

static void nothing_but_damage_is_204(void **state)
{
    (void)state;
    struct seg s = {0};
    uint8_t lane[16] = {0};
    seg_add(&s, "t", "1", NULL, NULL, NULL);
    struct pop_run run = seg_slice(&s, 1, 0, 1);
    run.keys.len = 0;
    struct pop_claim claim = {SPAN("q"), SPAN("p"), lane, 1, 0, 1, 1, &run};
    finish(pop("autoAck=true"), &(struct pop_result){1, 1, &claim, NULL, NULL});
    assert_non_null(fake_given.custom);
    fake_given.custom->done(fake_given.custom, QE_PG_AWAY, NULL);
    assert_int_equal(fake_reply.status, 204);
    seg_free(&s);
}

static void nothing_found_is_204(void **state)
{
    (void)state;
    struct pop_op *op = pop("");
    op->done(op, 0);
    assert_int_equal(fake_reply.status, 204);
    assert_int_equal(fake_reply.len, 0);
}

static void an_outage_is_204_and_a_mistake_is_not(void **state)
{
    (void)state;
    static const struct {
        int code, status;
    } cases[] = {{QE_PG_GONE, 204},   {QE_PG_AWAY, 204},   {QE_PG_RETRY, 204},
                 {QE_PG_FAILED, 204}, {QE_PG_FULL, 204},   {QE_PG_READ_ONLY, 204},
                 {QE_PG_SHAPE, 204},  {QE_BAD_PARAM, 400}, {QE_BUSY, 429}};
    for (unsigned i = 0; i < countof(cases); i++) {
        struct pop_op *op = pop("");
        op->done(op, cases[i].code);
        assert_int_equal(fake_reply.times, 1);
        assert_int_equal(fake_reply.status, cases[i].status);
    }
}

static void an_early_pop_waits_for_the_end_of_the_start(void **state)
{
    (void)state;
    static const struct {
        int code, status;
    } cases[] = {{0, 503}, {QE_PG_AWAY, 503}, {QE_BAD_PARAM, 400}, {QE_BUSY, 429}};
    for (unsigned i = 0; i < countof(cases); i++) {
        fake_shared.ready = false;
        struct pop_op *op = pop("timeout=60000");
        assert_true(op->wait);
        assert_int_equal(op->timeout_ms, 5000);
        op->done(op, cases[i].code);
        assert_int_equal(fake_reply.status, cases[i].status);
    }
    struct pop_op *op = pop("");
    fake_shared.ready = true;
    op->done(op, 0);
    assert_int_equal(fake_reply.status, 204);

    fake_shared.ready = false;
    op = pop("wait=true&timeout=60000");
    assert_int_equal(op->timeout_ms, 60000);
    op->done(op, QE_PG_AWAY);
    assert_int_equal(fake_reply.status, 204);
}

static void a_client_that_hangs_up_cancels_the_pop(void **state)
{
    (void)state;
    struct pop_op *op = pop("wait=true");
    fake_hang_up();
    assert_ptr_equal(fake_given.cancelled, op);
    assert_int_equal(fake_reply.times, 0);
    op->done(op, UV_ECANCELED);
    assert_int_equal(fake_reply.times, 1); // must be answered all the same
    assert_int_equal(fake_given.n_given_back, 0);
}

static void a_lease_of_a_disconnected_client_is_released(void **state)
{
    (void)state;
    struct seg s = {0};
    uint8_t lane[16] = {0}, lease[16];
    fake_uuid(lease, 5);
    seg_add(&s, "t", "1", NULL, NULL, NULL);
    struct pop_run run = seg_slice(&s, 1, 0, 1);
    struct pop_claim claim = {SPAN("q"), SPAN("p"), lane, 1, 0, 1, 1, &run};

    struct pop_op *op = pop("");
    fake_hang_up();
    finish(op, &(struct pop_result){1, 1, &claim, lease, NULL});
    assert_int_equal(fake_reply.times, 1);
    assert_int_equal(fake_given.n_given_back, 1);
    assert_memory_equal(fake_given.given_back, lease, 16);

    op = pop("autoAck=true");
    fake_hang_up();
    finish(op, &(struct pop_result){1, 1, &claim, NULL, NULL});
    assert_int_equal(fake_reply.times, 1);
    assert_int_equal(fake_given.n_given_back, 0);
    seg_free(&s);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, fake_setup, fake_teardown)
    const struct CMUnitTest tests[] = {
        T(the_defaults_are_those_of_the_worker),
        T(parameters_arrive_and_are_clamped),
        T(each_form_of_a_pop_selects_its_messages),
        T(names_that_the_database_cannot_hold_are_refused),
        T(a_head_request_takes_nothing),
        T(the_answer_has_every_key),
        T(slices_and_claims_keep_their_own_times_and_names),
        T(a_thousand_large_messages_are_rendered),
        T(a_damaged_message_is_set_aside_and_its_neighbours_are_delivered),
        T(nothing_but_damage_is_204),
        T(nothing_found_is_204),
        T(an_outage_is_204_and_a_mistake_is_not),
        T(an_early_pop_waits_for_the_end_of_the_start),
        T(a_client_that_hangs_up_cancels_the_pop),
        T(a_lease_of_a_disconnected_client_is_released),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
