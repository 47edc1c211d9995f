// Tests against servers that answer late, elsewhere or too much: what they send is bounded, and
// deadlines hold.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include <cmocka.h>

#include "call.h"
#include "fake_server.h"
#include "processor_int.h"
#include "queen/message.h"
#include "until.h"

static struct queen_error err;

// ---- a redirection is not a success ----

static struct fake_answer redirect(const struct fake_request *r, void *ctx)
{
    (void)r, (void)ctx;
    return (struct fake_answer){
        .raw = "HTTP/1.1 302 Found\r\nLocation: /login\r\nContent-Length: 0\r\n\r\n"};
}

static void a_redirected_extension_is_not_a_success(void **state)
{
    (void)state;
    struct fake_server *s = fake_server_new(redirect, NULL);
    struct queen_client *c =
        queen_client_new(&(struct queen_options){.url = fake_server_url(s)}, &err);

    assert_int_equal(queen_extend(c, "lease", 10, &err), QUEEN_E_PROTOCOL);
    assert_int_equal(err.http_status, 302);
    queen_client_free(c);
    fake_server_free(s);
}

// ---- the timer of an attempt ends with it ----

struct parked {
    uv_loop_t loop;
    uv_timer_t later;
    struct queen_client *client;
    struct call *first;
    _Atomic unsigned n_quiet; // requests to the quiet server
    int status;
    unsigned n_done;
};

// The first request waits for ever, the next ones are answered.
static struct fake_answer quiet(const struct fake_request *r, void *ctx)
{
    ((struct parked *)ctx)->n_quiet++;
    return (struct fake_answer){.status = r->number == 0 ? FAKE_SILENCE : 200, .body = "{}"};
}

static struct fake_answer unavailable(const struct fake_request *r, void *ctx)
{
    (void)r, (void)ctx;
    return (struct fake_answer){.status = 503, .body = "{}"};
}

static void on_parked_done(struct queen_response *r, const struct queen_error *e, void *ctx)
{
    struct parked *p = ctx;

    (void)e;
    if (r)
        p->status = r->status;
    queen_response_free(r);
    if (++p->n_done == 2)
        queen_client_close(p->client, NULL, NULL);
}

static void cancel_first(uv_timer_t *timer)
{
    call_cancel(((struct parked *)timer->data)->first);
    uv_close((uv_handle_t *)timer, NULL);
}

static struct call *park(struct parked *p, unsigned timeout_ms)
{
    struct call *call =
        call_new(p->client, &(struct queen_request){.path = "/", .timeout_ms = timeout_ms},
                 on_parked_done, p);

    call_may_park(call);
    call_begin(call);
    return call;
}

static void a_long_poll_that_waits_for_a_connection_does_not_time_out(void **state)
{
    (void)state;
    struct parked p = {0};
    struct fake_server *a = fake_server_new(quiet, &p), *b = fake_server_new(unavailable, NULL);
    char urls[200];

    snprintf(urls, sizeof urls, "%s,%s", fake_server_url(a), fake_server_url(b));
    uv_loop_init(&p.loop);
    p.client = queen_client_new(
        &(struct queen_options){.url = urls, .loop = &p.loop, .max_connections = 1}, &err);
    p.first = park(&p, 60000);
    // Fails at the second server, and then waits for the only connection of the first.
    park(&p, 200);
    uv_timer_init(&p.loop, &p.later);
    p.later.data = &p;
    uv_timer_start(&p.later, cancel_first, 1000, 0);
    uv_run(&p.loop, UV_RUN_DEFAULT);
    assert_int_equal(p.status, 200);
    assert_int_equal(p.n_quiet, 2);
    assert_int_equal(uv_loop_close(&p.loop), 0);
    fake_server_free(a);
    fake_server_free(b);
}

// ---- a half-closed connection is not used again ----

struct half {
    uv_loop_t loop;
    uv_timer_t look;
    struct queen_client *client;
    struct call *first;
    _Atomic bool arrived, hung_up;
    int status[2];
    unsigned n_done;
    _Atomic unsigned connection; // of the last request
};

// The answer to the first request comes after the client has closed its side, which the server
// does not notice.
static struct fake_answer answer_late(const struct fake_request *r, void *ctx)
{
    struct half *h = ctx;

    h->arrived = true;
    wait_until(h->hung_up);
    h->connection = r->connection;
    return (struct fake_answer){.status = 200, .body = "{}", .deaf = r->number == 0};
}

static void on_half_done(struct queen_response *r, const struct queen_error *e, void *ctx)
{
    struct half *h = ctx;

    (void)e;
    h->status[h->n_done++] = r ? r->status : 0;
    queen_response_free(r);
    if (h->n_done == 1)
        queen_request_start(h->client, &(struct queen_request){.path = "/2", .once = true},
                            on_half_done, h);
    else
        queen_client_close(h->client, NULL, NULL);
}

static void hang_up_first(uv_timer_t *look)
{
    struct half *h = look->data;

    if (!h->arrived)
        return;
    call_hang_up(h->first);
    h->hung_up = true;
    state_changed();
    uv_close((uv_handle_t *)look, NULL);
}

static void request_after_hanging_up(struct half *result)
{
    struct half h = {0};
    struct fake_server *s = fake_server_new(answer_late, &h);

    uv_loop_init(&h.loop);
    h.client = queen_client_new(
        &(struct queen_options){.url = fake_server_url(s), .loop = &h.loop}, &err);
    h.first = call_new(h.client, &(struct queen_request){.path = "/1"}, on_half_done, &h);
    call_begin(h.first);
    uv_timer_init(&h.loop, &h.look);
    h.look.data = &h;
    uv_timer_start(&h.look, hang_up_first, 1, 1);
    uv_run(&h.loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&h.loop), 0);
    fake_server_free(s);
    *result = h;
}

static void a_half_closed_connection_is_not_used_again(void **state)
{
    (void)state;
    struct half h;

    do // on a busy machine the first answer may come too late
        request_after_hanging_up(&h);
    while (h.status[0] == 0);
    assert_int_equal(h.status[1], 200);
    assert_int_equal(h.connection, 1);
}

// ---- processors ----

enum { MANY = 3000 };

struct rig {
    struct fake_server *server;
    struct queen_client *client;
    struct queen_processor *processor;
    char *list; // of owners; NULL: one partition
    _Atomic unsigned n_lists, n_renewals, n_closed;
    unsigned n_met, n_remembered; // when it has stopped
    _Atomic bool claimed, too_many;
};

static struct fake_answer serve(const struct fake_request *r, void *ctx)
{
    struct rig *g = ctx;
    const char *text = "{\"released\":1}";

    if (strstr(r->target, "/owners/claim")) {
        g->claimed = true;
        text = "{\"results\":[{\"partition\":\"0\",\"partitionId\":\"i\",\"success\":true,"
               "\"epoch\":1}]}";
    } else if (strstr(r->target, "/owners/renew")) {
        g->n_renewals++;
        state_changed();
        if (g->n_renewals == 1)
            return (struct fake_answer){.status = FAKE_SILENCE};
        text = "{\"lost\":[]}";
    } else if (strstr(r->target, "/owners/")) {
        text = "{\"released\":1}";
    } else if (strstr(r->target, "/owners")) {
        g->n_lists++;
        state_changed();
        text = g->list ? g->list
               : g->claimed
                   ? "{\"owners\":[{\"partition\":\"0\",\"owner\":\"me\",\"epoch\":1}]}"
                   : "{\"owners\":[{\"partition\":\"0\",\"epoch\":0}]}";
    } else {
        return (struct fake_answer){.status = FAKE_SILENCE};
    }
    return (struct fake_answer){.status = 200, .body = text};
}

static enum queen_outcome on_event(struct queen_event *e, void *ctx)
{
    (void)e, (void)ctx;
    return QUEEN_HANDLED;
}

static void on_closed(const char *partition, enum queen_closed why, void *ctx)
{
    (void)partition;
    if (why == QUEEN_CLOSED_LOST)
        ((struct rig *)ctx)->n_closed++;
    state_changed();
}

static void on_error(const struct queen_error *e, void *ctx)
{
    struct rig *g = ctx;

    if (e->code == QUEEN_E_PROTOCOL)
        g->too_many = true;
    state_changed();
}

static void on_stopped(void *ctx)
{
    struct rig *g = ctx;

    g->n_met = g->processor->n_assignments;
    for (unsigned i = 0; i < g->n_met; i++)
        g->n_remembered += g->processor->assignments[i]->dedup != NULL;
}

static void open_rig(struct rig *g, char *owners)
{
    *g = (struct rig){.list = owners};
    g->server = fake_server_new(serve, g);
    g->client = queen_client_new(
        &(struct queen_options){.url = fake_server_url(g->server), .attempts = 1}, &err);
    g->processor =
        queen_processor_new(g->client,
                            &(struct queen_processor_options){.queue = "q",
                                                              .group = "g",
                                                              .owner = "me",
                                                              .expiry_s = 6,
                                                              .on_event = on_event,
                                                              .on_closed = on_closed,
                                                              .on_error = on_error,
                                                              .on_stopped = on_stopped,
                                                              .ctx = g},
                            &err);
    assert_non_null(g->processor);
}

static void close_rig(struct rig *g)
{
    queen_processor_free(g->processor);
    queen_client_free(g->client);
    fake_server_free(g->server);
    free(g->list);
}

// The client's timeout of a request is longer than the claim.
static void an_unanswered_renewal_is_repeated_before_the_claim_expires(void **state)
{
    (void)state;
    struct rig g;

    open_rig(&g, NULL);
    wait_until(g.n_renewals >= 2 || g.n_closed > 0);
    assert_int_equal(g.n_closed, 0);
    close_rig(&g);
}

static char *owners(unsigned n)
{
    char *text = malloc(64 + n * 64ul), *at = text;

    at += sprintf(at, "{\"owners\":[");
    for (unsigned i = 0; i < n; i++)
        at += sprintf(at, "%s{\"partition\":\"p%u\",\"owner\":\"other\",\"epoch\":1}",
                      i > 0 ? "," : "", i);
    strcpy(at, "]}");
    return text;
}

static void partitions_of_others_cost_no_memory_for_their_events(void **state)
{
    (void)state;
    struct rig g;

    open_rig(&g, owners(MANY));
    wait_until(g.n_lists >= 2);
    close_rig(&g);
    assert_int_equal(g.n_met, MANY);
    assert_int_equal(g.n_remembered, 0);
}

static void a_list_of_owners_has_a_limit(void **state)
{
    (void)state;
    struct rig g;

    open_rig(&g, owners(20000));
    wait_until(g.too_many || g.n_lists >= 3);
    close_rig(&g);
    assert_true(g.too_many);
    assert_int_equal(g.n_met, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_redirected_extension_is_not_a_success),
        cmocka_unit_test(a_long_poll_that_waits_for_a_connection_does_not_time_out),
        cmocka_unit_test(a_half_closed_connection_is_not_used_again),
        cmocka_unit_test(an_unanswered_renewal_is_repeated_before_the_claim_expires),
        cmocka_unit_test(partitions_of_others_cost_no_memory_for_their_events),
        cmocka_unit_test(a_list_of_owners_has_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
