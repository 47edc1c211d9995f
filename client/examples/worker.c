// worker.c: start as many as you like.  They share the partitions of the queue.
//
//      worker http://localhost:6632 orders billing [EXPIRY_S]
#include <stdio.h>
#include <stdlib.h>

#include <queen/processor.h>

#include "until_signal.h"

// Events of one partition are handled one after another, in order.
static enum queen_outcome on_event(struct queen_event *e, void *ctx)
{
    (void)ctx;
    printf("event %s %.*s\n", e->partition, (int)e->message->data_len, e->message->data);
    fflush(stdout);
    return QUEEN_HANDLED; // QUEEN_RETRYABLE: retry after 1 s, 5 s, 15 s
}

static void on_error(const struct queen_error *err, void *ctx)
{
    (void)ctx;
    fprintf(stderr, "%s: %s\n", queen_code_name(err->code), err->text);
}

int main(int argc, char **argv)
{
    sigset_t signals = hold_signals();
    struct queen_error err;

    if (argc < 4) {
        fprintf(stderr, "usage: %s URL QUEUE GROUP [EXPIRY_S]\n", argv[0]);
        return 2;
    }
    struct queen_client *client =
        queen_client_new(&(struct queen_options){.url = argv[1]}, &err);
    struct queen_processor_options options = {
        .queue = argv[2],
        .group = argv[3],
        .expiry_s = argc > 4 ? (unsigned)atoi(argv[4])
                             : 60, // when others may take its partitions if it dies
        .on_event = on_event,
        .on_error = on_error,
    };
    struct queen_processor *worker =
        client ? queen_processor_new(client, &options, &err) : NULL;
    if (!worker) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    wait_for_signal(&signals);
    queen_processor_free(worker); // releases its partitions
    queen_client_free(client);
    return 0;
}
