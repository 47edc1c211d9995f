// Tests of the consumer: what is acknowledged how, limits, renewal, stopping.
#include "consumer_fixture.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <uv.h>

#include "base/clock.h"

static enum queen_verdict handle(struct queen_job *job, void *ctx)
{
    ((struct rig *)ctx)->n_handled += (unsigned)queen_job_batch(job)->n;
    return QUEEN_DONE;
}

static void everything_is_handled_and_acknowledged(void **state)
{
    (void)state;
    struct rig *g = open_rig(50);
    struct queen_consumer_options o = options(g, handle);

    o.concurrency = 3;
    o.idle_ms = 500;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    assert_int_equal(queen_consumer_wait(c, &err), 0);
    assert_int_equal(queen_consumer_count(c), 50);
    assert_int_equal(g->n_handled, 50);
    assert_int_equal(g->store.n_acked, 50);
    assert_int_equal(g->n_errors, 0);
    queen_consumer_free(c);
    close_rig(g);
}

// ---- idle ----

enum { MINUTE_MS = 60 * 1000, MINUTE_US = MINUTE_MS * 1000 };

static enum queen_verdict take_two_minutes(struct queen_job *job, void *ctx)
{
    clock_advance_us(2 * MINUTE_US);
    return handle(job, ctx);
}

static void the_time_of_a_handler_is_not_idle_time(void **state)
{
    (void)state;
    clock_freeze(1000, 1000);
    struct rig *g = open_rig(12);
    struct queen_consumer_options o = options(g, take_two_minutes);

    o.idle_ms = MINUTE_MS;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    wait_until(g->store.n_acked >= 12);
    clock_advance_us(MINUTE_US);
    assert_int_equal(queen_consumer_wait(c, &err), 0); // by itself
    assert_int_equal(g->n_handled, 12);
    queen_consumer_free(c);
    close_rig(g);
    clock_release();
}

static enum queen_verdict linger(struct queen_job *job, void *ctx)
{
    struct rig *g = ctx;

    g->n_lingering++;
    state_changed();
    wait_until(g->release);
    g->n_lost += queen_job_is_lost(job);
    return QUEEN_DONE;
}

static void a_consumer_is_not_idle_while_one_of_its_handlers_works(void **state)
{
    (void)state;
    clock_freeze(1000, 1000);
    struct rig *g = open_rig(4);
    struct queen_consumer_options o = options(g, linger);

    o.idle_ms = MINUTE_MS;
    o.concurrency = 2;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    wait_until(g->store.n_pops >= 2);
    clock_advance_us(2 * MINUTE_US);
    wait_until(g->store.n_pops >= 5); // the other one goes on asking
    let_go(&g->release, true);
    wait_until(g->store.n_acked >= 4);
    clock_advance_us(MINUTE_US);
    assert_int_equal(queen_consumer_wait(c, &err), 0);
    queen_consumer_free(c);
    close_rig(g);
    clock_release();
}

static void no_more_than_the_limit_is_taken(void **state)
{
    (void)state;
    struct rig *g = open_rig(50);
    struct queen_consumer_options o = options(g, handle);

    o.concurrency = 3;
    o.limit = 10;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    assert_int_equal(queen_consumer_wait(c, &err), 0);
    queen_consumer_free(c);
    assert_int_equal(g->n_handled, 10);
    assert_int_equal(g->store.left, 40);
    close_rig(g);
}

static void a_server_that_gives_too_many_does_not_remove_the_limit(void **state)
{
    (void)state;
    struct rig *g = open_rig(60);
    struct queen_consumer_options o = options(g, handle);

    g->store.too_many = 3;
    o.limit = 10;    // 4 + 3, then 3 + 3
    o.idle_ms = 500; // or it would never end
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    assert_int_equal(queen_consumer_wait(c, &err), 0);
    queen_consumer_free(c);
    assert_int_equal(g->n_handled, 13);
    close_rig(g);
}

static enum queen_verdict judge(struct queen_job *job, void *ctx)
{
    (void)ctx;
    assert_int_equal(queen_job_batch(job)->n, 4);
    assert_int_equal(queen_job_batch(job)->items[1].retry_count, 2);
    assert_memory_equal(queen_job_batch(job)->items[1].data, "1", 1);
    queen_job_settle(job, 0, QUEEN_ACK_COMPLETED, NULL);
    queen_job_settle_code(job, 0, "UNUSED"); // a completed message has no error code
    queen_job_settle(job, 1, QUEEN_ACK_DLQ, "hopeless \"case\"");
    queen_job_settle_code(job, 1, "BAD_CARD");
    queen_job_settle_code(job, 9, "no such message");
    queen_job_settle(job, 9, QUEEN_ACK_DLQ, "no such message");
    queen_job_error(job, "the rest");
    queen_job_error_code(job, "TIMEOUT");
    return QUEEN_FAIL;
}

static void each_message_gets_its_own_verdict(void **state)
{
    (void)state;
    struct rig *g = open_rig(4);
    struct queen_consumer_options o = options(g, judge);

    o.limit = 4;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    assert_int_equal(queen_consumer_wait(c, &err), 0);
    queen_consumer_free(c);
    assert_string_equal(g->store.acks,
                        "{\"consumerGroup\":\"g\",\"acknowledgments\":["
                        "{\"transactionId\":\"t0\",\"partitionId\":\"p\",\"leaseId\":\"0\","
                        "\"status\":\"completed\"},"
                        "{\"transactionId\":\"t1\",\"partitionId\":\"p\",\"leaseId\":\"0\","
                        "\"error\":\"hopeless \\\"case\\\"\",\"errorCode\":\"BAD_CARD\","
                        "\"status\":\"dlq\"},"
                        "{\"transactionId\":\"t2\",\"partitionId\":\"p\",\"leaseId\":\"0\","
                        "\"error\":\"the rest\",\"errorCode\":\"TIMEOUT\","
                        "\"status\":\"failed\"},"
                        "{\"transactionId\":\"t3\",\"partitionId\":\"p\",\"leaseId\":\"0\","
                        "\"error\":\"the rest\",\"errorCode\":\"TIMEOUT\","
                        "\"status\":\"failed\"}]}");
    close_rig(g);
}

static void leases_of_long_work_are_extended_until_they_are_lost(void **state)
{
    (void)state;
    struct rig *g = open_rig(2);
    struct queen_consumer_options o = options(g, linger);

    o.pop.batch = 1;
    o.limit = o.concurrency = 2;
    o.renew_every_ms = 10;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    wait_until(g->store.n_extends[0] >= 3 && g->store.n_extends[1] >= 3);
    assert_int_equal(g->n_errors, 0);
    g->store.lost = true;
    wait_until(g->n_errors >= 1);
    unsigned lost = g->store.n_extends[0], other = g->store.n_extends[1];
    wait_until(g->store.n_extends[1] >= other + 5);
    assert_int_equal(g->store.n_extends[0], lost); // what is lost is lost
    let_go(&g->release, true);
    queen_consumer_free(c);
    assert_int_equal(g->n_lost, 1);
    close_rig(g);
}

static void a_stop_waits_for_handlers_and_acknowledges_them(void **state)
{
    (void)state;
    struct rig *g = open_rig(8);
    struct queen_consumer_options o = options(g, linger);

    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    wait_until(g->n_lingering >= 1);
    queen_consumer_stop(c);
    let_the_client_catch_up(g);
    assert_int_equal(g->store.n_acked, 0);
    let_go(&g->release, true);
    queen_consumer_free(c);
    assert_int_equal(g->store.n_acked, 4);
    assert_int_equal(g->store.n_retried, 0);
    assert_int_equal(g->store.left, 4);
    close_rig(g);
}

// The answer is on its way already when the pop is given up: nobody will handle its messages.
static void messages_that_come_after_the_stop_are_given_back(void **state)
{
    (void)state;
    struct rig *g = open_rig(4);
    struct queen_consumer_options o = options(g, handle);

    g->store.hold = true;
    g->store.deaf = true; // the connection stays, but our side of it is closed
    o.no_wait = false;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    wait_until(g->store.n_pops >= 1);
    queen_consumer_stop(c);
    let_the_client_catch_up(g);
    let_go(&g->store.hold, false);
    queen_consumer_free(c);
    assert_int_equal(g->n_handled, 0);
    assert_int_equal(g->store.n_retried, 4);
    assert_int_equal(g->n_errors, 0);
    close_rig(g);
}

// A pop that was given up is not sent to another server, whatever the first one answers.
static void a_pop_that_was_given_up_is_not_tried_elsewhere(void **state)
{
    (void)state;
    struct rig *g = open_rig(4);
    struct store other = {0};
    struct fake_server *second = fake_server_new(serve, &other);
    char urls[200];

    snprintf(urls, sizeof urls, "%s,%s", fake_server_url(g->server), fake_server_url(second));
    queen_client_free(g->client);
    g->client = queen_client_new(
        &(struct queen_options){.url = urls, .strategy = QUEEN_ROUND_ROBIN}, &err);
    g->store.hold = true;
    g->store.pop_status = 503;
    struct queen_consumer_options o = options(g, handle);
    o.no_wait = false;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    wait_until(g->store.n_pops >= 1);
    queen_consumer_stop(c);
    let_the_client_catch_up(g);
    let_go(&g->store.hold, false);
    queen_consumer_free(c);
    assert_int_equal(other.n_pops, 0);
    close_rig(g);
    fake_server_free(second);
}

// libuv looks names up on threads that all loops of a process share; there is one here (main).
static _Atomic bool pool_is_busy, pool_may_go_on;

static void hold_pool(uv_work_t *work)
{
    (void)work;
    let_go(&pool_is_busy, true);
    wait_until(pool_may_go_on);
}

static void on_pool_free(uv_work_t *work, int status) { (void)work, (void)status; }

static void a_pop_that_was_not_sent_before_the_stop_is_never_sent(void **state)
{
    (void)state;
    struct rig *g = open_rig(4);
    struct queen_consumer_options o = options(g, handle);
    uv_work_t work;
    uv_loop_t loop;

    uv_loop_init(&loop);
    uv_queue_work(&loop, &work, hold_pool, on_pool_free);
    wait_until(pool_is_busy);
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    let_the_client_catch_up(g);
    queen_consumer_stop(c); // its server is being looked up
    let_the_client_catch_up(g);
    let_go(&pool_may_go_on, true);
    queen_consumer_free(c);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&loop), 0);
    close_rig(g);
    assert_int_equal(g->store.n_pops, 0);
}

static void an_error_that_no_retry_cures_ends_it(void **state)
{
    (void)state;
    struct rig *g = open_rig(8);
    struct queen_consumer_options o = options(g, handle);

    g->store.pop_status = 400;
    o.concurrency = 2;
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    assert_int_equal(queen_consumer_wait(c, &err), QUEEN_E_REFUSED);
    assert_string_equal(err.text, "no");
    queen_consumer_free(c);
    close_rig(g);
}

// A thread is kept inside of queen_consumer_wait() by a signal whose handler does not return.
// Until it is out, the consumer's memory must stay.
static _Atomic pid_t waiter_tid;
static _Atomic bool is_caught, is_freed;
static int release_pipe[2];

static void stay(int number)
{
    char byte;

    (void)number;
    is_caught = true;
    (void)!read(release_pipe[0], &byte, 1);
}

static void *wait_for_end(void *arg)
{
    waiter_tid = gettid();
    (void)queen_consumer_wait(arg, NULL);
    return NULL;
}

static bool is_asleep(pid_t tid)
{
    char path[64], text[256] = "";

    snprintf(path, sizeof path, "/proc/self/task/%d/stat", (int)tid);
    FILE *f = fopen(path, "re");
    if (f) {
        (void)!fgets(text, sizeof text, f);
        fclose(f);
    }
    const char *state = strrchr(text, ')'); // after the name of the program
    return state && strncmp(state, ") S", 3) == 0;
}

static void *free_consumer(void *arg)
{
    queen_consumer_free(arg);
    is_freed = true;
    return NULL;
}

static void freeing_waits_for_threads_that_wait_for_the_end(void **state)
{
    (void)state;
    struct rig *g = open_rig(0);
    struct queen_consumer_options o = options(g, handle);
    struct queen_consumer *c = queen_consumer_new(g->client, &o, &err);
    pthread_t waiter, closer;

    assert_int_equal(pipe(release_pipe), 0);
    sigaction(SIGUSR1, &(struct sigaction){.sa_handler = stay, .sa_flags = SA_RESTART}, NULL);
    pthread_create(&waiter, NULL, wait_for_end, c);
    while (waiter_tid == 0 || !is_asleep(waiter_tid))
        usleep(1000);
    pthread_kill(waiter, SIGUSR1);
    while (!is_caught)
        usleep(1000);
    pthread_create(&closer, NULL, free_consumer, c);
    for (int i = 0; !is_freed && i < 30; i++)
        usleep(10000);
    assert_false(is_freed);
    assert_int_equal(write(release_pipe[1], "x", 1), 1);
    pthread_join(waiter, NULL);
    pthread_join(closer, NULL);
    close(release_pipe[0]);
    close(release_pipe[1]);
    close_rig(g);
}

static void a_consumer_without_a_handler_is_refused(void **state)
{
    (void)state;
    struct rig *g = open_rig(0);
    struct queen_consumer_options o = options(g, NULL);

    assert_null(queen_consumer_new(g->client, &o, &err));
    assert_int_equal(err.code, QUEEN_E_ARGUMENT);
    close_rig(g);
}

// ---- on a loop ----

struct on_loop {
    struct rig *rig;
    struct queen_client *client;
    struct queen_consumer *consumer;
    struct queen_job *job;
    uv_timer_t timer;
    bool closed;
};

static void on_client_closed(void *ctx) { ((struct on_loop *)ctx)->closed = true; }

static void on_consumer_closed(void *ctx)
{
    struct on_loop *t = ctx;

    uv_close((uv_handle_t *)&t->timer, NULL);
    queen_client_close(t->client, on_client_closed, t);
}

static void on_work_done(uv_timer_t *timer)
{
    struct on_loop *t = timer->data;

    queen_job_finish(t->job, QUEEN_DONE);
}

static enum queen_verdict start_work(struct queen_job *job, void *ctx)
{
    struct on_loop *t = ctx;

    t->job = job;
    t->rig->n_handled += (unsigned)queen_job_batch(job)->n;
    uv_timer_start(&t->timer, on_work_done, 5, 0);
    return QUEEN_LATER;
}

static void on_loop_stopped(void *ctx)
{
    struct on_loop *t = ctx;

    queen_consumer_close(t->consumer, on_consumer_closed, t);
}

static void on_a_loop_handlers_finish_later(void **state)
{
    (void)state;
    struct rig *g = open_rig(10);
    struct on_loop t = {.rig = g};
    uv_loop_t loop;

    uv_loop_init(&loop);
    uv_timer_init(&loop, &t.timer);
    t.timer.data = &t;
    t.client = queen_client_new(
        &(struct queen_options){.url = fake_server_url(g->server), .loop = &loop}, &err);
    struct queen_consumer_options o = options(g, start_work);
    o.limit = 10;
    o.ctx = &t;
    o.on_error = NULL;
    o.on_stopped = on_loop_stopped;
    t.consumer = queen_consumer_new(t.client, &o, &err);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(t.closed);
    assert_int_equal(uv_loop_close(&loop), 0);
    assert_int_equal(g->n_handled, 10);
    assert_int_equal(g->store.n_acked, 10);
    close_rig(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_is_handled_and_acknowledged),
        cmocka_unit_test(the_time_of_a_handler_is_not_idle_time),
        cmocka_unit_test(a_consumer_is_not_idle_while_one_of_its_handlers_works),
        cmocka_unit_test(no_more_than_the_limit_is_taken),
        cmocka_unit_test(a_server_that_gives_too_many_does_not_remove_the_limit),
        cmocka_unit_test(each_message_gets_its_own_verdict),
        cmocka_unit_test(leases_of_long_work_are_extended_until_they_are_lost),
        cmocka_unit_test(a_stop_waits_for_handlers_and_acknowledges_them),
        cmocka_unit_test(messages_that_come_after_the_stop_are_given_back),
        cmocka_unit_test(a_pop_that_was_given_up_is_not_tried_elsewhere),
        cmocka_unit_test(a_pop_that_was_not_sent_before_the_stop_is_never_sent),
        cmocka_unit_test(an_error_that_no_retry_cures_ends_it),
        cmocka_unit_test(freeing_waits_for_threads_that_wait_for_the_end),
        cmocka_unit_test(a_consumer_without_a_handler_is_refused),
        cmocka_unit_test(on_a_loop_handlers_finish_later),
    };
    setenv("UV_THREADPOOL_SIZE", "1", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
