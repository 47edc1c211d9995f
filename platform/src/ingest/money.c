// money.c: converts decimal text to hundredths and back.
#include "ingest/money.h"

#include <inttypes.h>

#define MOST (INT64_MAX / 100) // limit of the digits; no column is that wide

// The value is digits * 10^exponent.
struct decimal {
    bool negative;
    int64_t digits, exponent;
};

static bool money_push(struct decimal *d, int64_t digit)
{
    if (d->digits > MOST / 10 - 1)
        return false;
    d->digits = d->digits * 10 + digit;
    return true;
}

// Appends zeros only when another digit follows, so that 10.00000000000000000000 is ten.
static bool read_digits(struct decimal *d, span *rest)
{
    int64_t zeros = 0;
    bool fraction = false;

    for (; rest->len > 0 && (rest->ptr[0] | 0x20) != 'e'; rest->ptr++, rest->len--) {
        if (rest->ptr[0] == '.') {
            fraction = true;
            continue;
        }
        d->exponent -= fraction;
        zeros++;
        if (rest->ptr[0] == '0')
            continue;
        for (; zeros > 1; zeros--)
            if (!money_push(d, 0))
                return false;
        if (!money_push(d, rest->ptr[0] - '0'))
            return false;
        zeros = 0;
    }
    d->exponent += zeros;
    return true;
}

static void read_exponent(struct decimal *d, span text)
{
    bool down = text.ptr[0] == '-';
    int64_t e = 0;

    for (size_t i = text.ptr[0] == '-' || text.ptr[0] == '+'; i < text.len; i++)
        e = e < 1000 ? e * 10 + (text.ptr[i] - '0') : e;
    d->exponent += down ? -e : e;
}

bool money_parse(span number, int64_t *hundredths)
{
    struct decimal d = {.negative = number.ptr[0] == '-'};
    span rest = {number.ptr + d.negative, number.len - d.negative};

    if (!read_digits(&d, &rest))
        return false;
    if (rest.len > 0)
        read_exponent(&d, (span){rest.ptr + 1, rest.len - 1});
    *hundredths = 0;
    if (d.digits == 0)
        return true;
    int64_t power = d.exponent + 2;
    for (; power < 0; power++, d.digits /= 10)
        if (d.digits % 10 != 0)
            return false;
    for (; power > 0; power--, d.digits *= 10)
        if (d.digits > MOST / 10)
            return false;
    *hundredths = d.negative ? -d.digits : d.digits;
    return true;
}

void money_put(struct buf *b, int64_t hundredths)
{
    uint64_t v = hundredths < 0 ? -(uint64_t)hundredths : (uint64_t)hundredths;

    buf_printf(b, "%s%" PRIu64 ".%02" PRIu64, hundredths < 0 ? "-" : "", v / 100, v % 100);
}
