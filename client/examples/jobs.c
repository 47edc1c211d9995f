// jobs.c: several handlers work on the jobs of one work queue (ordering "none").
//
//      queen queue create mails --work-queue
//      jobs http://localhost:6632 mails my-group 8 [IDLE_MS]
//
// A job is JSON: {"ms": 300} takes that long, {"notBefore": 1790000000} is given back until
// then,
// {"bad": true} is dead-lettered.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include <queen/consumer.h>

#include "until_signal.h"

// The number behind "name": in the job, or 0.
static long number_of(const struct queen_delivery *d, const char *name)
{
    const char *at = memmem(d->data, d->data_len, name, strlen(name));

    return at ? strtol(at + strlen(name), NULL, 10) : 0;
}

static enum queen_verdict on_job(struct queen_job *job, void *ctx)
{
    const struct queen_delivery *d = &queen_job_batch(job)->items[0];
    long wait_s = number_of(d, "\"notBefore\":") - (long)time(NULL);

    (void)ctx;
    if (wait_s > 0) {
        printf("later %.*s\n", (int)d->data_len, d->data);
        fflush(stdout);
        queen_job_retry_after(job, (unsigned)wait_s);
        return QUEEN_RETRY;
    }
    if (number_of(d, "\"ms\":") > 0)
        usleep((useconds_t)number_of(d, "\"ms\":") * 1000); // the lease is extended meanwhile
    printf("done %.*s\n", (int)d->data_len, d->data);
    fflush(stdout);
    return memmem(d->data, d->data_len, "\"bad\":true", 10) ? QUEEN_DEAD : QUEEN_DONE;
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

    if (argc < 5) {
        fprintf(stderr, "usage: %s URL QUEUE GROUP HANDLERS [IDLE_MS]\n", argv[0]);
        return 2;
    }
    struct queen_client *client =
        queen_client_new(&(struct queen_options){.url = argv[1]}, &err);
    struct queen_consumer_options options = {
        .pop = {.queue = argv[2], .group = argv[3], .batch = 1, .subscription_mode = "all"},
        .concurrency = (unsigned)atoi(argv[4]),
        .renew_every_ms = 1000, // well below the lease time of the queue
        .renew_seconds = 30,
        .idle_ms = argc > 5 ? (unsigned)atoi(argv[5]) : 0,
        .handler = on_job,
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
    queen_consumer_free(consumer);
    queen_client_free(client);
    return rc == 0 ? 0 : 1;
}
