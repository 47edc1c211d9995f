// The pool as a list of calls, and results as rows of cells.
#include "fake_pg.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

enum { MAX_CALLS = 64, MAX_ROWS = 128, MAX_CELLS = 24 };

struct pg_pool {
    void (*on_state)(void *ctx, bool up);
    void *ctx;
};

struct cell {
    span name;
    char kind;
    bool used; // by a column of the statement
    int64_t number;
    span bytes;
};

struct pg_reply {
    bool locked; // SQLSTATE 55P03
    unsigned n_rows, n_cells;
    const struct pg_reply *whole; // of a part
    unsigned row, col;
    struct cell rows[MAX_ROWS][MAX_CELLS];
};

static struct pg_pool pool;
static struct pg_pool_stats stats;
static struct pg_call *calls[MAX_CALLS];
static unsigned n_calls;
static struct {
    unsigned n;
    struct cell cells[MAX_CELLS];
} rows[MAX_ROWS]; // of the next answer
static unsigned n_rows;

static void lay_out(struct pg_reply *reply, const struct pg_statement *statement);

// ---- the pool ----

struct pg_pool *pg_pool_open(uv_loop_t *loop, const struct pg_pool_conf *conf,
                             void (*on_state)(void *ctx, bool up), void *ctx)
{
    (void)loop, (void)conf;
    pool = (struct pg_pool){on_state, ctx};
    return &pool;
}

void pg_pool_resume(struct pg_pool *p) { assert_ptr_equal(p, &pool); }

const char *pg_pool_error(const struct pg_pool *p)
{
    (void)p;
    return "";
}

void pg_pool_exec(struct pg_pool *p, struct pg_call *call)
{
    assert_ptr_equal(p, &pool);
    assert_true(n_calls < MAX_CALLS);
    calls[n_calls++] = call;
}

void pg_pool_close(struct pg_pool *p, void (*closed)(void *ctx), void *ctx)
{
    assert_ptr_equal(p, &pool);
    assert_int_equal(n_calls, 0);
    closed(ctx);
}

const struct pg_pool_stats *pg_pool_stats(const struct pg_pool *p)
{
    (void)p;
    return &stats;
}

void fake_reset(void)
{
    n_calls = 0;
    n_rows = 0;
}

void fake_no_rows(void) { n_rows = 0; }
void fake_set_up(bool up) { pool.on_state(pool.ctx, up); }
unsigned fake_n_calls(void) { return n_calls; }

struct pg_call *fake_nth(unsigned i) { return i < n_calls ? calls[i] : NULL; }

struct pg_call *fake_find(const char *name)
{
    for (unsigned i = 0; i < n_calls; i++)
        if (strcmp(calls[i]->statement->name, name) == 0)
            return calls[i];
    return NULL;
}

struct pg_call *fake_call(const char *name)
{
    if (n_calls == 0)
        fail_msg("no call, expected %s", name);
    assert_string_equal(calls[0]->statement->name, name);
    return calls[0];
}

static void answer(struct pg_call *c, int status, bool locked)
{
    static struct pg_reply now; // done may cause the next answer to be written
    unsigned i = 0;

    while (i < n_calls && calls[i] != c)
        i++;
    assert_true(i < n_calls);
    memmove(calls + i, calls + i + 1, (--n_calls - i) * sizeof *calls);
    lay_out(&now, c->statement);
    now.locked = locked;
    c->done(c, status, &now);
}

void fake_answer(struct pg_call *c, int status) { answer(c, status, false); }
void fake_answer_locked(struct pg_call *c) { answer(c, QE_PG_RETRY, true); }

void fake_fail_all(int status)
{
    for (unsigned left = 1000; n_calls > 0; left--) {
        assert_true(left > 0);
        n_rows = 0;
        fake_answer(calls[0], status);
    }
}

// ---- results ----

static void read_cell(struct cell *c, va_list *ap)
{
    switch (c->kind) {
    case 'i':
    case 'b':
        c->number = va_arg(*ap, int);
        break;
    case 'l':
    case 'T':
        c->number = va_arg(*ap, int64_t);
        break;
    case 't':
        c->bytes = span_of(va_arg(*ap, const char *));
        break;
    case 'y':
        c->bytes = va_arg(*ap, span);
        break;
    case 'u':
        c->bytes = (span){va_arg(*ap, const void *), 16};
        break;
    default:
        fail_msg("no cell of kind %c", c->kind);
    }
}

void fake_row(const char *cells, ...)
{
    va_list ap;
    struct cell *c = rows[n_rows].cells;
    span rest = span_of(cells), part, name;

    assert_true(n_rows < MAX_ROWS);
    rows[n_rows].n = 0;
    va_start(ap, cells);
    while (str_split(&rest, ' ', &part)) {
        assert_true(rows[n_rows].n++ < MAX_CELLS);
        assert_true(str_split(&part, ':', &name) && part.len == 1);
        *c = (struct cell){.name = name, .kind = part.ptr[0]};
        read_cell(c++, &ap);
    }
    va_end(ap);
    n_rows++;
}

// The columns between "select" and "from" of a statement, or its one function call; what a row
// does not name is NULL.
static void lay_out(struct pg_reply *reply, const struct pg_statement *statement)
{
    span text = span_of(statement->text), column;
    const char *from = strstr(statement->text, "from queen.");

    assert_true(str_starts(text, SPAN("select ")));
    text = (span){statement->text + 7,
                  from ? (size_t)(from - statement->text) - 7 : strlen(statement->text) - 7};
    *reply = (struct pg_reply){.n_rows = n_rows};
    for (; str_split(&text, ',', &column); reply->n_cells++) {
        assert_true(reply->n_cells < MAX_CELLS);
        while (column.len > 0 && strchr(" \n", column.ptr[0]))
            column.ptr++, column.len--;
        while (column.len > 0 && strchr(" \n", column.ptr[column.len - 1]))
            column.len--;
        for (unsigned r = 0; r < n_rows; r++) {
            struct cell *to = &reply->rows[r][reply->n_cells];
            *to = (struct cell){.kind = 'n'};
            for (unsigned i = 0; i < rows[r].n; i++)
                if (span_eq(rows[r].cells[i].name, column)) {
                    *to = rows[r].cells[i];
                    rows[r].cells[i].used = true;
                }
        }
    }
    for (unsigned r = 0; r < n_rows; r++)
        for (unsigned i = 0; i < rows[r].n; i++)
            if (!rows[r].cells[i].used)
                fail_msg("a row names a column that %s has not", statement->name);
    n_rows = 0;
}

const struct pg_reply *fake_reply(const struct pg_statement *statement)
{
    static struct pg_reply now;

    lay_out(&now, statement);
    return &now;
}

static const struct cell *cell(const struct pg_reply *r, unsigned row, unsigned col,
                               const char *kinds)
{
    assert_true(row < r->n_rows && col < r->n_cells);
    const struct pg_reply *of = r->whole ? r->whole : r;
    const struct cell *c = &of->rows[r->row + row][r->col + col];
    if (c->kind != 'n' && !strchr(kinds, c->kind))
        fail_msg("row %u column %u is of kind %c, not %s", row, col, c->kind, kinds);
    return c;
}

unsigned pg_reply_rows(const struct pg_reply *r) { return r->n_rows; }

struct pg_reply *pg_reply_part(const struct pg_reply *r, unsigned row, unsigned n, unsigned col)
{
    assert_true(!r->whole && row + n <= r->n_rows && col <= r->n_cells);
    struct pg_reply *part = mem_new(struct pg_reply);
    *part = (struct pg_reply){
        .n_rows = n, .n_cells = r->n_cells - col, .whole = r, .row = row, .col = col};
    return part;
}

void pg_reply_part_free(struct pg_reply *part) { free(part); }

bool pg_reply_is_conflict(const struct pg_reply *r)
{
    (void)r;
    return false;
}

bool pg_reply_is_locked(const struct pg_reply *r) { return r->locked; }
const char *pg_reply_sqlstate(const struct pg_reply *r)
{
    (void)r;
    return "";
}

const char *pg_reply_message(const struct pg_reply *r)
{
    (void)r;
    return "";
}
bool pg_reply_is_null(const struct pg_reply *r, unsigned row, unsigned col)
{
    return cell(r, row, col, "ilbtyuT")->kind == 'n';
}
int16_t pg_reply_i16(const struct pg_reply *r, unsigned row, unsigned col)
{
    return (int16_t)cell(r, row, col, "i")->number;
}
int32_t pg_reply_i32(const struct pg_reply *r, unsigned row, unsigned col)
{
    return (int32_t)cell(r, row, col, "i")->number;
}
int64_t pg_reply_i64(const struct pg_reply *r, unsigned row, unsigned col)
{
    return cell(r, row, col, "il")->number;
}
bool pg_reply_bool(const struct pg_reply *r, unsigned row, unsigned col)
{
    return cell(r, row, col, "b")->number != 0;
}
span pg_reply_bytes(const struct pg_reply *r, unsigned row, unsigned col)
{
    return cell(r, row, col, "ty")->bytes;
}
const uint8_t *pg_reply_uuid(const struct pg_reply *r, unsigned row, unsigned col)
{
    return (const uint8_t *)cell(r, row, col, "u")->bytes.ptr;
}
int64_t pg_reply_unix_us(const struct pg_reply *r, unsigned row, unsigned col)
{
    const struct cell *c = cell(r, row, col, "T");
    return c->kind == 'n' ? INT64_MIN : c->number;
}

// ---- parameters ----

static int64_t be(const char *p, size_t n)
{
    uint64_t v = n > 0 && (p[0] & 0x80) ? UINT64_MAX : 0;

    for (size_t i = 0; i < n; i++)
        v = v << 8 | (unsigned char)p[i];
    return (int64_t)v;
}

static uint32_t array_oid(enum pg_type type)
{
    switch (type) {
    case PG_BOOL:
        return 1000;
    case PG_BYTEA:
        return 1001;
    case PG_INT8:
        return 1016;
    case PG_INT2:
        return 1005;
    case PG_INT4:
        return 1007;
    case PG_TEXT:
        return 1009;
    case PG_UUID:
        return 2951;
    default:
        fail_msg("no array of type %u", (unsigned)type);
        return 0;
    }
}

// The index among all parameters.
static unsigned param_of(const struct pg_params *p, enum pg_type type, int nth)
{
    int n = 0;

    for (unsigned i = 0; i < p->n; i++)
        n += p->param[i].oid == array_oid(type);
    nth = nth < 0 ? n + nth : nth;
    for (unsigned i = 0; i < p->n; i++)
        if (p->param[i].oid == array_oid(type) && nth-- == 0)
            return i;
    fail_msg("no such array of type %u", (unsigned)type);
    return 0;
}

unsigned fake_len(const struct pg_params *p, enum pg_type type, int nth)
{
    assert_false(pg_params_failed(p));
    const char *at = p->data.ptr + p->param[param_of(p, type, nth)].at;
    return be(at, 4) == 0 ? 0 : (unsigned)be(at + 12, 4);
}

span fake_bytes(const struct pg_params *p, enum pg_type type, int nth, unsigned i)
{
    assert_true(i < fake_len(p, type, nth));
    const char *at = p->data.ptr + p->param[param_of(p, type, nth)].at + 20;
    for (;; i--) {
        int64_t n = be(at, 4);
        at += 4;
        if (i == 0)
            return n < 0 ? SPAN_NONE : (span){at, (size_t)n};
        at += n > 0 ? n : 0;
    }
}

int64_t fake_int(const struct pg_params *p, enum pg_type type, int nth, unsigned i)
{
    span s = fake_bytes(p, type, nth, i);

    assert_true(s.ptr && s.len <= 8);
    return s.len == 1 ? s.ptr[0] : be(s.ptr, s.len);
}

int64_t fake_scalar(const struct pg_params *p, unsigned param)
{
    assert_true(param < p->n && p->param[param].len <= 8);
    const char *at = p->data.ptr + p->param[param].at;
    return p->param[param].len == 1 ? at[0] : be(at, p->param[param].len);
}

bool pg_pool_is_full(const struct pg_pool *p)
{
    (void)p;
    return false;
}

uint64_t pg_pool_silent_since_us(const struct pg_pool *p)
{
    (void)p;
    return 0;
}

void pg_pool_hurry(struct pg_pool *p, unsigned ms)
{
    (void)p;
    (void)ms;
}

uint64_t pg_pool_server(const struct pg_pool *p)
{
    (void)p;
    return 1;
}

uint64_t pg_pool_heard_us(const struct pg_pool *p)
{
    (void)p;
    return clock_mono_us();
}
