// mailbox.c: order, wake-ups, closing, and several threads at once.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "base/attrs.h"
#include "net/mailbox.h"

struct note {
    struct mailbox_item item;
    unsigned thread, number;
};

enum { N_THREADS = 4, N_NOTES = 5000 };

static uv_loop_t loop;
static struct mailbox box;
static unsigned next_number[N_THREADS + 1];
static unsigned n_delivered;
static bool was_closed;

static void on_note(struct mailbox_item *item)
{
    struct note *n = container_of(item, struct note, item);

    assert_int_equal(n->number, next_number[n->thread]++);
    n_delivered++;
    free(n);
}

static struct note *note(unsigned thread, unsigned number)
{
    struct note *n = calloc(1, sizeof *n);
    n->item.deliver = on_note;
    n->thread = thread;
    n->number = number;
    return n;
}

static void on_closed(void *ctx)
{
    (void)ctx;
    was_closed = true;
}

static int setup(void **state)
{
    (void)state;
    memset(next_number, 0, sizeof next_number);
    n_delivered = 0;
    was_closed = false;
    uv_loop_init(&loop);
    return mailbox_open(&box, &loop);
}

static void close_box(void)
{
    mailbox_close(&box, on_closed, NULL);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(was_closed);
}

static int teardown(void **state)
{
    (void)state;
    mailbox_deinit(&box);
    return uv_loop_close(&loop);
}

static void notes_arrive_in_order_and_not_inside_post(void **state)
{
    (void)state;
    for (unsigned i = 0; i < 10; i++)
        assert_int_equal(mailbox_post(&box, &note(0, i)->item), 0);
    assert_int_equal(n_delivered, 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(n_delivered, 10);
    close_box();
}

static void draining_needs_no_loop(void **state)
{
    (void)state;
    assert_int_equal(mailbox_post(&box, &note(0, 0)->item), 0);
    mailbox_drain_now(&box);
    assert_int_equal(n_delivered, 1);
    assert_int_equal(mailbox_post(&box, &note(0, 1)->item), 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(n_delivered, 2);
    close_box();
}

static void on_note_that_drains(struct mailbox_item *item)
{
    struct note *n = container_of(item, struct note, item);
    unsigned number = n->number;

    on_note(item);
    assert_int_equal(mailbox_post(&box, &note(0, number + 2)->item), 0);
    mailbox_drain_now(&box);
}

static void a_drain_inside_a_drain_keeps_the_order(void **state)
{
    (void)state;
    struct note *first = note(0, 0);
    first->item.deliver = on_note_that_drains;
    assert_int_equal(mailbox_post(&box, &first->item), 0);
    assert_int_equal(mailbox_post(&box, &note(0, 1)->item), 0);
    uv_run(&loop, UV_RUN_NOWAIT);
    assert_int_equal(n_delivered, 3);
    close_box();
}

static void closing_delivers_the_rest_and_refuses_later_posts(void **state)
{
    (void)state;
    assert_int_equal(mailbox_post(&box, &note(0, 0)->item), 0);
    mailbox_close(&box, on_closed, NULL);
    assert_int_equal(n_delivered, 1);
    struct note *late = note(0, 1);
    assert_int_equal(mailbox_post(&box, &late->item), UV_ECANCELED);
    free(late);
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(was_closed);
}

static void *post_many(void *arg)
{
    unsigned thread = *(unsigned *)arg;
    for (unsigned i = 0; i < N_NOTES; i++)
        if (mailbox_post(&box, &note(thread, i)->item) != 0)
            abort();
    return NULL;
}

static void each_thread_keeps_its_order(void **state)
{
    (void)state;
    pthread_t threads[N_THREADS];
    unsigned numbers[N_THREADS];

    for (unsigned i = 0; i < N_THREADS; i++) {
        numbers[i] = i;
        assert_int_equal(pthread_create(&threads[i], NULL, post_many, &numbers[i]), 0);
    }
    while (n_delivered < N_THREADS * N_NOTES)
        uv_run(&loop, UV_RUN_ONCE);
    for (unsigned i = 0; i < N_THREADS; i++)
        pthread_join(threads[i], NULL);
    close_box();
}

static void *post_until_refused(void *arg)
{
    (void)arg;
    for (unsigned i = 0;; i++) {
        struct note *n = note(0, i);
        if (mailbox_post(&box, &n->item) != 0) {
            free(n);
            return NULL;
        }
    }
}

static void closing_races_with_a_poster(void **state)
{
    (void)state;
    pthread_t thread;

    assert_int_equal(pthread_create(&thread, NULL, post_until_refused, NULL), 0);
    while (n_delivered < 100)
        uv_run(&loop, UV_RUN_ONCE);
    close_box();
    pthread_join(thread, NULL);
    assert_int_equal(next_number[0], n_delivered);
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(notes_arrive_in_order_and_not_inside_post),
        T(draining_needs_no_loop),
        T(a_drain_inside_a_drain_keeps_the_order),
        T(closing_delivers_the_rest_and_refuses_later_posts),
        T(each_thread_keeps_its_order),
        T(closing_races_with_a_poster),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
