// stats.c: counters of a generator thread: merging and the first error.
#include "bench/load/stats.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static void bench_stats_add(struct counter *into, const struct counter *from)
{
    counter_add(into, counter_get(from));
}

void bench_stats_merge(struct bench_stats *into, const struct bench_stats *from)
{
    for (int op = 0; op < BENCH_N_OPS; op++) {
        bench_stats_add(&into->messages[op], &from->messages[op]);
        bench_stats_add(&into->requests[op], &from->requests[op]);
        bench_stats_add(&into->window_messages[op], &from->window_messages[op]);
        bench_stats_add(&into->window_requests[op], &from->window_requests[op]);
        bench_hist_merge(&into->latency[op], &from->latency[op]);
    }
    bench_stats_add(&into->empty_pops, &from->empty_pops);
    bench_stats_add(&into->http_errors, &from->http_errors);
    bench_stats_add(&into->conn_errors, &from->conn_errors);
    bench_stats_add(&into->not_accepted, &from->not_accepted);
    bench_stats_add(&into->buffered, &from->buffered);
    bench_stats_add(&into->ack_refused, &from->ack_refused);
    bench_stats_add(&into->foreign, &from->foreign);
    bench_hist_merge(&into->e2e, &from->e2e);
    if (!into->first_error[0])
        memcpy(into->first_error, from->first_error, sizeof into->first_error);
}

uint64_t bench_stats_errors(const struct bench_stats *s)
{
    return counter_get(&s->http_errors) + counter_get(&s->conn_errors) +
           counter_get(&s->not_accepted) + counter_get(&s->ack_refused);
}

void bench_stats_note(struct bench_stats *s, const char *fmt, ...)
{
    va_list args;

    if (s->first_error[0])
        return;
    va_start(args, fmt);
    vsnprintf(s->first_error, sizeof s->first_error, fmt, args);
    va_end(args);
}
