// client_worker.c: a processor whose handler obeys the event; for
// tests/e2e/broker/test_processor.py.
//
// Events are {"n": 1, "do": "fail" | "wait" | ...}; every step is a line on standard output.
// An event that is to wait does so until there is a byte on standard input, or its end.
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <queen/processor.h>

#include "until_signal.h"

static bool by_hand;
static const char *moved_to; // queue
static _Atomic unsigned n_forgotten;

static bool says(const struct queen_delivery *d, const char *word)
{
    return memmem(d->data, d->data_len, word, strlen(word)) != NULL;
}

static enum queen_outcome handle(const struct queen_delivery *d, const char *partition,
                                 unsigned tried, const char **error)
{
    printf("event %s %u %.*s\n", partition, tried, (int)d->data_len, d->data);
    fflush(stdout);
    char go;
    if (says(d, "wait") && read(STDIN_FILENO, &go, 1) < 0)
        abort();
    if (says(d, "fail")) {
        *error = "as told";
        return says(d, "once") && tried > 0 ? QUEEN_HANDLED : QUEEN_RETRYABLE;
    }
    if (says(d, "hopeless")) {
        *error = "no hope";
        return QUEEN_HOPELESS;
    }
    if (says(d, "babel")) { // longer than what is kept of it, and not all of it is UTF-8
        static char text[601];
        for (int i = 0; i < 600; i += 2)
            memcpy(text + i, i == 0 ? "\xe9 " : "\xd0\xb6", 2);
        *error = text;
        return QUEEN_HOPELESS;
    }
    return QUEEN_HANDLED;
}

static enum queen_outcome on_event(struct queen_event *e, void *ctx)
{
    const char *error = NULL;

    (void)ctx;
    if (says(e->message, "checkpoint") && by_hand)
        queen_event_checkpoint(e);
    enum queen_outcome outcome = handle(e->message, e->partition, e->tried, &error);
    if (error)
        queen_event_error(e, error);
    return outcome;
}

// Each batch is answered by a thread of its own, after on_events has returned.
static void *answer(void *arg)
{
    struct queen_events *b = arg;
    const char *error;

    usleep(10000);
    printf("batch %s %zu\n", b->partition, b->n);
    for (size_t i = 0; i < b->n && !queen_events_is_over(b); i++) {
        error = NULL;
        enum queen_outcome outcome = handle(b->messages[i], b->partition, b->tried, &error);
        if (says(b->messages[i], "move"))
            queen_events_move(b, i, moved_to, b->partition);
        else if (!says(b->messages[i], "forget") || n_forgotten++ >= 3)
            queen_events_answer(b, i, outcome, error);
        if (says(b->messages[i], "checkpoint") && by_hand)
            queen_events_checkpoint(b, i);
    }
    queen_events_done(b);
    return NULL;
}

static void on_events(struct queen_events *b, void *ctx)
{
    pthread_t thread;

    (void)ctx;
    if (pthread_create(&thread, NULL, answer, b) != 0)
        abort();
    pthread_detach(thread);
}

static void on_opened(const struct queen_opened *o, void *ctx)
{
    (void)ctx;
    printf("opened %s\n", o->partition);
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
    sigset_t signals = hold_signals();
    struct queen_error err;

    if (argc < 6)
        return 2;
    bool batches = argc > 6 && strncmp(argv[6], "batch", 5) == 0;
    char moved[300];
    snprintf(moved, sizeof moved, "%s.moved", argv[2]);
    moved_to = moved;
    by_hand = argc > 6 && strstr(argv[6], "manual") != NULL;
    bool patient = argc > 6 && strstr(argv[6], "patient"); // as most programs are
    struct queen_client *client = queen_client_new(
        &(struct queen_options){.url = argv[1],
                                .retry_delay_ms = patient ? 0 : 100,
                                .attempts = patient ? 0 : 2,
                                .max_connections = argc > 8 ? (unsigned)atoi(argv[8]) : 0},
        &err);
    struct queen_processor_options options = {
        .queue = argv[2],
        .group = argv[3],
        .owner = argv[4],
        .expiry_s = (unsigned)atoi(argv[5]),
        .look_ms = argc > 7 ? (unsigned)atoi(argv[7]) : 0,
        .checkpoints = by_hand ? QUEEN_CHECKPOINT_MANUAL : QUEEN_CHECKPOINT_BATCH,
        .retry = {.by_queue = argc > 6 && strcmp(argv[6], "by-queue") == 0,
                  .pauses_ms = pauses_ms,
                  .n_pauses = 3},
        .on_event = batches ? NULL : on_event,
        .on_events = batches ? on_events : NULL,
        .on_opened = on_opened,
        .on_closed = on_closed,
        .on_error = on_error,
    };
    struct queen_processor *p = client ? queen_processor_new(client, &options, &err) : NULL;
    if (!p) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    wait_for_signal(&signals);
    queen_processor_stop(p);
    printf("stopping\n"); // what ends from here on is followed by nothing
    fflush(stdout);
    queen_processor_free(p);
    queen_client_free(client);
    printf("end\n");
    return 0;
}
