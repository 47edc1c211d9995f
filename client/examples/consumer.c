// consumer.c: prints messages until it is interrupted, or none has arrived for a while.
//
//      consumer http://localhost:6632 numbers my-group [IDLE_MS]
#include <stdio.h>
#include <stdlib.h>

#include <queen/consumer.h>

#include "until_signal.h"

static enum queen_verdict on_batch(struct queen_job *job, void *ctx)
{
    const struct queen_batch *batch = queen_job_batch(job);

    (void)ctx;
    for (size_t i = 0; i < batch->n; i++)
        printf("%s %.*s\n", batch->items[i].partition, (int)batch->items[i].data_len,
               batch->items[i].data);
    fflush(stdout);
    return QUEEN_DONE; // acknowledges all of them
}

static void on_error(const struct queen_error *err, void *ctx)
{
    (void)ctx;
    fprintf(stderr, "%s\n", err->text);
}

int main(int argc, char **argv)
{
    sigset_t signals = hold_signals();
    struct queen_error err;

    if (argc < 4) {
        fprintf(stderr, "usage: %s URL QUEUE GROUP [IDLE_MS]\n", argv[0]);
        return 2;
    }
    struct queen_client *client =
        queen_client_new(&(struct queen_options){.url = argv[1]}, &err);
    struct queen_consumer_options options = {
        .pop = {.queue = argv[2], .group = argv[3], .batch = 100, .subscription_mode = "all"},
        .concurrency = 4,
        .renew_every_ms = 20000,
        .idle_ms = argc > 4 ? (unsigned)atoi(argv[4]) : 0,
        .handler = on_batch,
        .on_error = on_error,
    };
    struct queen_consumer *consumer =
        client ? queen_consumer_new(client, &options, &err) : NULL;
    if (!consumer) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    int rc = 0;
    if (options.idle_ms > 0)
        rc = queen_consumer_wait(consumer, &err);
    else
        wait_for_signal(&signals);
    queen_consumer_free(consumer); // finishes running handlers and returns the other messages
    queen_client_free(client);
    return rc == 0 ? 0 : 1;
}
