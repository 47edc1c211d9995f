// Tests of requests against servers that behave in all the ways servers do.
#include "queen/client.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <uv.h>

#include <cmocka.h>

#include "fake_server.h"
#include "until.h"

static struct queen_error err;

static struct queen_client *client(const char *url)
{
    struct queen_client *c = queen_client_new(
        &(struct queen_options){
            .url = url, .retry_delay_ms = 5, .request_timeout_ms = 20000, .token = "secret"},
        &err);

    assert_non_null(c);
    return c;
}

static int get(struct queen_client *c, const char *path)
{
    struct queen_response *r = queen_request(c, &(struct queen_request){.path = path}, &err);
    int status = r ? r->status : 0;

    queen_response_free(r);
    return status;
}

// ctx: a list of statuses, used from the front; the last one stays.
static struct fake_answer statuses(const struct fake_request *r, void *ctx)
{
    const int *list = ctx;
    unsigned i = 0;

    while (i < r->number && list[i + 1] != -1)
        i++;
    return (struct fake_answer){.status = list[i], .body = "{\"error\":\"as told\"}"};
}

static struct fake_answer echo(const struct fake_request *r, void *ctx)
{
    static char text[80000];

    (void)ctx;
    snprintf(text, sizeof text, "%u %s %s\n%s\n%s", r->connection, r->method, r->target,
             r->head, r->body);
    return (struct fake_answer){.status = 200, .body = text};
}

static void a_request_contains_its_method_path_headers_and_body(void **state)
{
    (void)state;
    struct fake_server *s = fake_server_new(echo, NULL);
    struct queen_client *c = client(fake_server_url(s));
    struct queen_header extra = {"X-Extra", "yes"};
    struct queen_request req = {.method = "POST",
                                .path = "/a/b?c=d",
                                .body = "{\"x\":1}",
                                .body_len = 7,
                                .headers = &extra,
                                .n_headers = 1,
                                .traceparent = "00-a-b-01"};
    struct queen_response *r = queen_request(c, &req, &err);

    assert_non_null(r);
    assert_int_equal(err.code, 0);
    assert_non_null(strstr(r->body, "0 POST /a/b?c=d\n"));
    assert_non_null(strstr(r->body, "\r\nHost: 127.0.0.1:"));
    assert_non_null(strstr(r->body, "\r\nAuthorization: Bearer secret\r\n"));
    assert_non_null(strstr(r->body, "\r\nX-Extra: yes\r\n"));
    assert_non_null(strstr(r->body, "\r\ntraceparent: 00-a-b-01\r\n"));
    assert_non_null(strstr(r->body, "\r\nContent-Length: 7\r\n"));
    assert_non_null(strstr(r->body, "{\"x\":1}"));
    queen_response_free(r);

    r = queen_request(c, &(struct queen_request){.path = "/again"}, &err);
    assert_non_null(strstr(r->body, "0 GET /again\n")); // the same connection
    queen_response_free(r);
    queen_client_free(c);
    fake_server_free(s);
}

static void text_that_would_split_a_header_is_not_sent(void **state)
{
    (void)state;
    struct fake_server *s = fake_server_new(echo, NULL);
    struct queen_client *c = client(fake_server_url(s));
    struct queen_header bad = {"X", "a\r\nY: b"}, nameless = {NULL, "x"}, empty = {"", "x"};
    struct queen_header in_name = {"X: y\r\nZ", "x"}, quoted = {"X\"", "x"};
    // Where the body ends and which connection this is are the library's business.
    struct queen_header length = {"content-length", "0"},
                        chunked = {"Transfer-Encoding", "chunked"};
    struct queen_header host = {"HOST", "elsewhere"}, connection = {"Connection", "close"};
    struct queen_request reqs[] = {
        {.path = "/", .headers = &nameless, .n_headers = 1},
        {.path = "/", .headers = &empty, .n_headers = 1},
        {.path = "/", .headers = &in_name, .n_headers = 1},
        {.path = "/", .headers = &quoted, .n_headers = 1},
        {.path = "/", .headers = &length, .n_headers = 1},
        {.path = "/", .headers = &chunked, .n_headers = 1},
        {.path = "/", .headers = &host, .n_headers = 1},
        {.path = "/", .headers = &connection, .n_headers = 1},
        {.path = "/", .method = ""},
        {.path = "/", .method = "GET\r\nX:"},
        {.path = "/x\x7f"},
        {.path = ""},
        {.path = "/a b"},
        {.path = "/a\r\nX: y"},
        {.path = "relative"},
        {.path = "/", .method = "GET /x"},
        {.path = "/", .headers = &bad, .n_headers = 1},
        {.path = "/", .traceparent = "a\nb"},
    };

    for (unsigned i = 0; i < sizeof reqs / sizeof reqs[0]; i++) {
        assert_null(queen_request(c, &reqs[i], &err));
        assert_int_equal(err.code, QUEEN_E_ARGUMENT);
    }
    assert_int_equal(fake_server_requests(s), 0);
    queen_client_free(c);
    fake_server_free(s);
}

static unsigned count(const char *text, const char *word)
{
    unsigned n = 0;

    for (; (text = strstr(text, word)); text++)
        n++;
    return n;
}

// Two of them would leave it to the server which one counts.
static void a_header_of_the_caller_replaces_ours(void **state)
{
    (void)state;
    struct fake_server *s = fake_server_new(echo, NULL);
    struct queen_client *c = client(fake_server_url(s));
    struct queen_header mine[] = {{"content-type", "application/cloudevents+json"},
                                  {"AUTHORIZATION", "Basic x"},
                                  {"User-agent", "me"}};
    struct queen_response *r = queen_request(c,
                                             &(struct queen_request){.method = "POST",
                                                                     .path = "/",
                                                                     .body = "{}",
                                                                     .body_len = 2,
                                                                     .headers = mine,
                                                                     .n_headers = 3},
                                             &err);

    assert_non_null(r);
    assert_int_equal(count(r->body, "ontent-"), 2); // type and length
    assert_non_null(strstr(r->body, "\r\ncontent-type: application/cloudevents+json\r\n"));
    assert_null(strstr(r->body, "secret"));
    assert_null(strstr(r->body, "libqueenclient"));
    queen_response_free(r);
    queen_client_free(c);
    fake_server_free(s);
}

static void failures_of_the_server_are_tried_again_and_others_are_not(void **state)
{
    (void)state;
    static const struct {
        int list[5], status;
        unsigned requests;
        bool retryable;
    } cases[] = {
        {{503, 500, 200, -1}, 200, 3, false}, {{500, 500, 500, -1}, 500, 3, true},
        {{0, 200, -1}, 200, 2, false},        {{400, 200, -1}, 400, 1, false},
        {{404, 200, -1}, 404, 1, false},      {{429, 200, -1}, 429, 1, true},
    };

    for (unsigned i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct fake_server *s = fake_server_new(statuses, (void *)(uintptr_t)cases[i].list);
        struct queen_client *c = client(fake_server_url(s));
        assert_int_equal(get(c, "/x"), cases[i].status);
        assert_int_equal(fake_server_requests(s), cases[i].requests);
        assert_int_equal(err.retryable, cases[i].retryable);
        if (cases[i].status >= 400)
            assert_string_equal(err.text, "as told");
        queen_client_free(c);
        fake_server_free(s);
    }
}

static void a_request_that_must_not_be_repeated_is_sent_once(void **state)
{
    (void)state;
    int list[] = {503, 200, -1};
    struct fake_server *s = fake_server_new(statuses, list);
    struct queen_client *c = client(fake_server_url(s));
    struct queen_response *r =
        queen_request(c, &(struct queen_request){.path = "/x", .once = true}, &err);

    assert_int_equal(r->status, 503);
    assert_int_equal(fake_server_requests(s), 1);
    queen_response_free(r);
    queen_client_free(c);
    fake_server_free(s);
}

static void a_closed_port_is_unreachable(void **state)
{
    (void)state;
    struct queen_client *c = client(fake_server_nobody());

    assert_int_equal(get(c, "/x"), 0);
    assert_int_equal(err.code, QUEEN_E_UNREACHABLE);
    assert_true(err.retryable);
    assert_non_null(strstr(err.text, "connection refused"));
    queen_client_free(c);
}

static void the_next_server_is_used_when_one_is_gone(void **state)
{
    (void)state;
    int fine[] = {200, -1};
    struct fake_server *s = fake_server_new(statuses, fine);
    char urls[160];
    snprintf(urls, sizeof urls, "%s,%s", fake_server_nobody(), fake_server_url(s));
    struct queen_client *c = client(urls);

    for (int i = 0; i < 6; i++)
        assert_int_equal(get(c, "/x"), 200);
    assert_int_equal(fake_server_requests(s), 6);
    queen_client_free(c);
    fake_server_free(s);
}

static struct fake_answer silent(const struct fake_request *r, void *ctx)
{
    (void)r, (void)ctx;
    return (struct fake_answer){.status = FAKE_SILENCE};
}

static void an_answer_that_takes_too_long_is_given_up(void **state)
{
    (void)state;
    struct fake_server *s = fake_server_new(silent, NULL);
    struct queen_client *c = client(fake_server_url(s));

    assert_null(queen_request(
        c, &(struct queen_request){.path = "/", .timeout_ms = 30, .attempts = 1}, &err));
    assert_int_equal(err.code, QUEEN_E_TIMEOUT);
    queen_client_free(c);
    fake_server_free(s);
}

static struct fake_answer closing(const struct fake_request *r, void *ctx)
{
    (void)r, (void)ctx;
    return (struct fake_answer){.status = 200, .close = true};
}

static void a_connection_that_the_server_closed_is_not_used_again(void **state)
{
    (void)state;
    struct fake_server *s = fake_server_new(closing, NULL);
    struct queen_client *c = client(fake_server_url(s));

    for (int i = 0; i < 5; i++)
        assert_int_equal(get(c, "/x"), 200);
    assert_int_equal(fake_server_requests(s), 5);
    queen_client_free(c);
    fake_server_free(s);
}

// ---- answers that end in the middle ----

static struct fake_answer raw_of(const struct fake_request *r, void *ctx)
{
    (void)r;
    return *(struct fake_answer *)ctx;
}

// Without a length the end of the connection is the end of the body; a reset is no such end.
static void an_answer_cut_off_by_a_reset_is_not_complete(void **state)
{
    (void)state;
    struct fake_answer whole = {.raw = "HTTP/1.1 200 OK\r\n\r\nall of it", .close = true};
    struct fake_answer cut = {.raw = "HTTP/1.1 200 OK\r\n\r\nhalf of", .reset = true};
    struct fake_server *s = fake_server_new(raw_of, &whole);
    struct queen_client *c = client(fake_server_url(s));
    struct queen_request once = {.path = "/", .attempts = 1};

    struct queen_response *r = queen_request(c, &once, &err);
    assert_non_null(r);
    assert_string_equal(r->body, "all of it");
    queen_response_free(r);
    queen_client_free(c);
    fake_server_free(s);

    s = fake_server_new(raw_of, &cut);
    c = client(fake_server_url(s));
    assert_null(queen_request(c, &once, &err));
    assert_int_equal(err.code, QUEEN_E_UNREACHABLE);
    assert_non_null(strstr(err.text, "in the middle of an answer"));
    queen_client_free(c);
    fake_server_free(s);
}

// The second answer is not ours: taken for the answer to the next request it would shift all
// that follow.
static void an_unrequested_answer_is_not_used(void **state)
{
    (void)state;
    struct fake_answer two = {.raw = "HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\na"
                                     "HTTP/1.1 201 OK\r\nContent-Length: 1\r\n\r\n"};
    struct fake_server *s = fake_server_new(raw_of, &two);
    struct queen_client *c = client(fake_server_url(s));

    for (int i = 0; i < 3; i++)
        assert_int_equal(get(c, "/x"), 200);
    assert_int_equal(fake_server_requests(s), 3);
    queen_client_free(c);
    fake_server_free(s);
}

// The first attempt is answered, the second one is not.
static struct fake_answer refuse_then_silence(const struct fake_request *r, void *ctx)
{
    (void)ctx;
    return (struct fake_answer){.status = r->number == 0 ? 503 : FAKE_SILENCE,
                                .body = "{\"error\":\"busy\"}"};
}

static void an_attempt_without_an_answer_does_not_return_the_previous_answer(void **state)
{
    (void)state;
    bool both = false;

    // On a busy machine the first attempt may time out before it reaches the server.
    for (unsigned ms = 100; !both; ms *= 2) {
        struct fake_server *s = fake_server_new(refuse_then_silence, NULL);
        struct queen_client *c = client(fake_server_url(s));
        struct queen_request req = {.path = "/", .timeout_ms = ms, .attempts = 2};
        struct queen_response *r = queen_request(c, &req, &err);
        both = fake_server_requests(s) == 2;
        if (both) {
            assert_null(r);
            assert_int_equal(err.code, QUEEN_E_TIMEOUT);
        }
        queen_response_free(r);
        queen_client_free(c);
        fake_server_free(s);
    }
}

static void on_closed_call(struct queen_response *r, const struct queen_error *e, void *ctx)
{
    assert_null(r);
    *(int *)ctx = e->code;
}

static void closing_ends_requests_in_flight(void **state)
{
    (void)state;
    struct fake_server *s = fake_server_new(silent, NULL);
    struct queen_client *c = client(fake_server_url(s));
    int code = 0;

    queen_request_start(c, &(struct queen_request){.path = "/"}, on_closed_call, &code);
    queen_client_free(c);
    assert_int_equal(code, QUEEN_E_CLOSED);
    fake_server_free(s);
}

// ---- starting requests while the client closes ----

// Three requests, each started by this thread while the client's own thread is inside of the
// callback of the one before, which keeps the client from going away:
//
//      waits for its next attempt ──► in the mailbox when that closes ──► comes after that
struct late_test {
    struct queen_client *client;
    _Atomic int n_done;
    _Atomic bool inside[3], told_inside; // between call and return of a start
    _Atomic int codes[3];
    _Atomic int n_started;
};

struct late_call {
    struct late_test *test;
    int number;
};

static void on_late(struct queen_response *r, const struct queen_error *e, void *ctx)
{
    struct late_call *l = ctx;
    struct late_test *t = l->test;

    assert_null(r);
    t->codes[l->number] = e->code;
    if (t->inside[l->number])
        t->told_inside = true;
    t->n_done = l->number + 1;
    state_changed();
    if (l->number < 2)
        wait_until(t->n_started > l->number + 1 || t->told_inside);
}

static void *free_client(void *arg)
{
    queen_client_free(arg);
    return NULL;
}

static void a_request_started_while_the_client_closes_fails_later(void **state)
{
    (void)state;
    struct late_test t = {0};
    struct late_call calls[3] = {{&t, 0}, {&t, 1}, {&t, 2}};
    pthread_t closer;

    t.client = queen_client_new(&(struct queen_options){.url = fake_server_nobody(),
                                                        .attempts = 100,
                                                        .retry_delay_ms = 60000},
                                &err);
    for (int i = 0; i < 3; i++) {
        t.inside[i] = true;
        queen_request_start(t.client, &(struct queen_request){.path = "/"}, on_late, &calls[i]);
        t.inside[i] = false;
        t.n_started = i + 1;
        state_changed();
        if (i == 0) {
            // Behind the first connection, which was refused, there is a pause of a minute.
            queen_response_free(queen_request(
                t.client, &(struct queen_request){.path = "/", .attempts = 1}, &err));
            pthread_create(&closer, NULL, free_client, t.client);
        }
        if (i < 2)
            wait_until(t.n_done == i + 1);
    }
    pthread_join(closer, NULL);
    assert_false(t.told_inside);
    for (int i = 0; i < 3; i++)
        assert_int_equal(t.codes[i], QUEEN_E_CLOSED);
}

// ---- on a loop of ours ----

struct loop_test {
    struct queen_client *client;
    unsigned n_done;
    bool inside, closed;
};

static void on_client_closed(void *ctx) { ((struct loop_test *)ctx)->closed = true; }

static void on_loop_done(struct queen_response *r, const struct queen_error *e, void *ctx)
{
    struct loop_test *t = ctx;

    assert_false(t->inside);
    assert_int_equal(e->code, 0);
    assert_int_equal(r->status, 200);
    queen_response_free(r);
    if (++t->n_done == 8)
        queen_client_close(t->client, on_client_closed, t);
}

static void on_the_callers_loop_everything_happens_there(void **state)
{
    (void)state;
    int fine[] = {200, -1};
    struct fake_server *s = fake_server_new(statuses, fine);
    struct loop_test t = {0};
    uv_loop_t loop;

    uv_loop_init(&loop);
    t.client = queen_client_new(
        &(struct queen_options){.url = fake_server_url(s), .loop = &loop, .max_connections = 2},
        &err);
    assert_null(queen_request(t.client, &(struct queen_request){.path = "/"}, &err));
    assert_int_equal(err.code, QUEEN_E_MISUSE);
    t.inside = true;
    for (int i = 0; i < 8; i++) // more than connections: some wait
        queen_request_start(t.client, &(struct queen_request){.path = "/"}, on_loop_done, &t);
    t.inside = false;
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_int_equal(t.n_done, 8);
    assert_true(t.closed);
    assert_int_equal(uv_loop_close(&loop), 0); // nothing is left on it
    fake_server_free(s);
}

// Callbacks that start more, as their contract allows, until the client is gone.
struct restless {
    struct queen_client *client;
    unsigned n_left, n_done;
    bool closed;
};

static void on_restless(struct queen_response *r, const struct queen_error *e, void *ctx)
{
    struct restless *t = ctx;

    assert_false(t->closed);
    assert_null(r);
    assert_int_equal(e->code, QUEEN_E_CLOSED);
    t->n_done++;
    if (t->n_left-- > 0)
        queen_request_start(t->client, &(struct queen_request){.path = "/"}, on_restless, t);
}

static void on_restless_closed(void *ctx) { ((struct restless *)ctx)->closed = true; }

// Runs when the client has closed its handles but the last of them is not done with.
static void on_idle_closed(uv_handle_t *handle)
{
    struct restless *t = handle->data;

    t->n_left = 2;
    queen_request_start(t->client, &(struct queen_request){.path = "/"}, on_restless, t);
}

static void on_a_loop_a_closing_client_waits_for_its_last_calls(void **state)
{
    (void)state;
    struct restless t = {0};
    uv_idle_t idle;
    uv_loop_t loop;

    uv_loop_init(&loop);
    uv_idle_init(&loop, &idle);
    idle.data = &t;
    t.client = queen_client_new(
        &(struct queen_options){.url = fake_server_nobody(), .loop = &loop}, &err);
    queen_client_close(t.client, on_restless_closed, &t); // closes its mailbox at once
    uv_close((uv_handle_t *)&idle, on_idle_closed);       // closed last, reported first
    uv_run(&loop, UV_RUN_DEFAULT);
    assert_true(t.closed);
    assert_int_equal(t.n_done, 3);
    assert_int_equal(uv_loop_close(&loop), 0);
}

static void bad_options_are_refused(void **state)
{
    (void)state;
    assert_null(queen_client_new(&(struct queen_options){0}, &err));
    assert_int_equal(err.code, QUEEN_E_ARGUMENT);
    assert_null(queen_client_new(&(struct queen_options){.url = "nowhere"}, &err));
    assert_null(queen_client_new(
        &(struct queen_options){.url = "http://a", .token_file = "/none"}, &err));
    assert_null(queen_client_new(
        &(struct queen_options){.url = "https://a", .ca_file = "/none"}, &err));
    assert_non_null(strstr(err.text, "/none"));
    assert_null(queen_client_new(
        &(struct queen_options){.url = "http://a", .user_agent = "me\r\nX-Admin: yes"}, &err));
    assert_int_equal(err.code, QUEEN_E_ARGUMENT);
    assert_string_equal(err.text, "user_agent has a control character");
    assert_null(
        queen_client_new(&(struct queen_options){.url = "http://a", .token = "a\nb"}, &err));
    assert_null(queen_client_new(&(struct queen_options){.url = "http://a/\r\nX: y"}, &err));
    assert_null(queen_client_new(&(struct queen_options){.url = "http://a\x7f/"}, &err));
}

// A failed lookup is reported at once, not after the connect timeout.
static void an_unknown_host_name_is_unreachable(void **state)
{
    (void)state;
    char url[600] = "http://";

    memset(url + 7, 'a', 500);
    struct queen_client *c = client(url);
    assert_int_equal(get(c, "/"), 0);
    assert_int_equal(err.code, QUEEN_E_UNREACHABLE);
    queen_client_free(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_contains_its_method_path_headers_and_body),
        cmocka_unit_test(text_that_would_split_a_header_is_not_sent),
        cmocka_unit_test(a_header_of_the_caller_replaces_ours),
        cmocka_unit_test(failures_of_the_server_are_tried_again_and_others_are_not),
        cmocka_unit_test(a_request_that_must_not_be_repeated_is_sent_once),
        cmocka_unit_test(a_closed_port_is_unreachable),
        cmocka_unit_test(the_next_server_is_used_when_one_is_gone),
        cmocka_unit_test(an_answer_that_takes_too_long_is_given_up),
        cmocka_unit_test(a_connection_that_the_server_closed_is_not_used_again),
        cmocka_unit_test(an_answer_cut_off_by_a_reset_is_not_complete),
        cmocka_unit_test(an_unrequested_answer_is_not_used),
        cmocka_unit_test(an_attempt_without_an_answer_does_not_return_the_previous_answer),
        cmocka_unit_test(closing_ends_requests_in_flight),
        cmocka_unit_test(a_request_started_while_the_client_closes_fails_later),
        cmocka_unit_test(on_a_loop_a_closing_client_waits_for_its_last_calls),
        cmocka_unit_test(on_the_callers_loop_everything_happens_there),
        cmocka_unit_test(bad_options_are_refused),
        cmocka_unit_test(an_unknown_host_name_is_unreachable),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
