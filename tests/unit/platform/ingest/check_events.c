// check_events.c: checks whether each line of standard input is an event; for
// test_schemas.py.
#include <stdio.h>
#include <stdlib.h>

#include "ingest/event.h"

int main(void)
{
    char *line = NULL;
    size_t size = 0;
    ssize_t n;

    while ((n = getline(&line, &size, stdin)) > 0) {
        struct arena a;
        struct event e;
        struct fault f = {0};
        arena_init(&a);
        span text = {line, (size_t)n - (line[n - 1] == '\n')};
        int rc = event_read(&e, text, SPAN_NONE, &a, &f);
        printf("%s\n", rc == 0 ? "ok" : f.text);
        arena_deinit(&a);
    }
    free(line);
    return 0;
}
