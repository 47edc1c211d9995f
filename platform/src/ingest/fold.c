// fold.c: merges events into rows.
#include "ingest/fold.h"

#include "base/map.h"
#include "ingest/money.h"
#include "ingest/value.h"
#include "json/write.h"

struct fold_id {
    uint8_t id[16];
    UT_hash_handle hh;
};

struct fold_row {
    const struct event *event; // source of the values
    int64_t at_us;             // time of its newest event
    int64_t first_us;          // time of its first event in this fold
    int64_t amount;            // adjustments: the sum
    int sign;                  // adjustments: their direction; 0: none yet
    bool has_topup;            // adjustments: one of them is positive
    int64_t topup_us;          // time of the newest positive one
    struct fold_row *next;
    UT_hash_handle hh; // by row id of the event
};

void fold_init(struct fold *f, struct arena *a)
{
    *f = (struct fold){.arena = a};
    for (unsigned t = 0; t < N_TABLES; t++)
        f->last[t] = &f->first[t];
}

void fold_deinit(struct fold *f)
{
    for (unsigned t = 0; t < N_TABLES; t++)
        HASH_CLEAR(hh, f->rows[t]);
    HASH_CLEAR(hh, f->events);
    HASH_CLEAR(hh, f->deleted);
}

static bool has_id(struct fold_id *set, const uint8_t id[16])
{
    struct fold_id *found;

    HASH_FIND(hh, set, id, 16, found);
    return found != NULL;
}

static void add_id(struct fold *f, struct fold_id **set, const uint8_t id[16])
{
    if (has_id(*set, id))
        return;
    struct fold_id *i = arena_new(f->arena, struct fold_id);
    memcpy(i->id, id, sizeof i->id);
    HASH_ADD(hh, *set, id, 16, i);
}

const uint8_t *fold_next(const struct fold_id **at)
{
    const struct fold_id *i = *at;

    *at = i ? i->hh.next : NULL;
    return i ? i->id : NULL;
}

static struct fold_row *find_row(struct fold *f, enum event_table table, const struct event *e)
{
    struct fold_row *row;

    HASH_FIND(hh, f->rows[table], e->row, 16, row);
    return row;
}

static struct fold_row *new_row(struct fold *f, enum event_table table, const struct event *e)
{
    struct fold_row *row = arena_new(f->arena, struct fold_row);

    row->event = e;
    row->at_us = row->first_us = e->at_us;
    *f->last[table] = row;
    f->last[table] = &row->next;
    if (!e->type->appends && !find_row(f, table, e))
        HASH_ADD_KEYPTR(hh, f->rows[table], e->row, 16, row);
    return row;
}

// Adjustments of both directions in one sum would hide an intermediate balance that exceeds the
// column.  Then the outcome of an event would depend on the other events of the transaction.
static bool turns_direction(struct fold *f, const struct event *e)
{
    const struct fold_row *row = find_row(f, TABLE_ADJUSTMENTS, e);

    return row && ((row->sign > 0 && e->amount < 0) || (row->sign < 0 && e->amount > 0));
}

static bool fold_fits(struct fold *f, const struct event *e)
{
    bool deletes = e->type->table == TABLE_NONE;

    if (has_id(f->events, e->id) || (f->n_events > 0 && deletes != (f->n_deleted > 0)))
        return false;
    switch (e->type->table) {
    case TABLE_CUSTOMERS:
        return !find_row(f, TABLE_PATCHES, e);
    case TABLE_WALLETS:
        return !find_row(f, TABLE_ADJUSTMENTS, e);
    case TABLE_ADJUSTMENTS:
        return !turns_direction(f, e);
    default:
        return true;
    }
}

static void add_adjustment(struct fold *f, const struct event *e)
{
    struct fold_row *row = find_row(f, TABLE_ADJUSTMENTS, e);

    if (!row)
        row = new_row(f, TABLE_ADJUSTMENTS, e);
    row->event = e;
    row->amount += e->amount;
    if (row->at_us < e->at_us)
        row->at_us = e->at_us;
    if (e->amount != 0)
        row->sign = e->amount > 0 ? 1 : -1;
    if (e->amount > 0 && (!row->has_topup || row->topup_us < e->at_us)) {
        row->has_topup = true;
        row->topup_us = e->at_us;
    }
}

static void add_record(struct fold *f, const struct event *e)
{
    struct fold_row *row = find_row(f, e->type->table, e);

    if (!row)
        new_row(f, e->type->table, e);
    else if (e->at_us >= row->at_us) {
        row->event = e;
        row->at_us = e->at_us;
    }
}

bool fold_add(struct fold *f, const struct event *e)
{
    if (!fold_fits(f, e))
        return false;
    add_id(f, &f->events, e->id);
    f->n_events++;
    if (e->type->table == TABLE_NONE) {
        f->n_deleted++;
        add_id(f, &f->deleted, e->customer);
    } else if (e->type->table == TABLE_ADJUSTMENTS) {
        add_adjustment(f, e);
    } else if (e->type->appends || e->type->patches) {
        new_row(f, e->type->table, e);
    } else {
        add_record(f, e);
    }
    return true;
}

// ---- output ----

bool fold_has(const struct fold *f, enum event_table table) { return f->first[table] != NULL; }

const struct fold_row *fold_rows(const struct fold *f, enum event_table table)
{
    return f->first[table];
}

const uint8_t *fold_next_customer(const struct fold_row **at)
{
    if (!*at)
        return NULL;
    const uint8_t *customer = (*at)->event->customer;
    *at = (*at)->next;
    return customer;
}

static void put_member(struct buf *out, const char *name)
{
    buf_putc(out, ',');
    js_put_text(out, span_of(name));
    buf_putc(out, ':');
}

static void put_row(const struct fold *f, enum event_table table, const struct fold_row *row,
                    struct buf *out)
{
    const struct event *e = row->event;

    buf_put_lit(out, "{\"at\":");
    buf_put(out, value_time_text(row->at_us, f->arena));
    for (unsigned i = 0; i < e->type->n_fields; i++) {
        const struct event_field *field = &e->type->fields[i];
        if (!e->values[i].ptr || (table == TABLE_ADJUSTMENTS && field->kind == FIELD_MONEY))
            continue;
        put_member(out, field->name);
        buf_put(out, e->values[i]);
    }
    if (table == TABLE_ADJUSTMENTS) {
        put_member(out, "delta");
        money_put(out, row->amount);
    }
    if (table == TABLE_CUSTOMERS || table == TABLE_PATCHES) {
        put_member(out, "created_at");
        buf_put(out, value_time_text(row->first_us, f->arena));
    }
    if (row->has_topup) {
        put_member(out, "last_topup_at");
        buf_put(out, value_time_text(row->topup_us, f->arena));
    }
    buf_putc(out, '}');
}

void fold_put_rows(const struct fold *f, enum event_table table, struct buf *out)
{
    char sep = '[';

    for (const struct fold_row *row = f->first[table]; row; row = row->next) {
        buf_putc(out, sep);
        sep = ',';
        put_row(f, table, row, out);
    }
    buf_putc(out, ']');
}
