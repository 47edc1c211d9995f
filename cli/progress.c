// progress.c: draws the progress of a long command.
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "cli/out.h"
#include "cli/table.h"

enum { WIDTH = 24, EVERY_US = 100000 };

void progress_begin(struct progress *p, const struct out *o, uint64_t total)
{
    *p = (struct progress){.total = total,
                           .shown = isatty(STDERR_FILENO) && !o->quiet,
                           .begin_us = clock_mono_us()};
}

static void progress_draw(struct progress *p, uint64_t done, uint64_t messages)
{
    double seconds = (double)(clock_mono_us() - p->begin_us) / 1e6;
    double rate = seconds > 0 ? (double)messages / seconds : 0;
    struct buf b = {0};

    if (p->total > 0) {
        done = done < p->total ? done : p->total;
        unsigned full = (unsigned)(WIDTH * done / p->total);
        buf_putc(&b, '[');
        for (unsigned i = 0; i < WIDTH; i++)
            buf_putc(&b, i < full ? '#' : '-');
        buf_printf(&b, "] %3u%%  ", (unsigned)(100 * done / p->total));
    }
    cell_put_count(&b, (int64_t)messages);
    buf_put_lit(&b, " messages  ");
    cell_put_count(&b, (int64_t)rate);
    buf_put_lit(&b, "/s");
    if (p->total > done && done > 0 && seconds > 1) {
        buf_put_lit(&b, "  ");
        cell_put_seconds(&b,
                         (double)(int64_t)(seconds / (double)done * (double)(p->total - done)));
        buf_put_lit(&b, " left");
    }
    fprintf(stderr, "\r" SPAN_FMT "\033[K", SPAN_ARG(buf_span(&b)));
    buf_free(&b);
}

void progress_update(struct progress *p, uint64_t done, uint64_t messages)
{
    uint64_t now = clock_mono_us();

    if (!p->shown || now - p->drawn_us < EVERY_US)
        return;
    p->drawn_us = now;
    progress_draw(p, done, messages);
}

void progress_end(struct progress *p, uint64_t done, uint64_t messages)
{
    if (!p->shown)
        return;
    progress_draw(p, done, messages);
    fputc('\n', stderr);
}
