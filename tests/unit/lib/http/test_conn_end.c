// The end of connections: clients that hang up, timeouts, draining and closing.
#include "conn_fixture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/err.h"

static void a_disconnected_client_is_reported_once(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park") GET("/park-lightly"));
    turns(2);
    close(client);
    client = -1;
    turn();
    turn();
    assert_int_equal(n_gone, 2);
    assert_int_equal(http_server_connections(server), 0);
    assert_true(http_req_is_gone(parked[0]));
    http_reply_json_span(parked[0], 200, SPAN("too late"));
    n_parked = 0;
    turn();
    assert_int_equal(n_gone, 2);
    assert_int_equal(n_observed, 0);
}

static void hanging_up_is_noticed_while_reading_is_paused(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.max_pipelined = 1});
    send_text(GET("/park"));
    turns(2);
    close(client);
    client = -1;
    turn();
    turn();
    assert_int_equal(n_gone, 1);
}

static void a_hook_set_after_the_peer_has_gone_still_runs(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park"));
    turns(2);
    close(client);
    client = -1;
    turn();
    assert_int_equal(n_gone, 1);
    http_req_on_gone(parked[0], on_gone, &n_gone);
    assert_int_equal(n_gone, 1); // not from inside
    turn();
    assert_int_equal(n_gone, 2);
    http_req_on_gone(parked[0], on_gone, &n_gone);
    http_reply_empty(parked[0], 204); // answered before its turn came
    n_parked = 0;
    turn();
    assert_int_equal(n_gone, 2);
}

static void no_hook_after_the_answer(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park"));
    turns(2);
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    close(client);
    client = -1;
    turn();
    turn();
    assert_int_equal(n_gone, 0);
}

static void answers_ready_at_the_end_of_input_still_leave(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/nothing") "POST /echo HTTP/1.1\r\n" HOST "Content-Length: 1\r\n\r\nx");
    shutdown(client, SHUT_WR);
    turns(4);
    assert_answer(204, "");
    assert_answer(200, "x");
    assert_true(got_eof);
}

static void a_request_under_way_is_answered_after_the_end_of_input(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park-without-hook") GET("/nothing"));
    shutdown(client, SHUT_WR);
    turns(4);
    assert_int_equal(n_parked, 1);
    http_reply_json_span(parked[0], 200, SPAN("{}"));
    n_parked = 0;
    turns(3);
    assert_answer(200, "{}");
    assert_answer(204, "");
    assert_true(got_eof);
    assert_int_equal(http_server_connections(server), 0);
}

static void a_hook_set_after_the_end_of_input_runs(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park-without-hook"));
    shutdown(client, SHUT_WR);
    turns(4);
    assert_int_equal(n_parked, 1);
    http_req_on_gone(parked[0], on_gone, &n_gone);
    assert_int_equal(n_gone, 0); // not from inside
    turns(2);
    assert_int_equal(n_gone, 1);
    assert_true(http_req_is_gone(parked[0]));
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    turns(2);
    assert_int_equal(http_server_connections(server), 0);
}

static void half_a_request_times_out(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.header_timeout_ms = 30, .idle_timeout_ms = 10000});
    send_text("POST /echo HTTP/1.1\r\nHos");
    wait_until_closed(2000);
    assert_has("Connection: close\r\n");
    assert_answer(408, "{\"error\":\"the request did not arrive in time\"}");
}

static void half_a_body_times_out_but_progress_does_not(void **state)
{
    char piece[200] = {0};

    (void)state;
    open_server((struct http_server_conf){.header_timeout_ms = 100, .idle_timeout_ms = 10000});
    send_text("POST /echo HTTP/1.1\r\n" HOST "Content-Length: 2000\r\n\r\n");
    for (int i = 0; i < 9; i++) {
        let_pass(30);
        send_bytes((span){piece, sizeof piece}); // more than the minimum rate
        turns(2);
    }
    assert_int_equal(got.len, 0);
    assert_false(got_eof);
    wait_until_closed(2000);
    assert_answer(408, "{\"error\":\"the request did not arrive in time\"}");
}

static void an_idle_connection_times_out_but_not_a_parked_one(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.header_timeout_ms = 20, .idle_timeout_ms = 40});
    send_text(GET("/park"));
    turns(2);
    let_pass(200);
    assert_false(got_eof);
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    turns(2);
    assert_answer(204, "");
    assert_false(got_eof);
    wait_until_closed(2000);
    assert_int_equal(got.len, 0);
}

static void a_peer_that_never_reads_times_out(void **state)
{
    (void)state;
    open_server((struct http_server_conf){.idle_timeout_ms = 40});
    send_text(GET("/big?n=8000000"));
    uint64_t until = uv_hrtime() + 2000000000ULL;
    while (http_server_connections(server) > 0 && uv_hrtime() < until)
        uv_run(&loop, UV_RUN_ONCE);
    assert_int_equal(http_server_connections(server), 0);
}

static void draining_closes_idle_ones_and_busy_ones_after_their_answer(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    int idle = client;
    char byte;
    turns(1);
    connect_client();
    send_text(GET("/park"));
    turns(2);
    http_server_drain(server);
    turns(1);
    assert_int_equal(recv(idle, &byte, 1, 0), 0);
    close(idle);
    assert_false(got_eof);
    http_reply_json_span(parked[0], 200, SPAN("1"));
    n_parked = 0;
    turns(3);
    assert_has("Connection: close\r\n");
    assert_answer(200, "1");
    assert_true(got_eof);
}

static void answer_first(uv_timer_t *timer)
{
    (void)timer;
    http_reply_json_span(parked[--n_parked], 200, SPAN("timer"));
}

static void an_answer_from_a_timer_leaves_before_the_loop_sleeps(void **state)
{
    (void)state;
    static uv_timer_t timer; // closed by the teardown
    open_server((struct http_server_conf){0});
    send_text(GET("/park"));
    turns(2);
    uv_timer_init(&loop, &timer);
    uv_timer_start(&timer, answer_first, 1, 0);
    uv_run(&loop, UV_RUN_ONCE); // sleeps until the timer; the answer is made at the turn's end
    uv_run(&loop, UV_RUN_ONCE); // would sleep for ever
    read_answers();
    assert_answer(200, "timer");
    uv_close((uv_handle_t *)&timer, NULL);
}

static void a_socket_that_comes_too_late_is_closed(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    int first = client;
    http_server_close(server, on_closed, NULL);
    connect_client();
    turns(3);
    assert_true(got_eof);
    assert_true(was_closed);
    close(first);
    close(client);
    was_closed = got_eof = false;
    open_server((struct http_server_conf){0}); // for teardown
}

static void closing_waits_for_requests_in_the_hands_of_handlers(void **state)
{
    (void)state;
    open_server((struct http_server_conf){0});
    send_text(GET("/park") GET("/park-lightly"));
    turns(2);
    http_server_close(server, on_closed, NULL);
    assert_int_equal(n_gone, 2);
    turns(3);
    assert_false(was_closed);
    http_reply_empty(parked[0], 204);
    n_parked = 0;
    turns(3);
    assert_true(was_closed);
    close(client);
    was_closed = false;
    open_server((struct http_server_conf){0}); // for teardown
}

int main(void)
{
#define T(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
    const struct CMUnitTest tests[] = {
        T(a_disconnected_client_is_reported_once),
        T(hanging_up_is_noticed_while_reading_is_paused),
        T(a_hook_set_after_the_peer_has_gone_still_runs),
        T(no_hook_after_the_answer),
        T(answers_ready_at_the_end_of_input_still_leave),
        T(a_request_under_way_is_answered_after_the_end_of_input),
        T(a_hook_set_after_the_end_of_input_runs),
        T(half_a_request_times_out),
        T(half_a_body_times_out_but_progress_does_not),
        T(an_idle_connection_times_out_but_not_a_parked_one),
        T(a_peer_that_never_reads_times_out),
        T(draining_closes_idle_ones_and_busy_ones_after_their_answer),
        T(an_answer_from_a_timer_leaves_before_the_loop_sleeps),
        T(a_socket_that_comes_too_late_is_closed),
        T(closing_waits_for_requests_in_the_hands_of_handlers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
