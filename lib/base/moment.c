// moment.c: ISO 8601 to microseconds since 1970.
#include "base/moment.h"

enum { DAY_S = 86400 };

// Days since 1970-01-01 of a day in the Gregorian calendar. Years begin in March, so that the
// leap day is the last day of a year.
static int64_t days_of(int64_t year, int64_t month, int64_t day)
{
    int64_t y = year - (month <= 2), m = month + (month > 2 ? -3 : 9);

    return y * 365 + y / 4 - y / 100 + y / 400 + (m * 153 + 2) / 5 + day - 1 - 719468;
}

static int64_t days_in(int64_t year, int64_t month)
{
    return month == 12 ? 31 : days_of(year, month + 1, 1) - days_of(year, month, 1);
}

static bool take_digits(span *rest, unsigned n, int64_t *out)
{
    *out = 0;
    if (rest->len < n)
        return false;
    for (unsigned i = 0; i < n; i++) {
        char c = rest->ptr[i];
        if (c < '0' || c > '9')
            return false;
        *out = *out * 10 + (c - '0');
    }
    rest->ptr += n;
    rest->len -= n;
    return true;
}

static bool take_char(span *rest, char c)
{
    if (rest->len == 0 || rest->ptr[0] != c)
        return false;
    rest->ptr++;
    rest->len--;
    return true;
}

static bool take_date(span *rest, int64_t *days)
{
    int64_t year, month, day;

    if (!take_digits(rest, 4, &year) || !take_char(rest, '-') ||
        !take_digits(rest, 2, &month) || !take_char(rest, '-') || !take_digits(rest, 2, &day))
        return false;
    if (year < 1 || month < 1 || month > 12 || day < 1 || day > days_in(year, month))
        return false;
    *days = days_of(year, month, day);
    return true;
}

static bool take_fraction(span *rest, int64_t *us)
{
    int64_t digit, worth = 100000;

    *us = 0;
    if (!take_digits(rest, 1, &digit))
        return false;
    do {
        *us += digit * worth;
        worth /= 10;
    } while (take_digits(rest, 1, &digit));
    return true;
}

static bool take_clock(span *rest, int64_t *us)
{
    int64_t hour, minute, second = 0, fraction = 0;

    if (!take_digits(rest, 2, &hour) || !take_char(rest, ':') || !take_digits(rest, 2, &minute))
        return false;
    if (take_char(rest, ':')) {
        if (!take_digits(rest, 2, &second))
            return false;
        if ((take_char(rest, '.') || take_char(rest, ',')) && !take_fraction(rest, &fraction))
            return false;
    }
    if (hour > 23 || minute > 59 || second > 59)
        return false;
    *us = (hour * 3600 + minute * 60 + second) * 1000000 + fraction;
    return true;
}

static bool take_zone(span *rest, int64_t *seconds_east)
{
    int64_t hours, minutes = 0;

    *seconds_east = 0;
    if (take_char(rest, 'Z') || take_char(rest, 'z'))
        return true;
    bool west = take_char(rest, '-');
    if (!west && !take_char(rest, '+'))
        return false;
    if (!take_digits(rest, 2, &hours))
        return false;
    if ((take_char(rest, ':') || rest->len > 0) && !take_digits(rest, 2, &minutes))
        return false;
    if (hours > 15 || minutes > 59)
        return false;
    *seconds_east = (hours * 3600 + minutes * 60) * (west ? -1 : 1);
    return true;
}

bool moment_parse(span text, int64_t *unix_us)
{
    int64_t days, clock, east;

    if (!take_date(&text, &days) ||
        !(take_char(&text, 'T') || take_char(&text, 't') || take_char(&text, ' ')) ||
        !take_clock(&text, &clock) || !take_zone(&text, &east) || text.len > 0)
        return false;
    *unix_us = (days * DAY_S - east) * 1000000 + clock;
    return true;
}
