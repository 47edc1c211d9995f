// write.c: the code that transactions in PostgreSQL and MySQL share.
#include "ingest/write.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

enum { WHY_MAX = 1000 }; // length of a dead letter's error text

void write_begin(struct write *w)
{
    w->n = w->n_marks = 0;
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
    for (unsigned i = 0; i < w->n_seen; i++)
        free(w->seen[i].partition);
    free(w->seen);
    pg_params_free(&w->params);
    my_params_free(&w->my_params);
}

// ---- checkpoints ----

static struct write_seen *find_seen(const struct write *w, span partition)
{
    for (unsigned i = 0; i < w->n_seen; i++)
        if (span_eq(span_of(w->seen[i].partition), partition))
            return &w->seen[i];
    return NULL;
}

static struct write_mark *write_mark_of(struct write *w, span partition)
{
    unsigned m = 0;

    while (m < w->n_marks && !span_eq(w->marks[m].partition, partition))
        m++;
    if (m == w->n_marks) {
        const struct write_seen *seen = find_seen(w, partition);
        w->marks[w->n_marks++] =
            (struct write_mark){.partition = partition, .seen_us = seen ? seen->stamp_us : 0};
    }
    return &w->marks[m];
}

void write_make_marks(struct write *w)
{
    int64_t now = (int64_t)clock_wall_us();

    w->stamp_us = now > w->stamp_us ? now : w->stamp_us + 1;
    w->marks = arena_new_array(&w->arena, struct write_mark, w->n);
    w->n_marks = 0;
    for (unsigned i = 0; i < w->n; i++) {
        const struct item *item = w->items[i];
        struct write_mark *m = write_mark_of(w, item->partition);
        if (!item->is_held && m->position_us < item->position_us)
            m->position_us = item->position_us;
    }
}

static struct write_seen *seen_of(struct write *w, span partition)
{
    struct write_seen *seen = find_seen(w, partition);

    if (seen)
        return seen;
    w->seen = mem_realloc(w->seen, (w->n_seen + 1) * sizeof *w->seen);
    seen = &w->seen[w->n_seen++];
    *seen = (struct write_seen){.partition = mem_strndup(partition.ptr, partition.len)};
    return seen;
}

static void remember_marks(struct write *w)
{
    for (unsigned i = 0; i < w->n_marks; i++)
        seen_of(w, w->marks[i].partition)->stamp_us = w->stamp_us;
}

// The next stamp is later, whatever the clock of the other process was.
void write_note_stamp(struct write *w, span partition, int64_t stamp_us)
{
    struct write_seen *seen = seen_of(w, partition);

    seen->in_doubt = false;
    if (seen->stamp_us < stamp_us)
        seen->stamp_us = stamp_us;
    if (w->stamp_us < stamp_us)
        w->stamp_us = stamp_us;
}

void write_doubt_stamps(struct write *w)
{
    for (unsigned i = 0; i < w->n_seen; i++)
        w->seen[i].in_doubt = true;
}

void write_forget_doubted(struct write *w)
{
    for (unsigned i = 0; i < w->n_seen; i++)
        if (w->seen[i].in_doubt)
            w->seen[i].stamp_us = 0;
}

void write_forget(struct write *w, span partition)
{
    struct write_seen *seen = find_seen(w, partition);

    if (seen)
        seen->stamp_us = 0;
}

// Triggers of the tenant may raise the same state: then no checkpoint was asked for.
bool write_is_behind(const struct write *w, const char *sqlstate)
{
    bool asked = false;

    for (unsigned i = 0; i < w->n_marks; i++)
        asked = asked || w->marks[i].seen_us > 0;
    return asked && strcmp(sqlstate, "QT001") == 0;
}

// ---- outcomes ----

void write_done(struct write *w, int status, unsigned n_duplicates, const char *message)
{
    char why[WHY_MAX];

    if (status == 0 && n_duplicates == 0)
        remember_marks(w);
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
