// Tests of the producer's buffer: batches, limits, retries, closing.
#include "producer_int.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_server.h"
#include "until.h"

static struct queen_error err;

// Answers as Queen does, and remembers what came.
struct book {
    _Atomic int fail; // answer so often with 503
    _Atomic bool hold;
    _Atomic bool silent; // no request is answered
    unsigned pause_ms;   // before the second request is answered
    char ids[200][40];   // in the order stored, repeated ones once
    unsigned n_ids;
    unsigned sizes[200]; // of each request
    unsigned n_requests;
    _Atomic unsigned n_begun, n_silent;
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

    b->n_begun++;
    state_changed();
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
    if (b->silent) {
        b->n_silent++;
        state_changed();
        return (struct fake_answer){.status = FAKE_SILENCE};
    }
    if (b->n_requests == 2 && b->pause_ms > 0)
        usleep(b->pause_ms * 1000);
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
    _Atomic unsigned n_told, n_failed, n_closed; // n_closed: failed with QUEEN_E_CLOSED
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
    g->n_closed += e->code == QUEEN_E_CLOSED;
    state_changed();
}

static int tags[200];

static struct rig *open_slow_rig(struct queen_producer_options o, unsigned retry_delay_ms)
{
    static struct rig rig;

    memset(&rig, 0, sizeof rig);
    rig.in_order = true;
    rig.server = fake_server_new(store, &rig.book);
    rig.client = queen_client_new(&(struct queen_options){.url = fake_server_url(rig.server),
                                                          .attempts = 1,
                                                          .retry_delay_ms = retry_delay_ms},
                                  &err);
    o.on_result = on_result;
    o.ctx = &rig;
    rig.producer = queen_producer_new(rig.client, &o, &err);
    assert_non_null(rig.producer);
    for (int i = 0; i < 200; i++)
        tags[i] = i;
    return &rig;
}

static struct rig *open_rig(struct queen_producer_options o) { return open_slow_rig(o, 5); }

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

static void a_full_buffer_refuses_if_configured(void **state)
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

static void a_temporary_failure_is_sent_again_with_the_same_ids(void **state)
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

static void messages_that_no_server_accepted_before_the_end_are_reported(void **state)
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

// ---- flushing with several requests in flight ----

static struct queen_producer_stats when_flushed;
static _Atomic bool flushed;

static void on_flushed(const struct queen_error *e, void *ctx)
{
    assert_int_equal(e->code, 0);
    queen_producer_stats(((struct rig *)ctx)->producer, &when_flushed);
    flushed = true;
    state_changed();
}

// Both requests fail, the later one later: its message must not get in front of the first.
static void a_flush_is_over_when_its_messages_are_stored(void **state)
{
    (void)state;
    struct rig *g = open_slow_rig(
        (struct queen_producer_options){.batch_count = 1, .max_in_flight = 2}, 400);

    g->book.fail = 2;
    g->book.pause_ms = 150;
    g->book.hold = true;
    flushed = false;
    assert_int_equal(send_number(g, 0), 0);
    wait_until(g->book.n_begun == 1);
    queen_producer_flush_start(g->producer, on_flushed, g);
    assert_int_equal(send_number(g, 1), 0);
    let_go(&g->book);
    wait_until(flushed);
    assert_in_range(when_flushed.stored, 1, 2);
    assert_int_equal(queen_producer_flush(g->producer, 5000, &err), 0);
    assert_int_equal(g->n_told, 2);
    close_rig(g);
}

// ---- closing ----

static unsigned seconds_since(const struct timespec *begin)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (unsigned)(now.tv_sec - begin->tv_sec);
}

// The request would be given up after 30 s by itself.
static void closing_does_not_wait_for_a_silent_server(void **state)
{
    (void)state;
    struct rig *g = open_rig((struct queen_producer_options){
        .batch_count = 2, .max_in_flight = 2, .close_timeout_ms = 50});
    struct timespec begin;

    g->book.silent = true;
    for (int i = 0; i < 5; i++)
        assert_int_equal(send_number(g, i), 0);
    wait_until(g->book.n_silent == 2);
    clock_gettime(CLOCK_MONOTONIC, &begin);
    queen_producer_free(g->producer);
    assert_in_range(seconds_since(&begin), 0, 15);
    assert_int_equal(g->n_told, 5);
    assert_int_equal(g->n_closed, 5);
    queen_client_free(g->client);
    fake_server_free(g->server);
}

static void messages_refused_in_a_batch_are_not_sent_alone_after_the_end(void **state)
{
    (void)state;
    struct rig *g =
        open_rig((struct queen_producer_options){.batch_count = 5, .close_timeout_ms = 50});
    struct queen_message bad = {.queue = "q", .payload = "\"poison\""};

    g->book.hold = true;
    for (int i = 0; i < 4; i++)
        assert_int_equal(send_number(g, i), 0);
    assert_int_equal(queen_producer_send(g->producer, &bad, &tags[4], &err), 0);
    queen_producer_free(g->producer);
    assert_int_equal(g->n_closed, 5);
    let_go(&g->book);
    queen_client_free(g->client);
    fake_server_free(g->server);
    assert_in_range(g->book.n_requests, 0, 1);
}

// A thread inside of queen_producer_send() is kept there by a signal whose handler does not
// return.  Until it is out, the producer's memory must stay.
static _Atomic bool is_caught;
static _Atomic int sender_rc;
static int release_pipe[2];

static void stay(int number)
{
    char byte;

    (void)number;
    is_caught = true;
    (void)!read(release_pipe[0], &byte, 1);
}

static void *send_one_more(void *arg)
{
    sender_rc = send_number(arg, 2);
    return NULL;
}

// It has counted itself and given the lock back: it waits for room.
static bool one_waits_for_room(struct queen_producer *p)
{
    pthread_mutex_lock(&p->lock);
    bool waits = p->n_inside == 1;
    pthread_mutex_unlock(&p->lock);
    return waits;
}

static _Atomic bool is_freed;

static void *free_producer(void *arg)
{
    queen_producer_free(arg);
    is_freed = true;
    return NULL;
}

static void closing_waits_for_threads_that_wait_for_room(void **state)
{
    (void)state;
    struct rig *g = open_rig((struct queen_producer_options){
        .batch_count = 2, .max_count = 2, .close_timeout_ms = 20});
    pthread_t sender, closer;

    assert_int_equal(pipe(release_pipe), 0);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = stay, .sa_flags = SA_RESTART}, NULL);
    g->book.silent = true;
    for (int i = 0; i < 2; i++)
        assert_int_equal(send_number(g, i), 0);
    pthread_create(&sender, NULL, send_one_more, g);
    while (!one_waits_for_room(g->producer))
        usleep(1000);
    pthread_kill(sender, SIGUSR1);
    while (!is_caught)
        usleep(1000);
    pthread_create(&closer, NULL, free_producer, g->producer);
    for (int i = 0; !is_freed && i < 30; i++)
        usleep(10000);
    assert_false(is_freed);
    assert_int_equal(write(release_pipe[1], "x", 1), 1);
    pthread_join(sender, NULL);
    pthread_join(closer, NULL);
    assert_int_equal(sender_rc, QUEEN_E_CLOSED);
    assert_int_equal(g->n_closed, 2);
    queen_client_free(g->client);
    fake_server_free(g->server);
    close(release_pipe[0]);
    close(release_pipe[1]);
}

static void an_invalid_message_is_not_accepted(void **state)
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
        cmocka_unit_test(a_full_buffer_refuses_if_configured),
        cmocka_unit_test(a_full_buffer_makes_others_wait_otherwise),
        cmocka_unit_test(a_temporary_failure_is_sent_again_with_the_same_ids),
        cmocka_unit_test(a_bad_message_does_not_take_others_with_it),
        cmocka_unit_test(messages_that_no_server_accepted_before_the_end_are_reported),
        cmocka_unit_test(a_flush_is_over_when_its_messages_are_stored),
        cmocka_unit_test(closing_does_not_wait_for_a_silent_server),
        cmocka_unit_test(messages_refused_in_a_batch_are_not_sent_alone_after_the_end),
        cmocka_unit_test(closing_waits_for_threads_that_wait_for_room),
        cmocka_unit_test(an_invalid_message_is_not_accepted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
