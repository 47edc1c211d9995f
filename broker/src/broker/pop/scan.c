// Reads the partitions of a queue for a new group, page by page.
//
// A pop reads the first page (group.c, selector.c). This file reads the other pages, one call
// at a time, while pops are served from the partitions found so far. Until the last page the
// group counts as asking, so that no pop is answered "empty" too early. A pop that does not
// wait is answered after some pages all the same.
#include "broker/broker_int.h"

#include "base/log.h"

static void on_page(struct pg_call *pg, int status, const struct pg_reply *reply);

// The first page has recorded the subscription.
static void ask_page(struct broker *b, struct group *g, span after)
{
    call_send(group_discover_call(b, g, g, &(struct discover_ask){.after = after}), on_page);
}

void group_scan(struct broker *b, struct group *g, span after)
{
    if (g->scan != SCAN_NONE) {
        g->scan = SCAN_TWICE;
        return;
    }
    g->scan = SCAN_PAGES;
    g->n_asking++;
    ask_page(b, g, after);
}

static void on_page(struct pg_call *pg, int status, const struct pg_reply *reply)
{
    struct call *call = pg->owner;
    struct broker *b = call->broker;
    struct group *g = call->what;
    span after = SPAN_NONE;

    if (status == 0 && !group_is_page(reply))
        status = call_unexpected(call, "a partition without a number, id or name");
    if (status == 0) {
        after = group_learn_page(b, g, reply);
    } else {
        group_handle(g, GROUP_MISSED); // the next pop discovers again
        call_failed(call, status, reply);
        log_debug("group.scan_failed", "error=%s", err_name(status));
    }
    if (status == 0 && !after.ptr && g->scan == SCAN_TWICE) {
        g->scan = SCAN_PAGES;
        after = SPAN(""); // the caller has read the first page
    }
    if (after.ptr) {
        ask_page(b, g, after);
        pops_handle(b, &g->seats, POP_ON_PAGE);
        selectors_page_read(b, g);
    } else {
        g->scan = SCAN_NONE;
        g->n_asking--;
        if (status != 0)
            group_place_again(b, g, false);
        if (g->n_asking == 0)
            group_answered(b, g);
    }
    call_free(call);
    broker_wake(b);
}
