// Tests of a processor against a server that loses answers.  The clock stands still, so what
// happens here happens without waiting for a lease, a claim or a rebuild.
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <uv.h>

#include <cmocka.h>

#include "fake_server.h"
#include "processor_int.h"

enum { N = 4, BATCH = 2, GIVE_UP_MS = 60000 };

enum fault { NONE, POP_ANSWER_LOST, ACK_LOST, ACK_ANSWER_LOST };

// One partition, as the server has it.
struct partition {
    unsigned epoch, cursor, leased; // leased: how many
    unsigned lease;                 // its number
    enum fault fault;
    _Atomic unsigned n_faults; // that are still to come
    _Atomic unsigned n_claims, n_wrong_acks;
    _Atomic unsigned n_acked;
};

struct rig {
    struct partition partition;
    struct fake_server *server;
    uv_loop_t loop;
    uv_timer_t patience;
    struct queen_client *client;
    struct queen_processor *processor;
    _Atomic unsigned handled[N];
    bool impatient;
    unsigned n_errors;
    bool fails;       // the first event, twice
    char acks[65536]; // the last request
};

static uint64_t stands_still(void) { return 1000000; }

// Each look at it takes a millisecond.
static _Atomic uint64_t ticks;
static uint64_t advances(void) { return 1000000 + ticks++; }

// ---- the server ----

static bool is_lost(struct partition *p, enum fault fault)
{
    if (p->fault != fault || p->n_faults == 0)
        return false;
    p->n_faults--;
    return true;
}

static struct fake_answer list(const struct partition *p)
{
    static char text[256];

    snprintf(text, sizeof text,
             "{\"owners\":[{\"partition\":\"0\",\"owner\":%s,\"epoch\":%u,\"expired\":false,"
             "\"lag\":%u}]}",
             p->epoch > 0 ? "\"me\"" : "null", p->epoch, N - p->cursor);
    return (struct fake_answer){.status = 200, .body = text};
}

// As queen.claim_owners: what was leased is not any more.
static struct fake_answer claim(struct partition *p)
{
    static char text[256];

    p->n_claims++;
    p->epoch++;
    p->leased = 0;
    snprintf(text, sizeof text,
             "{\"results\":[{\"partition\":\"0\",\"partitionId\":\"i\",\"success\":true,"
             "\"epoch\":%u}]}",
             p->epoch);
    return (struct fake_answer){.status = 200, .body = text};
}

static struct fake_answer pop(struct partition *p)
{
    static char text[1024];
    size_t len;

    if (p->leased > 0 || p->cursor == N)
        return (struct fake_answer){.status = FAKE_SILENCE};
    p->leased = BATCH;
    p->lease++;
    if (is_lost(p, POP_ANSWER_LOST))
        return (struct fake_answer){0};
    len = (size_t)sprintf(text, "{\"leaseId\":\"%u\",\"messages\":[", p->lease);
    for (unsigned i = p->cursor; i < p->cursor + BATCH; i++)
        len +=
            (size_t)sprintf(text + len,
                            "%s{\"id\":\"i\",\"transactionId\":\"t%u\",\"partitionId\":\"i\","
                            "\"leaseId\":\"%u\",\"data\":%u}",
                            i > p->cursor ? "," : "", i, p->lease, i);
    strcpy(text + len, "]}");
    return (struct fake_answer){.status = 200, .body = text};
}

static struct fake_answer ack(struct rig *g, struct partition *p, const char *body)
{
    char lease[32];
    bool ours;

    snprintf(lease, sizeof lease, "\"leaseId\":\"%u\"", p->lease);
    ours = p->leased > 0 && strstr(body, lease);
    snprintf(g->acks, sizeof g->acks, "%s", body);
    if (is_lost(p, ACK_LOST))
        return (struct fake_answer){0};
    for (unsigned i = p->cursor; ours && i < p->cursor + BATCH; i++)
        p->n_wrong_acks += g->handled[i] == 0 || strstr(body, "\"retry\"") != NULL;
    if (ours) {
        p->leased = 0;
        p->cursor += BATCH;
        p->n_acked = p->cursor;
    }
    if (is_lost(p, ACK_ANSWER_LOST))
        return (struct fake_answer){0};
    return (struct fake_answer){
        .status = 200,
        .body = ours ? "[{\"success\":true},{\"success\":true}]"
                     : "[{\"success\":false,\"error\":\"lease\"},{\"success\":false}]"};
}

static struct fake_answer serve(const struct fake_request *r, void *ctx)
{
    struct rig *g = ctx;

    if (strstr(r->target, "/owners/claim"))
        return claim(&g->partition);
    if (strstr(r->target, "/owners/release"))
        return (struct fake_answer){.status = 200, .body = "{\"released\":1}"};
    if (strstr(r->target, "/owners"))
        return list(&g->partition);
    if (strncmp(r->target, "/api/v1/pop", 11) == 0)
        return pop(&g->partition);
    return ack(g, &g->partition, r->body);
}

// ---- the processor ----

static enum queen_outcome on_event(struct queen_event *e, void *ctx)
{
    struct rig *g = ctx;

    unsigned n = (unsigned)atoi(e->message->transaction_id + 1);
    g->handled[n]++;
    if (g->fails && n == 0 && e->tried < 2) {
        queen_event_error(e, e->tried == 0 ? "first" : "second");
        queen_event_error_code(e, e->tried == 0 ? "ONE" : NULL);
        return QUEEN_RETRYABLE;
    }
    return g->fails && n < 2 ? QUEEN_HOPELESS : QUEEN_HANDLED; // without an error
}

static void on_error(const struct queen_error *err, void *ctx)
{
    (void)err;
    ((struct rig *)ctx)->n_errors++;
}

static void on_impatient(uv_timer_t *timer) { ((struct rig *)timer->data)->impatient = true; }

static struct rig *open_rig(enum fault fault, unsigned n_faults, unsigned attempts)
{
    struct rig *g = calloc(1, sizeof *g);
    struct queen_error err;

    g->partition.fault = fault;
    g->partition.n_faults = n_faults;
    g->server = fake_server_new(serve, g);
    uv_loop_init(&g->loop);
    uv_timer_init(&g->loop, &g->patience);
    g->patience.data = g;
    uv_timer_start(&g->patience, on_impatient, GIVE_UP_MS, 0);
    g->client = queen_client_new(&(struct queen_options){.url = fake_server_url(g->server),
                                                         .loop = &g->loop,
                                                         .attempts = attempts,
                                                         .retry_delay_ms = 1},
                                 &err);
    g->processor = queen_processor_new(g->client,
                                       &(struct queen_processor_options){.queue = "q",
                                                                         .group = "g",
                                                                         .owner = "me",
                                                                         .batch = BATCH,
                                                                         .on_event = on_event,
                                                                         .on_error = on_error,
                                                                         .ctx = g},
                                       &err);
    g->processor->now_ms = stands_still;
    return g;
}

static void on_processor_closed(void *ctx)
{
    struct rig *g = ctx;

    uv_close((uv_handle_t *)&g->patience, NULL);
    queen_client_close(g->client, NULL, NULL);
}

static void close_rig(struct rig *g)
{
    queen_processor_close(g->processor, on_processor_closed, g);
    uv_run(&g->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&g->loop), 0);
    fake_server_free(g->server);
    free(g);
}

// All events are handled once each and acknowledged, although the clock stands still.
static void assert_it_goes_on(enum fault fault, unsigned attempts)
{
    struct rig *g = open_rig(fault, fault == NONE ? 0 : 1, attempts);

    while (g->partition.n_acked < N && !g->impatient)
        uv_run(&g->loop, UV_RUN_ONCE);
    assert_int_equal(g->partition.n_acked, N);
    assert_int_equal(g->partition.n_faults, 0);
    assert_int_equal(g->partition.n_wrong_acks, 0);
    for (unsigned i = 0; i < N; i++)
        assert_int_equal(g->handled[i], 1);
    assert_int_equal(g->partition.n_claims, fault == NONE ? 1 : 2);
    assert_int_equal(g->n_errors, fault == NONE ? 0 : 1);
    close_rig(g);
}

static void without_faults_one_claim_is_enough(void **state)
{
    (void)state;
    assert_it_goes_on(NONE, 1);
}

static void messages_leased_by_a_lost_pop_are_popped_again_at_once(void **state)
{
    (void)state;
    assert_it_goes_on(POP_ANSWER_LOST, 3);
}

static void an_acknowledgement_that_was_lost_does_not_stop_its_partition(void **state)
{
    (void)state;
    assert_it_goes_on(ACK_LOST, 1);
}

static void nor_does_one_whose_answer_was_lost(void **state)
{
    (void)state;
    assert_it_goes_on(ACK_ANSWER_LOST, 1);
}

static void nor_does_one_that_was_sent_again_and_came_too_late(void **state)
{
    (void)state;
    assert_it_goes_on(ACK_ANSWER_LOST, 3);
}

static void earlier_tries_are_sent_and_their_errors_end_with_them(void **state)
{
    static const unsigned pauses_ms[] = {1, 1, 1};
    struct rig *g = open_rig(NONE, 0, 1);
    const char *tries, *second;

    (void)state;
    g->fails = true;
    g->processor->now_ms = advances;
    g->processor->conf.retry =
        (struct queen_event_retry){.pauses_ms = pauses_ms, .n_pauses = 3};
    while (g->partition.n_acked < BATCH && !g->impatient)
        uv_run(&g->loop, UV_RUN_ONCE);
    tries = strstr(g->acks,
                   "\"earlierTries\":[{\"error\":\"first\",\"errorCode\":\"ONE\",\"agoMs\":");
    assert_non_null(tries);
    assert_non_null(second = strstr(tries, "},{\"error\":\"second\",\"agoMs\":"));
    assert_non_null(strstr(second, "\"status\":\"dlq\"},{\"transactionId\":\"t1\""));
    // Neither of the errors is that of the last try, or of the next event.
    assert_null(strstr(second + 10, "\"error\""));
    assert_int_equal(g->handled[0], 3);
    close_rig(g);
}

// A partition that is closed and opened in a circle would keep everybody busy.
static void a_repeated_failure_is_left_to_reconnecting(void **state)
{
    struct rig *g = open_rig(ACK_LOST, 1000, 1);

    (void)state;
    while (g->partition.n_faults > 1000 - 2 && !g->impatient)
        uv_run(&g->loop, UV_RUN_ONCE);
    while (g->processor->reconnect.state == RECONNECT_HEALTHY && !g->impatient)
        uv_run(&g->loop, UV_RUN_ONCE);
    assert_int_equal(g->processor->reconnect.state, RECONNECT_WAITING);
    assert_int_equal(g->partition.n_claims, 2);
    assert_int_equal(g->handled[0], 1);
    assert_int_equal(g->partition.n_acked, 0);
    close_rig(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(without_faults_one_claim_is_enough),
        cmocka_unit_test(messages_leased_by_a_lost_pop_are_popped_again_at_once),
        cmocka_unit_test(an_acknowledgement_that_was_lost_does_not_stop_its_partition),
        cmocka_unit_test(nor_does_one_whose_answer_was_lost),
        cmocka_unit_test(nor_does_one_that_was_sent_again_and_came_too_late),
        cmocka_unit_test(earlier_tries_are_sent_and_their_errors_end_with_them),
        cmocka_unit_test(a_repeated_failure_is_left_to_reconnecting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
