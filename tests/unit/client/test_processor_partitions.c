// Tests of a processor whose partitions change: a queue that is deleted and made again with
// more, fewer or other partitions, and owners that come and go.  The clock is the test's.
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
#include "until.h"

enum { MAX = 20, GIVE_UP_MS = 60000, EXPIRY_S = 60 };

// As the server has it; the test changes it while the server waits for a request.
struct partition {
    char name[16], id[16];
    bool ours;
    unsigned epoch;
};

struct rig {
    pthread_mutex_t lock; // of the partitions
    struct partition partitions[MAX];
    unsigned n;
    unsigned generation;     // of the queue
    _Atomic unsigned n_held; // pops that wait for hold_pops
    _Atomic bool hold_claims, hold_pops, has_event, conflict;
    struct fake_server *server;
    uv_loop_t loop;
    uv_timer_t patience;
    struct queen_client *client;
    struct queen_processor *processor;
    unsigned n_handled, n_closed[4];
    bool impatient, is_closed;
};

static uint64_t now = 1000000;
static uint64_t test_clock(void) { return now; }

// ---- the server ----

static void make_queue(struct rig *g, const char *prefix, unsigned n)
{
    pthread_mutex_lock(&g->lock);
    g->generation++;
    g->n = n;
    for (unsigned i = 0; i < n; i++) {
        g->partitions[i] = (struct partition){0};
        snprintf(g->partitions[i].name, sizeof g->partitions[i].name, "%s%u", prefix, i);
        snprintf(g->partitions[i].id, sizeof g->partitions[i].id, "%u-%u", g->generation, i);
    }
    pthread_mutex_unlock(&g->lock);
}

static struct partition *named(struct rig *g, const char *name)
{
    for (unsigned i = 0; i < g->n; i++)
        if (strcmp(g->partitions[i].name, name) == 0)
            return &g->partitions[i];
    return NULL;
}

static struct fake_answer list(struct rig *g)
{
    static char text[MAX * 160];
    size_t len = (size_t)sprintf(text, "{\"owners\":[");

    for (unsigned i = 0; i < g->n; i++)
        len += (size_t)sprintf(
            text + len,
            "%s{\"partition\":\"%s\",\"partitionId\":\"%s\",\"owner\":%s,\"epoch\":%u,"
            "\"expired\":false,\"lag\":0,\"freeMs\":%s}",
            i > 0 ? "," : "", g->partitions[i].name, g->partitions[i].id,
            g->partitions[i].ours ? "\"me\"" : "null", g->partitions[i].epoch,
            g->partitions[i].ours ? "null" : "100000");
    strcpy(text + len, "]}");
    return (struct fake_answer){.status = 200, .body = text};
}

static struct fake_answer claim(struct rig *g, const char *body)
{
    static char text[MAX * 160];
    char name[16];
    size_t len = (size_t)sprintf(text, "{\"results\":[");
    const char *comma = "";

    for (const char *at = strstr(body, "partitions"); (at = strstr(at, "\"partition\":\""));) {
        at += 13;
        snprintf(name, sizeof name, "%.*s", (int)strcspn(at, "\""), at);
        struct partition *p = named(g, name);
        if (p) {
            p->ours = true;
            p->epoch++;
            len += (size_t)sprintf(text + len,
                                   "%s{\"partition\":\"%s\",\"partitionId\":\"%s\","
                                   "\"success\":true,\"epoch\":%u}",
                                   comma, p->name, p->id, p->epoch);
        } else {
            len += (size_t)sprintf(text + len,
                                   "%s{\"partition\":\"%s\",\"success\":false,"
                                   "\"error\":\"no such partition\",\"epoch\":0}",
                                   comma, name);
        }
        comma = ",";
    }
    strcpy(text + len, "]}");
    return (struct fake_answer){.status = 200, .body = text};
}

static struct fake_answer serve_locked(struct rig *g, const struct fake_request *r)
{
    if (strstr(r->target, "/owners/claim"))
        return claim(g, r->body);
    if (strstr(r->target, "/owners/renew"))
        return (struct fake_answer){.status = 200, .body = "{\"renewed\":1,\"lost\":[]}"};
    if (strstr(r->target, "/owners/checkpoint"))
        return (struct fake_answer){.status = 200,
                                    .body = "{\"results\":[{\"partition\":\"0\","
                                            "\"success\":true,\"epoch\":1}]}"};
    if (strstr(r->target, "/owners/"))
        return (struct fake_answer){.status = 200, .body = "{\"released\":1}"};
    if (strstr(r->target, "/owners"))
        return list(g);
    if (strncmp(r->target, "/api/v1/ack", 11) == 0)
        return (struct fake_answer){.status = 200, .body = "[{\"success\":true}]"};
    if (g->conflict)
        return (struct fake_answer){.status = 409, .body = "{\"error\":\"another owner\"}"};
    if (!g->has_event)
        return (struct fake_answer){.status = FAKE_SILENCE};
    g->has_event = false;
    return (struct fake_answer){
        .status = 200,
        .body = "{\"leaseId\":\"l\",\"messages\":[{\"id\":\"i\",\"transactionId\":\"t\","
                "\"partitionId\":\"p\",\"leaseId\":\"l\",\"data\":1}]}"};
}

static struct fake_answer serve(const struct fake_request *r, void *ctx)
{
    struct rig *g = ctx;

    if (strstr(r->target, "/owners/claim"))
        wait_until(!g->hold_claims);
    if (strncmp(r->target, "/api/v1/pop", 11) == 0 && g->hold_pops) {
        g->n_held++;
        wait_until(!g->hold_pops);
    }
    pthread_mutex_lock(&g->lock);
    struct fake_answer a = serve_locked(g, r);
    pthread_mutex_unlock(&g->lock);
    return a;
}

// ---- the processor ----

static enum queen_outcome on_event(struct queen_event *e, void *ctx)
{
    queen_event_checkpoint(e);
    ((struct rig *)ctx)->n_handled++;
    return QUEEN_HANDLED;
}

static void on_closed(const char *partition, enum queen_closed why, void *ctx)
{
    (void)partition;
    ((struct rig *)ctx)->n_closed[why]++;
}

static void on_impatient(uv_timer_t *timer) { ((struct rig *)timer->data)->impatient = true; }

static struct rig *open_rig(const char *prefix, unsigned n, enum queen_checkpoints checkpoints)
{
    struct rig *g = calloc(1, sizeof *g);
    struct queen_error err;

    pthread_mutex_init(&g->lock, NULL);
    make_queue(g, prefix, n);
    g->server = fake_server_new(serve, g);
    uv_loop_init(&g->loop);
    uv_timer_init(&g->loop, &g->patience);
    g->patience.data = g;
    uv_timer_start(&g->patience, on_impatient, GIVE_UP_MS, 0);
    g->client = queen_client_new(&(struct queen_options){.url = fake_server_url(g->server),
                                                         .loop = &g->loop,
                                                         .attempts = 1,
                                                         .max_connections = 30},
                                 &err);
    g->processor =
        queen_processor_new(g->client,
                            &(struct queen_processor_options){.queue = "q",
                                                              .group = "g",
                                                              .owner = "me",
                                                              .greedy = true,
                                                              .batch = 1,
                                                              .expiry_s = EXPIRY_S,
                                                              .checkpoints = checkpoints,
                                                              .on_event = on_event,
                                                              .on_closed = on_closed,
                                                              .ctx = g},
                            &err);
    g->processor->now_ms = test_clock;
    return g;
}

static void on_processor_closed(void *ctx)
{
    struct rig *g = ctx;

    g->is_closed = true;
    uv_close((uv_handle_t *)&g->patience, NULL);
    queen_client_close(g->client, NULL, NULL);
}

static void end_rig(struct rig *g)
{
    uv_run(&g->loop, UV_RUN_DEFAULT);
    assert_int_equal(uv_loop_close(&g->loop), 0);
    fake_server_free(g->server);
    pthread_mutex_destroy(&g->lock);
    free(g);
}

static void close_rig(struct rig *g)
{
    queen_processor_close(g->processor, on_processor_closed, g);
    end_rig(g);
}

#define run_until(g, condition)                 \
    do {                                        \
        while (!(condition) && !(g)->impatient) \
            uv_run(&(g)->loop, UV_RUN_ONCE);    \
        assert_true(condition);                 \
    } while (0)

static unsigned n_ours(struct rig *g)
{
    unsigned n = 0;

    pthread_mutex_lock(&g->lock);
    for (unsigned i = 0; i < g->n; i++)
        n += g->partitions[i].ours;
    pthread_mutex_unlock(&g->lock);
    return n;
}

static bool has_all(struct rig *g, unsigned n)
{
    return n_ours(g) == n && g->processor->n_owned == n;
}

static void look_again(struct rig *g)
{
    now += 600;
    g->processor->look_due_ms = 0;
}

// ---- tests ----

static void a_queue_made_again_may_have_more_partitions(void **state)
{
    (void)state;
    struct rig *g = open_rig("", 1, QUEEN_CHECKPOINT_BATCH);

    run_until(g, has_all(g, 1));
    make_queue(g, "", MAX);
    look_again(g);
    run_until(g, g->n_closed[QUEEN_CLOSED_LOST] == 1);
    look_again(g); // the old partition 0 is closed: the new one can be claimed
    run_until(g, has_all(g, MAX));
    close_rig(g);
}

static void a_queue_made_again_may_have_fewer_partitions(void **state)
{
    (void)state;
    struct rig *g = open_rig("", 6, QUEEN_CHECKPOINT_BATCH);

    run_until(g, has_all(g, 6));
    make_queue(g, "", 2);
    look_again(g);
    run_until(g, g->n_closed[QUEEN_CLOSED_LOST] == 6);
    look_again(g);
    run_until(g, has_all(g, 2));
    close_rig(g);
}

static void a_queue_made_again_may_have_other_partitions(void **state)
{
    (void)state;
    struct rig *g = open_rig("a", 3, QUEEN_CHECKPOINT_BATCH);

    run_until(g, has_all(g, 3));
    make_queue(g, "b", 4);
    look_again(g);
    run_until(g, has_all(g, 4));
    assert_int_equal(g->n_closed[QUEEN_CLOSED_LOST], 3);
    close_rig(g);
}

// The ids of events that were handled belong to the partition that they came from.
static void events_of_a_queue_made_again_are_not_taken_for_those_of_before(void **state)
{
    (void)state;
    struct rig *g = open_rig("", 1, QUEEN_CHECKPOINT_MANUAL);
    struct queen_processor *p = g->processor;

    g->has_event = true;
    run_until(g, g->n_handled == 1 && p->assignments[0]->state == ASSIGN_POPPING);
    make_queue(g, "", 1);
    look_again(g);
    run_until(g, g->n_closed[QUEEN_CLOSED_LOST] == 1);
    g->has_event = true;
    look_again(g);
    run_until(g, p->n_handled + p->n_duplicates == 2);
    assert_int_equal(g->n_handled, 2);
    close_rig(g);
}

static void a_pop_refused_while_the_partition_closes_does_not_keep_it_open(void **state)
{
    (void)state;
    struct rig *g = open_rig("", 1, QUEEN_CHECKPOINT_BATCH);
    struct queen_processor *p = g->processor;

    g->hold_pops = true;
    run_until(g, g->n_held == 1);
    p->assignments[0]->due_ms = UINT64_MAX; // as a close that saves a checkpoint leaves it
    queen_processor_close(p, on_processor_closed, g);
    run_until(g, p->assignments[0]->closing);
    g->conflict = true;
    g->hold_pops = false;
    state_changed();
    run_until(g, g->is_closed);
    end_rig(g);
}

// A renewal is about the partitions that were ours when it was sent.
static void a_partition_claimed_during_a_renewal_is_not_renewed_by_it(void **state)
{
    (void)state;
    struct rig *g = open_rig("", 1, QUEEN_CHECKPOINT_BATCH);

    run_until(g, has_all(g, 1));
    pthread_mutex_lock(&g->lock);
    g->partitions[1] = (struct partition){.name = "1", .id = "1-1"};
    g->n = 2;
    pthread_mutex_unlock(&g->lock);
    g->hold_claims = true;
    look_again(g);
    uint64_t claimed = now;
    run_until(g, g->processor->claiming);
    now += EXPIRY_S * 1000 / 3 + 1;
    run_until(g, g->processor->renewing);
    g->hold_claims = false;
    state_changed();
    run_until(g, has_all(g, 2) && !g->processor->renewing);
    assert_int_equal(g->processor->assignments[1]->valid_until_ms, claimed + EXPIRY_S * 1000);
    assert_int_equal(g->processor->assignments[0]->valid_until_ms, now + EXPIRY_S * 1000);
    close_rig(g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_queue_made_again_may_have_more_partitions),
        cmocka_unit_test(a_queue_made_again_may_have_fewer_partitions),
        cmocka_unit_test(a_queue_made_again_may_have_other_partitions),
        cmocka_unit_test(events_of_a_queue_made_again_are_not_taken_for_those_of_before),
        cmocka_unit_test(a_pop_refused_while_the_partition_closes_does_not_keep_it_open),
        cmocka_unit_test(a_partition_claimed_during_a_renewal_is_not_renewed_by_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
