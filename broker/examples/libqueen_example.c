// libqueen_example.c: the broker inside your own program, without HTTP.
//
//      libqueen_example "host=localhost user=postgres dbname=postgres"
//
// One libuv loop, one broker on it.  Each step is an operation in our own memory.  Its done
// callback starts the next one: push 10 messages, pop them, acknowledge them, run a statement.
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uv.h>

#include "base/arena.h"
#include "base/attrs.h"
#include "base/id.h"
#include "base/span.h"
#include "broker/broker.h"
#include "db/sql.gen.h"
#include "pg/migrate.h"
#include "segment/codec.h"

enum { N_MESSAGES = 10, LEASE_TEXT = 36, UUID_TEXT = 36 };

// Our own statements are numbered after those of the library.
static const struct pg_statement count_messages = {
    .name = "example_count",
    .text = "select count(*)::int8 from queen.queues where name = $1::text",
    .index = PG_STMT_COUNT,
};

struct example {
    uv_loop_t loop;
    struct house *house;
    struct broker *broker;
    struct arena arena;
    int exit_code;

    char queue[32];
    char payloads[N_MESSAGES][32];
    struct push_item items[N_MESSAGES];
    struct push_op push;
    struct pop_op pop;
    struct ack_entry entries[N_MESSAGES];
    unsigned n_entries;
    char lease[LEASE_TEXT];
    struct ack_op ack;
    struct custom_op custom;
};

// In the order they run.
static void push(struct example *e);
static void on_pushed(struct push_op *op, int status);
static void pop(struct example *e);
static void on_messages(struct pop_op *op, const struct pop_result *result);
static void on_popped(struct pop_op *op, int status);
static void on_acked(struct ack_op *op, int status);
static void on_counted(struct custom_op *op, int status, const struct pg_reply *reply);
static void finish(struct example *e, const char *step, int status, const struct fault *why);
static void on_closed(void *ctx);

static struct broker_conf broker_settings(const char *conninfo)
{
    struct batch_conf batch = {.max_requests = 500,
                               .max_items = 1000,
                               .preferred = 50,
                               .hold_ms = 5,
                               .max_flights = 4};

    return (struct broker_conf){
        .pg = {.conninfo = conninfo,
               .max_conns = 4,
               .keep_conns = 1,
               .connect_timeout_ms = 2000,
               .deadline_ms = 35000,
               .idle_close_ms = 30000},
        .push = batch,
        .pop = batch,
        .ack = batch,
        .renew = batch,
        .tx = batch,
        .custom = batch,
        .limit = {.min = 1,
                  .max = 4,
                  .alpha = 3,
                  .beta = 12,
                  .window_samples = 50,
                  .min_window_s = 30,
                  .update_ms = 1000},
        .max_pending = 1000,
        .poll_initial_ms = 100,
        .poll_threshold = 3,
        .poll_max_ms = 5000,
        .poll_multiplier = 3,
        .evict = {.interval_ms = 60000, .max_segments = 1000},
        .retain = {.interval_ms = 300000, .max_segments = 1000},
        .idle_partition_days = 30,
        .history_days = 90,
    };
}

static void push(struct example *e)
{
    for (unsigned i = 0; i < N_MESSAGES; i++) {
        struct push_item *item = &e->items[i];
        snprintf(e->payloads[i], sizeof e->payloads[i], "{\"number\": %u}", i);
        item->queue = span_of(e->queue);
        item->partition = SPAN("Default");
        item->payload = span_of(e->payloads[i]);
        id_uuid7(item->key); // no transaction id: the key is the id
        item->txid_is_key = true;
    }
    e->push = (struct push_op){.items = e->items, .n_items = N_MESSAGES, .done = on_pushed};
    broker_push(e->broker, &e->push);
}

static void on_pushed(struct push_op *op, int status)
{
    struct example *e = container_of(op, struct example, push);
    unsigned n_queued = 0;

    if (status != 0) {
        finish(e, "push", status, &op->op.why);
        return;
    }
    for (unsigned i = 0; i < N_MESSAGES; i++)
        n_queued += op->items[i].status == PUSH_QUEUED;
    printf("pushed %u messages to %s\n", n_queued, e->queue);
    pop(e);
}

static void pop(struct example *e)
{
    e->pop = (struct pop_op){
        .queue = span_of(e->queue),
        .group = SPAN("__QUEUE_MODE__"),
        .batch = N_MESSAGES,
        .partitions = 1,
        .wait = true,
        .timeout_ms = 5000,
        .render = on_messages,
        .done = on_popped,
    };
    broker_pop(e->broker, &e->pop);
}

// Segments are borrowed only for this call, so copy the ids that the acknowledgement needs
// later.
static void on_messages(struct pop_op *op, const struct pop_result *result)
{
    struct example *e = container_of(op, struct example, pop);

    for (unsigned c = 0; c < result->n_claims; c++) {
        const struct pop_claim *claim = &result->claims[c];
        for (unsigned s = 0; s < claim->n_runs; s++) {
            const struct pop_run *run = &claim->runs[s];
            struct segment_walk walk = segment_walk(run->body);
            struct segment_message m;
            segment_skip(&walk, run->from);
            for (unsigned i = 0; i < run->n && segment_next(&walk, &m); i++) {
                struct ack_entry *entry = &e->entries[e->n_entries++];
                char text[UUID_TEXT];
                id_format_uuid((const uint8_t *)run->keys.ptr + (size_t)16 * (run->from + i),
                               text);
                entry->txid = arena_copy(&e->arena, (span){text, sizeof text});
                memcpy(entry->partition_id, claim->partition_id, 16);
                entry->status = ACK_COMPLETED;
                entry->lease = (span){e->lease, sizeof e->lease};
                printf("popped " SPAN_FMT "\n", SPAN_ARG(m.payload));
            }
        }
    }
    id_format_uuid(result->lease, e->lease);
}

static void on_popped(struct pop_op *op, int status)
{
    struct example *e = container_of(op, struct example, pop);

    if (status != 0 || op->n_messages == 0) {
        finish(e, "pop", status != 0 ? status : QE_NOT_FOUND, &op->op.why);
        return;
    }
    e->ack = (struct ack_op){
        .entries = e->entries,
        .n_entries = e->n_entries,
        .group = SPAN("__QUEUE_MODE__"),
        .arena = &e->arena,
        .done = on_acked,
    };
    broker_ack(e->broker, &e->ack);
}

static void on_acked(struct ack_op *op, int status)
{
    struct example *e = container_of(op, struct example, ack);
    unsigned n_ok = 0;

    if (status != 0) {
        finish(e, "ack", status, &op->op.why);
        return;
    }
    for (unsigned i = 0; i < e->n_entries; i++)
        n_ok += e->entries[i].why == ACK_OK;
    printf("acknowledged %u messages\n", n_ok);

    e->custom = (struct custom_op){.statement = &count_messages, .done = on_counted};
    pg_param_text(&e->custom.params, span_of(e->queue));
    broker_custom(e->broker, &e->custom);
}

static void on_counted(struct custom_op *op, int status, const struct pg_reply *reply)
{
    struct example *e = container_of(op, struct example, custom);

    if (status == 0)
        printf("a statement of our own found %" PRId64 " queue of that name\n",
               pg_reply_i64(reply, 0, 0));
    finish(e, "custom", status, &op->op.why);
}

static void finish(struct example *e, const char *step, int status, const struct fault *why)
{
    if (status != 0) {
        fprintf(stderr, "%s failed: %s\n", step, why->text[0] ? why->text : err_text(status));
        e->exit_code = 1;
    }
    broker_drain(e->broker);
    broker_close(e->broker, on_closed, e);
}

static void on_closed(void *ctx)
{
    struct example *e = ctx;

    house_free(e->house);
    pg_params_free(&e->custom.params);
    buf_free(&e->pop.out);
    arena_deinit(&e->arena);
}

int main(int argc, char **argv)
{
    struct example *e = calloc(1, sizeof *e);
    struct fault f;

    if (argc != 2 || !e) {
        fprintf(stderr, "usage: libqueen_example CONNINFO\n");
        free(e);
        return 1;
    }
    if (pg_migrate(argv[1], &pg_schema_queen, NULL, &f) != 0) {
        fprintf(stderr, "migrate failed: %s\n", f.text);
        free(e);
        return 1;
    }
    snprintf(e->queue, sizeof e->queue, "example-%" PRIx64, id_random_u64());
    arena_init(&e->arena);
    uv_loop_init(&e->loop);
    e->house = house_new(1);
    struct broker_conf conf = broker_settings(argv[1]);
    e->broker = broker_open(e->house, 0, &e->loop, &conf);
    push(e);
    uv_run(&e->loop, UV_RUN_DEFAULT);

    int code = e->exit_code;
    if (uv_loop_close(&e->loop) != 0) {
        fprintf(stderr, "the broker left a handle open\n");
        code = 1;
    }
    free(e);
    return code;
}
