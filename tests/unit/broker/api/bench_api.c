// bench_api.c: nanoseconds per message of push (parse, key, answer) and pop (render).  Prints,
// asserts nothing; build with --buildtype=release and run by hand.
#include "fake.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/id.h"
#include "segment/codec.h"

enum { MESSAGES = 1000, ROUNDS = 1000 };

static void bench_push(const char *name, bool with_id)
{
    struct buf body = {0};
    buf_put_lit(&body, "{\"items\":[");
    for (unsigned i = 0; i < MESSAGES; i++) {
        buf_printf(&body, "%s{\"queue\":\"orders\",\"partition\":\"customer-%u\",",
                   i ? "," : "", i % 10);
        if (with_id) {
            uint8_t id[16];
            id_uuid7(id);
            buf_put_lit(&body, "\"transactionId\":\"");
            buf_put_uuid(&body, id);
            buf_put_lit(&body, "\",");
        }
        buf_printf(
            &body,
            "\"payload\":{\"number\":1%05u,\"text\":\"..................................."
            ".............................\"}}",
            i);
    }
    buf_put_lit(&body, "]}");

    uint64_t parse = 0, render = 0;
    for (unsigned r = 0; r < ROUNDS; r++) {
        struct http_req *req = fake_request_span(buf_span(&body));
        uint64_t t0 = clock_mono_us();
        api_push.handle(req);
        uint64_t t1 = clock_mono_us();
        for (unsigned i = 0; i < MESSAGES; i++)
            fake_given.push->items[i].status = PUSH_QUEUED;
        uint64_t t2 = clock_mono_us();
        fake_given.push->done(fake_given.push, 0);
        parse += t1 - t0;
        render += clock_mono_us() - t2;
    }
    printf("%-28s parse %4.0f ns  answer %4.0f ns  (%zu bytes in, %zu out per message)\n", name,
           (double)parse * 1000 / MESSAGES / ROUNDS, (double)render * 1000 / MESSAGES / ROUNDS,
           body.len / MESSAGES, fake_reply.len / MESSAGES);
    buf_free(&body);
}

static void bench_pop(const char *name, bool text_ids)
{
    struct buf keys = {0}, body = {0};
    segment_begin(&body);
    for (unsigned i = 0; i < 250; i++) {
        uint8_t key[16];
        id_uuid7(key);
        buf_put_bytes(&keys, key, 16);
        segment_put(
            &body, &(struct segment_message){
                       .txid = text_ids ? SPAN("customer-000123-000456") : SPAN_NONE,
                       .payload = SPAN("{\"number\":123456,\"text\":\"........................."
                                       "...............................................\"}")});
    }
    struct pop_run runs[4];
    for (unsigned i = 0; i < 4; i++)
        runs[i] =
            (struct pop_run){buf_span(&keys), buf_span(&body), 1770091506123456 + i, 0, 250};
    uint8_t lane[16] = {1}, lease[16] = {2};
    struct pop_claim claim = {
        SPAN("orders"), SPAN("customer-7"), lane, 9, 0, 4, MESSAGES, runs};
    struct pop_result result = {1, MESSAGES, &claim, lease, NULL};

    uint64_t render = 0;
    size_t len = 0;
    for (unsigned r = 0; r < ROUNDS; r++) {
        api_pop_queue.handle(fake_get("batch=1000", "orders", NULL));
        struct pop_op *op = fake_given.pop;
        uint64_t t0 = clock_mono_us();
        op->render(op, &result);
        render += clock_mono_us() - t0;
        len = op->out.len;
        op->done(op, 0); // nothing to deliver: frees the answer
    }
    printf("%-28s render %4.0f ns  (%zu bytes out per message)\n", name,
           (double)render * 1000 / MESSAGES / ROUNDS, len / MESSAGES);
    buf_free(&keys);
    buf_free(&body);
}

int main(void)
{
    fake_setup(NULL);
    fake_trusts = true;
    bench_push("push, ids given (UUIDv7)", true);
    bench_push("push, ids made here", false);
    bench_pop("pop, 100-byte payloads", false);
    bench_pop("pop, text ids", true);
    fake_teardown(NULL);
    return 0;
}
