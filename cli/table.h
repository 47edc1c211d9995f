// table.h: JSON objects as rows and columns.
//
//      static const struct column columns[] = {{"QUEUE", "name", CELL_TEXT}, ...};
//      table_show(cli, pick(body, "queues"), columns, countof(columns), "no queues yet");
//
// In JSON mode each object is one line as the server sent it, whatever the columns.
#ifndef QUEEN_CLI_TABLE_H
#define QUEEN_CLI_TABLE_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/span.h"

struct cli;

enum cell_kind {
    CELL_TEXT,
    CELL_LONG,    // text that is cut first when the terminal is too narrow
    CELL_COUNT,   // 12,345; to the right
    CELL_SECONDS, // 3m 20s
    CELL_BYTES,   // 1.2 MB
    CELL_TIME,    // 2026-11-16 04:53:15 in the zone of this machine
    CELL_YES,     // yes, or nothing
};

struct column {
    const char *title;
    const char *path; // see pick()
    enum cell_kind kind;
};

struct table;

// Rows may be given one by one, for lists that come in pages.
struct table *table_new(struct cli *cli, const struct column *columns, size_t n_columns);
void table_add(struct table *t, span object); // copied, or in JSON mode written at once
size_t table_rows(const struct table *t);
void table_free(struct table *t); // shows it first; nothing when there are no rows

// All of a JSON array; empty (may be NULL) is the note for no rows.
void table_show(struct cli *cli, span array, const struct column *columns, size_t n_columns,
                const char *empty);
// One object as a list of its columns, one per line.
void record_show(struct cli *cli, span object, const struct column *columns, size_t n_columns);

// A value as people read it.
void cell_put(struct buf *b, span object, const struct column *c, struct cli *cli);
void cell_put_count(struct buf *b, int64_t n);
void cell_put_seconds(struct buf *b, double seconds);
void cell_put_bytes(struct buf *b, double bytes);
// Exactly so many characters: filled up with blanks, or cut.
void cell_put_fixed(struct buf *b, span text, size_t width);

#endif
