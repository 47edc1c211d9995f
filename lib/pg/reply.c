// reply.c: reads binary results and maps SQLSTATEs to error codes.
#include "pg/reply.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/mem.h"
#include "pg/reply_int.h"

#define EPOCH_2000_US INT64_C(946684800000000)

// Whole states before classes: the first matching prefix decides.
static const struct {
    const char *prefix;
    int code;
} meanings[] = {
    {"08", QE_PG_GONE},         // connection exceptions
    {"57P01", QE_PG_GONE},      // administrator's command
    {"57P02", QE_PG_GONE},      // crash of another backend
    {"57P03", QE_PG_GONE},      // starting up or shutting down
    {"57P05", QE_PG_GONE},      // idle session timeout
    {"25P03", QE_PG_GONE},      // idle in transaction timeout: ends the session
    {"40001", QE_PG_RETRY},     // serialization failure
    {"40P01", QE_PG_RETRY},     // deadlock
    {"55P03", QE_PG_RETRY},     // lock not available
    {"57014", QE_PG_RETRY},     // cancelled, also by statement_timeout
    {"53300", QE_PG_RETRY},     // too many connections
    {"53100", QE_PG_FULL},      // disk full
    {"53200", QE_PG_FULL},      // out of memory
    {"58030", QE_PG_FULL},      // input/output error
    {"25006", QE_PG_READ_ONLY}, // read-only transaction: a standby after a failover
    {"26000", QE_PG_RETRY},     // prepared statement lost: the retry prepares it again
    {"22", QE_PG_DATA},         // data exceptions
    {"23", QE_PG_DATA},         // constraints
    {"QN", QE_PG_DATA},         // raised by our procedures
};

int reply_code(const char *sqlstate)
{
    if (sqlstate == NULL || sqlstate[0] == '\0')
        return QE_PG_GONE;
    for (size_t i = 0; i < countof(meanings); i++)
        if (strncmp(sqlstate, meanings[i].prefix, strlen(meanings[i].prefix)) == 0)
            return meanings[i].code;
    return QE_PG_FAILED;
}

int reply_status(const PGresult *result)
{
    ExecStatusType s = PQresultStatus(result);

    if (s == PGRES_TUPLES_OK || s == PGRES_COMMAND_OK)
        return 0;
    if (s == PGRES_FATAL_ERROR)
        return reply_code(PQresultErrorField(result, PG_DIAG_SQLSTATE));
    return QE_PG_FAILED; // empty query or COPY, which our statements never use
}

unsigned pg_reply_rows(const struct pg_reply *r)
{
    return r->is_part ? r->n_rows : (unsigned)PQntuples(r->result);
}

unsigned pg_reply_cols(const struct pg_reply *r)
{
    return (unsigned)PQnfields(r->result) - r->col;
}

struct pg_reply *pg_reply_part(const struct pg_reply *r, unsigned row, unsigned n_rows,
                               unsigned col)
{
    assert(!r->is_part && row <= pg_reply_rows(r) && n_rows <= pg_reply_rows(r) - row &&
           col <= pg_reply_cols(r));
    struct pg_reply *part = mem_new(struct pg_reply);
    *part = *r;
    part->is_part = true;
    part->row = row;
    part->n_rows = n_rows;
    part->col = col;
    return part;
}

void pg_reply_part_free(struct pg_reply *part) { free(part); }

// reply_check() has refused results that differ from the declaration of their statement. It
// cannot check statements without a declaration and rows that are missing. The owner of a
// database may have replaced our functions, so a mismatch is not our bug: the cell reads as
// NULL, and the pool logs the statement.
static void note_odd(const struct pg_reply *r, unsigned row, unsigned col, const char *what)
{
    if (r->odd && r->odd->what == NULL)
        *r->odd = (struct reply_odd){r->row + row, r->col + col, what};
}

static bool has_cell(const struct pg_reply *r, unsigned row, unsigned col)
{
    if (row < pg_reply_rows(r) && col < pg_reply_cols(r))
        return true;
    note_odd(r, row, col, "is not there");
    return false;
}

static const unsigned char *cell(const struct pg_reply *r, unsigned row, unsigned col, int *len)
{
    *len = 0;
    if (!has_cell(r, row, col))
        return (const unsigned char *)"";
    *len = PQgetlength(r->result, (int)(r->row + row), (int)(r->col + col));
    return (const unsigned char *)PQgetvalue(r->result, (int)(r->row + row),
                                             (int)(r->col + col));
}

bool pg_reply_is_null(const struct pg_reply *r, unsigned row, unsigned col)
{
    return !has_cell(r, row, col) ||
           PQgetisnull(r->result, (int)(r->row + row), (int)(r->col + col)) != 0;
}

static uint64_t read_big_endian_bytes(const unsigned char *p, int n)
{
    uint64_t v = 0;

    for (int i = 0; i < n; i++)
        v = v << 8 | p[i];
    return v;
}

// Any integer accessor reads any integer width whose value fits, so a procedure may widen a
// column without breaking the other server version during a rolling upgrade.
int64_t pg_reply_i64(const struct pg_reply *r, unsigned row, unsigned col)
{
    int len;
    const unsigned char *p = cell(r, row, col, &len);

    switch (len) {
    case 0:
        return 0; // NULL
    case 2:
        return (int16_t)read_big_endian_bytes(p, 2);
    case 4:
        return (int32_t)read_big_endian_bytes(p, 4);
    case 8:
        return (int64_t)read_big_endian_bytes(p, 8);
    default:
        note_odd(r, row, col, "is not an integer");
        return 0;
    }
}

static int64_t narrow(const struct pg_reply *r, unsigned row, unsigned col, int64_t min,
                      int64_t max)
{
    int64_t v = pg_reply_i64(r, row, col);

    if (v >= min && v <= max)
        return v;
    note_odd(r, row, col, "is out of range");
    return 0;
}

int32_t pg_reply_i32(const struct pg_reply *r, unsigned row, unsigned col)
{
    return (int32_t)narrow(r, row, col, INT32_MIN, INT32_MAX);
}

int16_t pg_reply_i16(const struct pg_reply *r, unsigned row, unsigned col)
{
    return (int16_t)narrow(r, row, col, INT16_MIN, INT16_MAX);
}

bool pg_reply_bool(const struct pg_reply *r, unsigned row, unsigned col)
{
    int len;
    const unsigned char *p = cell(r, row, col, &len);

    if (len > 1)
        note_odd(r, row, col, "is not a boolean");
    return len == 1 && p[0] != 0;
}

double pg_reply_f64(const struct pg_reply *r, unsigned row, unsigned col)
{
    int len;
    const unsigned char *p = cell(r, row, col, &len);
    double v = 0;

    if (len != 0 && len != 8)
        note_odd(r, row, col, "is not a float8");
    if (len == 8) {
        uint64_t bits = read_big_endian_bytes(p, 8);
        memcpy(&v, &bits, sizeof v);
    }
    return v;
}

span pg_reply_bytes(const struct pg_reply *r, unsigned row, unsigned col)
{
    if (pg_reply_is_null(r, row, col))
        return SPAN_NONE;
    int len;
    const unsigned char *p = cell(r, row, col, &len);
    return (span){(const char *)p, (size_t)len};
}

const uint8_t *pg_reply_uuid(const struct pg_reply *r, unsigned row, unsigned col)
{
    int len;
    const unsigned char *p = cell(r, row, col, &len);

    if (len != 0 && len != 16)
        note_odd(r, row, col, "is not a uuid");
    return len == 16 ? p : NULL;
}

// infinity and -infinity are the ends of the int64 range on the wire and remain so.
int64_t pg_reply_unix_us(const struct pg_reply *r, unsigned row, unsigned col)
{
    if (pg_reply_is_null(r, row, col))
        return INT64_MIN;
    int64_t v = pg_reply_i64(r, row, col);
    if (v == INT64_MIN || v > INT64_MAX - EPOCH_2000_US)
        return v;
    return v + EPOCH_2000_US;
}

const char *pg_reply_sqlstate(const struct pg_reply *r)
{
    const char *s = PQresultErrorField(r->result, PG_DIAG_SQLSTATE);

    return s != NULL ? s : "";
}

bool pg_reply_is_conflict(const struct pg_reply *r)
{
    const char *state = pg_reply_sqlstate(r);

    return strcmp(state, "40001") == 0 || strcmp(state, "40P01") == 0;
}

bool pg_reply_is_locked(const struct pg_reply *r)
{
    return strcmp(pg_reply_sqlstate(r), "55P03") == 0;
}

const char *pg_reply_message(const struct pg_reply *r)
{
    const char *s = PQresultErrorField(r->result, PG_DIAG_MESSAGE_PRIMARY);

    if (s == NULL)
        s = r->message;
    return s != NULL ? s : "";
}
