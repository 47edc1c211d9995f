// The watermark of groups that found nothing: written together, at most every 30 s for each.
#include "broker/broker_int.h"

#include "base/log.h"
#include "base/mem.h"
#include "db/sql.gen.h"

// How often the watermark of a group that finds nothing is written.
enum { NOTE_EMPTY_EVERY_US = 30 * 1000 * 1000 };

static void on_noted(struct pg_call *pg, int status, const struct pg_reply *reply);

static void watermark_add(struct broker *b, struct group *g)
{
    if (b->n_watermarks == b->cap_watermarks) {
        b->cap_watermarks = b->cap_watermarks > 0 ? b->cap_watermarks * 2 : 16;
        b->watermarks = mem_realloc(b->watermarks, b->cap_watermarks * sizeof *b->watermarks);
    }
    b->watermarks[b->n_watermarks++] = g;
    g->noting = true;
    broker_wake(b);
}

bool group_note_empty(struct broker *b, struct group *g, uint64_t now)
{
    if (!group_is_known(g) || g->n_ready > 0 || g->n_busy > 0 ||
        (g->empty_noted_us != 0 && now - g->empty_noted_us <= NOTE_EMPTY_EVERY_US))
        return false;
    g->empty_noted_us = now;
    watermark_add(b, g);
    return true;
}

// Pops that wait for their note: those that came while one was on its way wait for the next.
void watermarks_flush(struct broker *b)
{
    if (b->noting || b->n_watermarks == 0)
        return;
    struct pop_list *pops = mem_new(struct pop_list);
    TAILQ_INIT(pops);
    TAILQ_CONCAT(pops, &b->noting_pops, seat);

    struct call *c = call_new(b, &pg_stmt_note_empty, pops);
    pg_begin_array(&c->params, PG_TEXT);
    for (unsigned i = 0; i < b->n_watermarks; i++)
        pg_put_text(&c->params,
                    (span){b->watermarks[i]->queue->name, b->watermarks[i]->queue->name_len});
    pg_end_array(&c->params);
    pg_begin_array(&c->params, PG_TEXT);
    for (unsigned i = 0; i < b->n_watermarks; i++)
        pg_put_text(&c->params, (span){b->watermarks[i]->name, b->watermarks[i]->name_len});
    pg_end_array(&c->params);
    for (unsigned i = 0; i < b->n_watermarks; i++)
        b->watermarks[i]->noting = false;
    b->n_watermarks = 0;
    b->noting = true;
    call_send(c, on_noted);
}

// The note is bookkeeping: should it fail, the pop was still empty.
static void on_noted(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *c = pg->owner;
    struct broker *b = c->broker;
    struct pop_list *pops = c->what;
    struct pop_op *pop;

    b->noting = false;
    if (status != 0 && !is_outage(status))
        log_warn("watermark.write_failed", "status=%s detail=\"%s\"", err_name(status),
                 pg_reply_message(reply));
    while ((pop = TAILQ_FIRST(pops))) {
        TAILQ_REMOVE(pops, pop, seat);
        pop_handle(b, pop, POP_ON_NOTED, 0);
    }
    free(pops);
    call_free(c);
    broker_wake(b);
}
