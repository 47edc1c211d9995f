// json_rows.h: writes rows as JSON, with a template for the place of each column.
//
//      {"id":$1,"messages":{"total":$2,"pending":$3},"pending":$3}
//
// $n is the n-th of the columns with values, as pg_reply_put_json() writes it.  A list of ten
// thousand entries costs a third of the time that building the text in SQL takes.
#ifndef QUEEN_API_JSON_ROWS_H
#define QUEEN_API_JSON_ROWS_H

#include "base/attrs.h"
#include "base/buf.h"
#include "pg/reply.h"

enum { JSON_ROWS_PARTS = 64 };

struct json_rows {
    unsigned n; // 0: none was read yet
    struct {
        span text;      // goes before the value
        unsigned col;   // of the reply; UINT_MAX: nothing behind the text
        unsigned first; // part that put this column first; its text is copied by the others
    } part[JSON_ROWS_PARTS];
};

// Reads text (borrowed as long as the shape is used); $1 is column `first` of the reply.
// QE_PG_SHAPE: a column that is not there or has no JSON form, or too many of them.
MUST_USE int json_rows_read(struct json_rows *s, span text, const struct pg_reply *reply,
                            unsigned first);
void json_rows_put(const struct json_rows *s, const struct pg_reply *reply, unsigned row,
                   struct buf *out);

#endif
