// Requests that have items for now and for later: one call, all of it or nothing.
#include "broker/push/push_int.h"
#include "broker/schedule/schedule_int.h"

static const struct schedule_cols cols = {
    .status = PUSH_COL_STATUS,
    .id = PUSH_COL_DUP_ID,
    .due = PUSH_COL_CREATED_AT,
    .wait_us = PUSH_MIXED_COL_WAIT_US,
};

void mixed_fill(struct broker *b, struct push_flight *f, struct pg_params *p)
{
    schedule_fill(b, f->later, f->n_later, p);
}

bool mixed_is_later(const struct push_flight *f, const struct pg_reply *reply, unsigned row)
{
    return f->n_later > 0 && !pg_reply_is_null(reply, row, PUSH_MIXED_COL_LATER);
}

static bool is_taken(const struct pg_reply *reply, unsigned row)
{
    return pg_reply_i16(reply, row, PUSH_COL_STATUS) <= SCHEDULED_DUPLICATE;
}

bool mixed_read(struct broker *b, struct push_flight *f, const struct pg_reply *reply)
{
    unsigned n_rows = pg_reply_rows(reply), n_taken = 0;

    for (unsigned row = 0; row < n_rows; row++)
        n_taken += mixed_is_later(f, reply, row) && is_taken(reply, row);
    bool all = n_taken == f->n_later;
    for (unsigned row = 0; row < n_rows; row++) {
        if (!mixed_is_later(f, reply, row))
            continue;
        unsigned i = (unsigned)pg_reply_i32(reply, row, PUSH_MIXED_COL_LATER);
        // If one was refused, the others were taken in vain.
        if (i < f->n_later && schedule_row_is_sound(reply, row, &cols) &&
            (all || !is_taken(reply, row)))
            schedule_read_row(b, f->later[i], reply, row, &cols);
    }
    if (all)
        schedule_expect_first(b, reply, PUSH_MIXED_COL_WAIT_US);
    return all;
}
