// JSON objects as rows and columns.
#include "cli/table.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "cli/cli.h"
#include "cli/pick.h"

enum { GAP = 2, MIN_LONG = 8 };

struct table {
    struct cli *cli;
    const struct column *columns;
    size_t n_columns;
    span *cells; // n_rows * n_columns, in the arena of the command
    size_t n_rows, room;
};

struct table *table_new(struct cli *cli, const struct column *columns, size_t n_columns)
{
    struct table *t = mem_new(struct table);

    t->cli = cli;
    t->columns = columns;
    t->n_columns = n_columns;
    return t;
}

void table_add(struct table *t, span object)
{
    t->n_rows++;
    if (t->cli->out.json) {
        out_line(object);
        return;
    }
    if (t->n_rows > t->room) {
        t->room = t->room ? t->room * 2 : 64;
        t->cells = mem_realloc(t->cells, t->room * t->n_columns * sizeof(span));
    }
    struct buf b = {0};
    for (size_t c = 0; c < t->n_columns; c++) {
        buf_reset(&b);
        cell_put(&b, object, &t->columns[c], t->cli);
        t->cells[(t->n_rows - 1) * t->n_columns + c] = arena_copy(&t->cli->arena, buf_span(&b));
    }
    buf_free(&b);
}

size_t table_rows(const struct table *t) { return t->n_rows; }

static bool to_the_right(enum cell_kind kind)
{
    return kind == CELL_COUNT || kind == CELL_SECONDS || kind == CELL_BYTES;
}

// How wide each column is; long ones give way until the row fits the terminal.
static size_t *table_measure(const struct table *t)
{
    size_t *widths = arena_new_array(&t->cli->arena, size_t, t->n_columns);
    size_t total = 0;

    for (size_t c = 0; c < t->n_columns; c++) {
        widths[c] = str_utf8_chars(span_of(t->columns[c].title));
        for (size_t r = 0; r < t->n_rows; r++) {
            size_t w = str_utf8_chars(t->cells[r * t->n_columns + c]);
            widths[c] = w > widths[c] ? w : widths[c];
        }
        total += widths[c] + (c > 0 ? GAP : 0);
    }
    for (size_t c = t->n_columns; c-- > 0 && t->cli->out.width > 0;) {
        if (t->columns[c].kind != CELL_LONG || total <= t->cli->out.width)
            continue;
        size_t over = total - t->cli->out.width;
        size_t give = widths[c] > MIN_LONG ? widths[c] - MIN_LONG : 0;
        give = give < over ? give : over;
        widths[c] -= give;
        total -= give;
    }
    return widths;
}

static void put_cell(span text, size_t width, bool right, bool last)
{
    size_t chars = str_utf8_chars(text);
    struct buf b = {0};

    if (chars < width && right)
        buf_printf(&b, "%*s" SPAN_FMT, (int)(width - chars), "", SPAN_ARG(text));
    else if (chars < width && last)
        buf_put(&b, text); // no blanks at the end of a line
    else
        cell_put_fixed(&b, text, width);
    printf(SPAN_FMT "%*s", SPAN_ARG(buf_span(&b)), last ? 0 : GAP, "");
    buf_free(&b);
}

static void put_table(const struct table *t)
{
    const struct out *o = &t->cli->out;
    size_t *widths = table_measure(t);

    fputs(out_on(o, OUT_BOLD), stdout);
    for (size_t c = 0; c < t->n_columns; c++)
        put_cell(span_of(t->columns[c].title), widths[c], to_the_right(t->columns[c].kind),
                 c + 1 == t->n_columns);
    printf("%s\n", out_off(o));
    for (size_t r = 0; r < t->n_rows; r++) {
        for (size_t c = 0; c < t->n_columns; c++)
            put_cell(t->cells[r * t->n_columns + c], widths[c],
                     to_the_right(t->columns[c].kind), c + 1 == t->n_columns);
        putchar('\n');
    }
}

void table_free(struct table *t)
{
    if (t->n_rows > 0 && !t->cli->out.json)
        put_table(t);
    free(t->cells);
    free(t);
}

void table_show(struct cli *cli, span array, const struct column *columns, size_t n_columns,
                const char *empty)
{
    struct table *t = table_new(cli, columns, n_columns);
    span item;

    while (pick_next(&array, &item))
        table_add(t, item);
    if (t->n_rows == 0 && empty)
        out_note(&cli->out, "%s", empty);
    table_free(t);
}

void record_show(struct cli *cli, span object, const struct column *columns, size_t n_columns)
{
    size_t width = 0;
    struct buf b = {0};

    if (cli->out.json) {
        out_line(object);
        return;
    }
    for (size_t c = 0; c < n_columns; c++) {
        size_t w = str_utf8_chars(span_of(columns[c].title));
        width = w > width ? w : width;
    }
    for (size_t c = 0; c < n_columns; c++) {
        buf_reset(&b);
        cell_put(&b, object, &columns[c], cli);
        printf("%s%-*s%s  " SPAN_FMT "\n", out_on(&cli->out, OUT_BOLD), (int)width,
               columns[c].title, out_off(&cli->out), SPAN_ARG(buf_span(&b)));
    }
    buf_free(&b);
}
