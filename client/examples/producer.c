// producer.c: sends the lines of standard input as messages.
//
//      seq 1000 | producer http://localhost:6632 numbers
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <queen/producer.h>

static void on_result(const struct queen_push_result *result, const struct queen_error *err,
                      void *tag, void *ctx)
{
    (void)result, (void)tag, (void)ctx;
    if (err->code != 0)
        fprintf(stderr, "not stored: %s\n", err->text);
}

int main(int argc, char **argv)
{
    struct queen_error err;
    char line[65536];

    if (argc != 3) {
        fprintf(stderr, "usage: %s URL QUEUE   (one JSON value a line on standard input)\n",
                argv[0]);
        return 2;
    }
    struct queen_client *client =
        queen_client_new(&(struct queen_options){.url = argv[1]}, &err);
    if (!client) {
        fprintf(stderr, "%s\n", err.text);
        return 1;
    }
    struct queen_producer_options options = {.linger_ms = 50, .on_result = on_result};
    struct queen_producer *producer = queen_producer_new(client, &options, &err);
    while (producer && fgets(line, sizeof line, stdin)) {
        struct queen_message m = {.queue = argv[2], .payload = line};
        // Waits when the buffer is full.  Rejects a line that is not JSON.
        if (queen_producer_send(producer, &m, NULL, &err) != 0)
            fprintf(stderr, "%s\n", err.text);
    }
    int rc = queen_producer_flush(producer, 0, &err);
    struct queen_producer_stats stats;
    queen_producer_stats(producer, &stats);
    printf("stored %llu, failed %llu\n", (unsigned long long)stats.stored,
           (unsigned long long)stats.failed);
    queen_producer_free(producer);
    queen_client_free(client);
    return rc == 0 && stats.failed == 0 ? 0 : 1;
}
