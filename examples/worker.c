// worker.c: start as many as you like; they share the partitions of the queue.
//
//      worker http://localhost:6632 orders billing [EXPIRY_S]
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include <queen/processor.h>

static enum queen_outcome on_event(struct queen_event *e, void *ctx)
{
    (void)ctx;
    printf("event %s %.*s\n", e->partition, (int)e->message->data_len, e->message->data);
    fflush(stdout);
    return QUEEN_HANDLED; // QUEEN_RETRYABLE: again after 1 s, 5 s, 15 s
}

static void on_opened(const char *partition, void *ctx)
{
    (void)ctx;
    printf("opened %s\n", partition);
    fflush(stdout);
}

static void on_closed(const char *partition, enum queen_closed why, void *ctx)
{
    static const char *const reasons[] = {"lost", "given", "stopped", "rebuilt"};

    (void)ctx;
    printf("closed %s %s\n", partition, reasons[why]);
    fflush(stdout);
}

static void on_error(const struct queen_error *err, void *ctx)
{
    (void)ctx;
    fprintf(stderr, "%s: %s\n", queen_code_name(err->code), err->text);
}

int main(int argc, char **argv)
{
    struct queen_error err;
    sigset_t signals;
    int number;

    if (argc < 4) {
        fprintf(stderr, "usage: %s URL QUEUE GROUP [EXPIRY_S]\n", argv[0]);
        return 2;
    }
    sigemptyset(&signals);
    sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);

    struct queen_client *client =
        queen_client_new(&(struct queen_options){.url = argv[1]}, &err);
    struct queen_processor_options options = {
        .queue = argv[2],
        .group = argv[3],
        .expiry_s = argc > 4 ? (unsigned)atoi(argv[4]) : 60,
        .on_event = on_event,
        .on_opened = on_opened,
        .on_closed = on_closed,
        .on_error = on_error,
    };
    struct queen_processor *worker =
        client ? queen_processor_new(client, &options, &err) : NULL;
    if (!worker) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    sigwait(&signals, &number);
    queen_processor_free(worker); // hands its partitions over
    queen_client_free(client);
    return 0;
}
