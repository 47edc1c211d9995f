// write.c: the code that transactions in PostgreSQL and MySQL share.
#include "ingest/write.h"

#include "base/str.h"

enum { WHY_MAX = 1000 }; // length of a dead letter's error text

void write_begin(struct write *w)
{
    w->n = 0;
    arena_init(&w->arena);
    fold_init(&w->fold, &w->arena);
}

void write_end(struct write *w)
{
    fold_deinit(&w->fold);
    arena_deinit(&w->arena);
}

void write_free(struct write *w)
{
    pg_params_free(&w->params);
    my_params_free(&w->my_params);
}

unsigned write_marks(struct write *w, struct write_mark **marks)
{
    unsigned n = 0;

    *marks = arena_new_array(&w->arena, struct write_mark, w->n);
    for (unsigned i = 0; i < w->n; i++) {
        const struct item *item = w->items[i];
        unsigned m = 0;
        while (m < n && !span_eq((*marks)[m].partition, item->partition))
            m++;
        n += m == n;
        (*marks)[m].partition = item->partition;
        if ((*marks)[m].position_us < item->position_us)
            (*marks)[m].position_us = item->position_us;
    }
    return n;
}

void write_done(struct write *w, int status, unsigned n_duplicates, const char *message)
{
    char why[WHY_MAX];

    str_clean_utf8(why, sizeof why,
                   span_of(message[0] != '\0' || status == 0 ? message : err_text(status)));
    w->done(w, status, n_duplicates, span_of(why));
}

unsigned write_mark_duplicate(struct write *w, const uint8_t id[16])
{
    unsigned n = 0;

    for (unsigned i = 0; i < w->n; i++) {
        if (memcmp(w->items[i]->event.id, id, 16) != 0)
            continue;
        w->items[i]->outcome = ITEM_DUPLICATE;
        n++;
    }
    return n;
}
