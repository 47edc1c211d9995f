// reply_shape.c: checks that a result has the columns that its statement declares.
//
// Every result is checked here before a reader uses it. Database content, another version of a
// procedure or a proxy therefore cannot make a reader abort or read out of bounds.
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "base/err.h"
#include "pg/reply_int.h"

// Object ids of built-in types are part of PostgreSQL's protocol and never change.
enum {
    OID_BOOL = 16,
    OID_BYTEA = 17,
    OID_NAME = 19,
    OID_INT8 = 20,
    OID_INT2 = 21,
    OID_INT4 = 23,
    OID_TEXT = 25,
    OID_JSON = 114,
    OID_FLOAT8 = 701,
    OID_VARCHAR = 1043,
    OID_TIMESTAMPTZ = 1184,
    OID_VOID = 2278,
    OID_UUID = 2950,
};

static int int_width(Oid type)
{
    return type == OID_INT2 ? 2 : type == OID_INT4 ? 4 : type == OID_INT8 ? 8 : 0;
}

// The widest integer that the readers of a column expect; 0: not an integer.
static int declared_width(char letter)
{
    return letter == 'h' ? 2 : letter == 'i' ? 4 : letter == 'l' ? 8 : 0;
}

static bool is_of_type(char letter, Oid type)
{
    switch (letter) {
    case 'h':
    case 'i':
    case 'l':
        return int_width(type) > 0;
    case 'b':
        return type == OID_BOOL;
    case 'f':
        return type == OID_FLOAT8;
    case 't':
        return type == OID_TEXT || type == OID_VARCHAR || type == OID_NAME || type == OID_JSON;
    case 'y':
        return type == OID_BYTEA;
    case 'u':
        return type == OID_UUID;
    case 'z':
        return type == OID_TIMESTAMPTZ;
    default:
        return type == OID_VOID;
    }
}

static int64_t read_int(const PGresult *r, int row, int col, int width)
{
    const unsigned char *p = (const unsigned char *)PQgetvalue(r, row, col);
    uint64_t v = 0;

    for (int i = 0; i < width; i++)
        v = v << 8 | p[i];
    return width == 8 ? (int64_t)v : width == 4 ? (int32_t)v : (int16_t)v;
}

static bool column_fits(int64_t v, int width)
{
    return width == 8 ||
           (width == 4 ? v >= INT32_MIN && v <= INT32_MAX : v >= INT16_MIN && v <= INT16_MAX);
}

// The length of every value of a type; 0: it varies.
static int value_width(Oid type)
{
    switch (type) {
    case OID_BOOL:
        return 1;
    case OID_FLOAT8:
    case OID_TIMESTAMPTZ:
        return 8;
    case OID_UUID:
        return 16;
    default:
        return int_width(type);
    }
}

// A server that we do not control may announce a type and send a value of another length.
static bool is_sound_column(const PGresult *r, int col, char letter, bool may_be_null)
{
    Oid type = PQftype(r, col);
    int width = value_width(type), declared = declared_width(letter);
    bool narrows = int_width(type) > declared;

    if (may_be_null && width == 0)
        return true; // nothing to check
    for (int row = 0; row < PQntuples(r); row++) {
        if (PQgetisnull(r, row, col)) {
            if (!may_be_null)
                return false;
        } else if (width > 0 && PQgetlength(r, row, col) != width) {
            return false;
        } else if (narrows && !column_fits(read_int(r, row, col, width), declared)) {
            return false;
        }
    }
    return true;
}

// returns has a letter per column, upper case if it may be NULL: h i l integers of at most 2, 4
// and 8 bytes, b bool, f float8, t text, y bytea, u uuid, z timestamptz, v void. A '.' at the
// end allows more columns, of any type. A '1' at the beginning requires at least one row.
int reply_check(const PGresult *result, const char *returns, char *why, size_t size)
{
    int n_cols = PQnfields(result), n = 0;

    if (returns[0] == '1') {
        returns++;
        if (PQntuples(result) == 0) {
            snprintf(why, size, "no row");
            return QE_PG_SHAPE;
        }
    }
    while (returns[n] != '\0' && returns[n] != '.')
        n++;
    if (n_cols < n || (n_cols > n && returns[n] != '.')) {
        snprintf(why, size, "%d columns instead of %d", n_cols, n);
        return QE_PG_SHAPE;
    }
    for (int col = 0; col < n; col++) {
        char letter = (char)(returns[col] | 0x20);
        const char *fault = NULL;
        if (PQfformat(result, col) != 1 || !is_of_type(letter, PQftype(result, col)))
            fault = "has another type";
        else if (!is_sound_column(result, col, letter, letter != returns[col] || letter == 'v'))
            fault = "is null or out of range";
        if (fault) {
            snprintf(why, size, "column %d (%s) %s", col + 1, PQfname(result, col), fault);
            return QE_PG_SHAPE;
        }
    }
    return 0;
}
