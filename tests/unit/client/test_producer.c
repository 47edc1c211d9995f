// Tests of the producer's buffer: batches, limits, retries, closing.
#include "queen/producer.h"

#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "fake_server.h"
#include "until.h"

static struct queen_error err;

// Answers as Queen does, and remembers what came.
struct book {
    _Atomic int fail; // answer so often with 503
    _Atomic bool hold;
    char ids[200][40]; // in the order stored, repeated ones once
    unsigned n_ids;
    unsigned sizes[200]; // of each request
    unsigned n_requests;
};

static void note(struct book *b, const char *id)
{
    for (unsigned i = 0; i < b->n_ids; i++)
        if (strncmp(b->ids[i], id, 36) == 0)
            return;
    memcpy(b->ids[b->n_ids++], id, 36);
}

static struct fake_answer store(const struct fake_request *r, void *ctx)
{
    static char text[70000];
    struct book *b = ctx;
    unsigned n = 0;
    size_t len = 1;

    wait_until(!b->hold);
    strcpy(text, "[");
    for (const char *at = r->body; (at = strstr(at, "\"transactionId\":\"")); n++) {
        at += 17;
        note(b, at);
        len += (size_t)snprintf(text + len, sizeof text - len,
                                "%s{\"status\":\"queued\",\"transaction_id\":\"%.36s\"}",
                                n > 0 ? "," : "", at);
    }
    snprintf(text + len, sizeof text - len, "]");
    b->sizes[b->n_requests++] = n;
    if (b->fail > 0) { // after it was stored: the answer is what gets lost
        b->fail--;
        return (struct fake_answer){.status = 503};
    }
    if (n > 1 && strstr(r->body, "poison"))
        return (struct fake_answer){.status = 400, .body = "{\"error\":\"item 1: bad\"}"};
    if (strstr(r->body, "poison"))
        return (struct fake_answer){.status = 400, .body = "{\"error\":\"item 0: bad\"}"};
    return (struct fake_answer){.status = 201, .body = text};
}

struct rig {
    struct book book;
    struct fake_server *server;
    struct queen_client *client;
    struct queen_producer *producer;
    _Atomic unsigned n_told, n_failed;
    int last_tag;
    bool in_order;
};

static void on_result(const struct queen_push_result *result, const struct queen_error *e,
                      void *tag, void *ctx)
{
    struct rig *g = ctx;

    (void)result;
    if (*(int *)tag < g->last_tag)
        g->in_order = false;
    g->last_tag = *(int *)tag;
    g->n_told++;
    g->n_failed += e->code != 0;
    state_changed();
}

static int tags[200];

static struct rig *open_rig(struct queen_producer_options o)
{
    static struct rig rig;

    memset(&rig, 0, sizeof rig);
    rig.in_order = true;
    rig.server = fake_server_new(store, &rig.book);
    rig.client = queen_client_new(&(struct queen_options){.url = fake_server_url(rig.server),
                                                          .attempts = 1,
                                                          .retry_delay_ms = 5},
                                  &err);
    o.on_result = on_result;
    o.ctx = &rig;
    rig.producer = queen_producer_new(rig.client, &o, &err);
    assert_non_null(rig.producer);
    for (int i = 0; i < 200; i++)
        tags[i] = i;
    return &rig;
}

static void close_rig(struct rig *g)
{
    queen_producer_free(g->producer);
    queen_client_free(g->client);
    fake_server_free(g->server);
}

static void let_go(struct book *b)
{
    b->hold = false;
    state_changed();
}

static int send_number(struct rig *g, int i)
{
    char payload[32];

    snprintf(payload, sizeof payload, "{\"n\":%d}", i);
    return queen_producer_send(
        g->producer, &(struct queen_message){.queue = "q", .payload = payload}, &tags[i], &err);
}

static void messages_leave_in_batches_and_in_order(void **state)
{
    (void)state;
    struct rig *g =
        open_rig((struct queen_producer_options){.batch_count = 10, .linger_ms = 60000});

    for (int i = 0; i < 35; i++)
        assert_int_equal(send_number(g, i), 0);
    assert_int_equal(queen_producer_flush(g->producer, 5000, &err), 0);
    assert_int_equal(g->n_told, 35);
    assert_true(g->in_order);
    assert_int_equal(g->book.n_ids, 35);
    for (unsigned i = 0; i < g->book.n_requests; i++)
        assert_in_range(g->book.sizes[i], 1, 10);
    assert_in_range(g->book.n_requests, 4, 8);
    close_rig(g);
}

static void one_message_does_not_wait_longer_than_it_lingers(void **state)
{
    (void)state;
    struct rig *g = open_rig((struct queen_producer_options){.linger_ms = 20});

    assert_int_equal(send_number(g, 0), 0);
    wait_until(g->n_told == 1);
    close_rig(g);
}

static void bytes_make_a_batch_too(void **state)
{
    (void)state;
    struct rig *g =
        open_rig((struct queen_producer_options){.batch_bytes = 300, .linger_ms = 60000});

    for (int i = 0; i < 9; i++)
        assert_int_equal(send_number(g, i), 0);
    assert_int_equal(queen_producer_flush(g->producer, 5000, &err), 0);
    for (unsigned i = 0; i < g->book.n_requests; i++)
        assert_in_range(g->book.sizes[i], 1, 4);
    assert_int_equal(g->book.n_ids, 9);
    close_rig(g);
}

static void a_full_buffer_refuses_when_asked_to(void **state)
{
    (void)state;
    struct rig *g = open_rig((struct queen_producer_options){
        .batch_count = 2, .max_count = 3, .refuse = true, .linger_ms = 60000});

    g->book.hold = true;
    for (int i = 0; i < 3; i++)
        assert_int_equal(send_number(g, i), 0);
    assert_int_equal(send_number(g, 3), QUEEN_E_FULL);
    assert_true(err.retryable);
    let_go(&g->book);
    assert_int_equal(queen_producer_flush(g->producer, 5000, &err), 0);
    assert_int_equal(send_number(g, 3), 0);
    close_rig(g);
    assert_int_equal(g->n_told, 4);
}

enum { ROOM = 4 };

static _Atomic int sending;

static void *release_when_full(void *arg)
{
    wait_until(sending == ROOM);
    let_go(arg);
    return NULL;
}

static void a_full_buffer_makes_others_wait_otherwise(void **state)
{
    (void)state;
    struct rig *g = open_rig(
        (struct queen_producer_options){.batch_count = 2, .max_count = ROOM, .linger_ms = 10});
    struct queen_producer_stats stats;
    pthread_t thread;

    g->book.hold = true;
    pthread_create(&thread, NULL, release_when_full, &g->book);
    for (int i = 0; i < 50; i++) {
        sending = i;
        state_changed();
        assert_int_equal(send_number(g, i), 0);
        assert_true(i < ROOM || !g->book.hold); // nobody gets past the fourth before
        queen_producer_stats(g->producer, &stats);
        assert_in_range(stats.waiting, 0, ROOM);
    }
    pthread_join(thread, NULL);
    close_rig(g);
    assert_int_equal(g->n_told, 50);
    assert_int_equal(g->book.n_ids, 50);
}

static void what_fails_for_now_is_sent_again_with_the_same_ids(void **state)
{
    (void)state;
    struct rig *g =
        open_rig((struct queen_producer_options){.batch_count = 5, .linger_ms = 10});

    g->book.fail = 3;
    for (int i = 0; i < 12; i++)
        assert_int_equal(send_number(g, i), 0);
    assert_int_equal(queen_producer_flush(g->producer, 10000, &err), 0);
    assert_int_equal(g->n_told, 12);
    assert_int_equal(g->n_failed, 0);
    assert_true(g->in_order);
    assert_int_equal(g->book.n_ids, 12);
    close_rig(g);
}

static void a_bad_message_does_not_take_others_with_it(void **state)
{
    (void)state;
    struct rig *g =
        open_rig((struct queen_producer_options){.batch_count = 5, .linger_ms = 60000});
    struct queen_message bad = {.queue = "q", .payload = "\"poison\""};

    assert_int_equal(send_number(g, 0), 0);
    assert_int_equal(queen_producer_send(g->producer, &bad, &tags[1], &err), 0);
    for (int i = 2; i < 5; i++)
        assert_int_equal(send_number(g, i), 0);
    assert_int_equal(queen_producer_flush(g->producer, 5000, &err), 0);
    assert_int_equal(g->n_told, 5);
    assert_int_equal(g->n_failed, 1);
    struct queen_producer_stats stats;
    queen_producer_stats(g->producer, &stats);
    assert_int_equal(stats.stored, 4);
    assert_int_equal(stats.failed, 1);
    assert_int_equal(stats.waiting, 0);
    close_rig(g);
}

static void what_no_server_took_before_the_end_is_told(void **state)
{
    (void)state;
    struct rig *g =
        open_rig((struct queen_producer_options){.linger_ms = 5, .close_timeout_ms = 50});

    g->book.fail = 1000000;
    for (int i = 0; i < 7; i++)
        assert_int_equal(send_number(g, i), 0);
    assert_int_equal(queen_producer_flush(g->producer, 20, &err), QUEEN_E_TIMEOUT);
    close_rig(g);
    assert_int_equal(g->n_told, 7);
    assert_int_equal(g->n_failed, 7);
}

static void what_is_no_message_is_not_accepted(void **state)
{
    (void)state;
    struct rig *g = open_rig((struct queen_producer_options){0});

    assert_int_equal(queen_producer_send(g->producer, &(struct queen_message){0}, NULL, &err),
                     QUEEN_E_ARGUMENT);
    assert_int_equal(queen_producer_send(g->producer,
                                         &(struct queen_message){.queue = "q", .payload = "{"},
                                         NULL, &err),
                     QUEEN_E_ARGUMENT);
    close_rig(g);
    assert_int_equal(g->n_told, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_leave_in_batches_and_in_order),
        cmocka_unit_test(one_message_does_not_wait_longer_than_it_lingers),
        cmocka_unit_test(bytes_make_a_batch_too),
        cmocka_unit_test(a_full_buffer_refuses_when_asked_to),
        cmocka_unit_test(a_full_buffer_makes_others_wait_otherwise),
        cmocka_unit_test(what_fails_for_now_is_sent_again_with_the_same_ids),
        cmocka_unit_test(a_bad_message_does_not_take_others_with_it),
        cmocka_unit_test(what_no_server_took_before_the_end_is_told),
        cmocka_unit_test(what_is_no_message_is_not_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
