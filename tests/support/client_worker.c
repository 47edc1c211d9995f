// client_worker.c: a processor whose handler does what the event says; for
// tests/e2e/test_processor.py.
//
// Events are {"n": 1, "do": "fail" | "die" | "slow" | ...}; every step is a line on standard
// output.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <queen/processor.h>

static bool says(const struct queen_event *e, const char *word)
{
    return memmem(e->message->data, e->message->data_len, word, strlen(word)) != NULL;
}

static bool by_hand;

static enum queen_outcome on_event(struct queen_event *e, void *ctx)
{
    (void)ctx;
    printf("event %s %u %.*s\n", e->partition, e->tried, (int)e->message->data_len,
           e->message->data);
    fflush(stdout);
    if (says(e, "slow"))
        usleep(300000);
    if (says(e, "checkpoint") && by_hand)
        queen_event_checkpoint(e);
    if (says(e, "fail")) {
        queen_event_error(e, "as told");
        return says(e, "once") && e->tried > 0 ? QUEEN_HANDLED : QUEEN_RETRYABLE;
    }
    if (says(e, "hopeless")) {
        queen_event_error(e, "no hope");
        return QUEEN_HOPELESS;
    }
    return QUEEN_HANDLED;
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
    printf("error %s %s\n", queen_code_name(err->code), err->text);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    static const unsigned pauses_ms[] = {50, 100, 150};
    struct queen_error err;
    sigset_t signals;
    int number;

    if (argc < 6)
        return 2;
    by_hand = argc > 6 && strcmp(argv[6], "manual") == 0;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigprocmask(SIG_BLOCK, &signals, NULL);
    struct queen_client *client = queen_client_new(
        &(struct queen_options){.url = argv[1], .retry_delay_ms = 100, .attempts = 2}, &err);
    struct queen_processor_options options = {
        .queue = argv[2],
        .group = argv[3],
        .owner = argv[4],
        .expiry_s = (unsigned)atoi(argv[5]),
        .look_ms = 200,
        .checkpoints = by_hand ? QUEEN_CHECKPOINT_MANUAL : QUEEN_CHECKPOINT_BATCH,
        .retry = {.by_queue = argc > 6 && strcmp(argv[6], "by-queue") == 0,
                  .pauses_ms = pauses_ms,
                  .n_pauses = 3},
        .on_event = on_event,
        .on_opened = on_opened,
        .on_closed = on_closed,
        .on_error = on_error,
    };
    struct queen_processor *p = client ? queen_processor_new(client, &options, &err) : NULL;
    if (!p) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    sigwait(&signals, &number);
    queen_processor_free(p);
    queen_client_free(client);
    printf("end\n");
    return 0;
}
