// Reads the partitions of a queue for a new group, page by page.
//
// A pop reads the first page (group.c, selector.c). This file reads the other pages, one call
// at a time, while pops are served from the partitions found so far. Until the last page the
// group counts as asking, so that no pop is answered "empty" too early. A pop that does not
// wait is answered after some pages all the same.
#include "broker/broker_int.h"

#include "base/log.h"
#include "db/sql.gen.h"

static void on_page(struct pg_call *pg, int status, const struct pg_reply *reply);

static void ask_page(struct broker *b, struct group *g, span after)
{
    struct call *call = call_new(b, &pg_stmt_discover, g);

    pg_param_text(&call->params, (span){g->queue->name, g->queue->name_len});
    pg_param_null(&call->params, PG_TEXT);
    pg_param_text(&call->params, (span){g->name, g->name_len});
    for (unsigned i = 0; i < 4; i++) // the first page has recorded the subscription
        pg_param_text(&call->params, SPAN(""));
    pg_param_text(&call->params, after);
    call_send(call, on_page);
}

void group_scan(struct broker *b, struct group *g, span after)
{
    if (g->scanning) {
        g->rescan = true;
        return;
    }
    g->scanning = true;
    g->n_asking++;
    ask_page(b, g, after);
}

static void on_page(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *call = pg->owner;
    struct broker *b = call->broker;
    struct group *g = call->what;
    span after = SPAN_NONE;

    if (status == 0 && !group_learn_page(b, g, reply, &after))
        status = call_unexpected(call, "a partition without a number, id or name");
    if (status != 0) {
        g->known = false; // the next pop discovers again
        log_debug("group.scan_failed", "error=%s", err_name(status));
    }
    if (status == 0 && !after.ptr && g->rescan) {
        g->rescan = false;
        after = SPAN(""); // the caller has read the first page
    }
    if (after.ptr) {
        ask_page(b, g, after);
        pops_page_read(b, &g->seats);
        selectors_page_read(b, g);
    } else {
        g->scanning = g->rescan = false;
        g->n_asking--;
        if (status != 0)
            group_place_again(b, g, false);
        if (g->n_asking == 0)
            group_answered(b, g);
    }
    call_free(call);
    broker_wake(b);
}
