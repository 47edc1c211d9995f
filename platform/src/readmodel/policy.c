// policy.c: computes when a read model is visited next.
#include "readmodel/policy.h"

#include <string.h>

#include "base/str.h"

enum { MINUTES_A_DAY = 24 * 60 };
static const int64_t first_retry_us = 5 * INT64_C(1000000),
                     last_retry_us = POLICY_LAST_RETRY_US;

static int64_t policy_later(int64_t a, int64_t b) { return a > b ? a : b; }
static int64_t policy_sooner(int64_t a, int64_t b) { return a < b ? a : b; }
// A time that does not exist delays nothing.
static int64_t policy_after(int64_t moment, int64_t us)
{
    return moment == POLICY_NEVER ? INT64_MIN : moment + us;
}

static int64_t views_due_us(const struct policy *p, const struct policy_item *i, bool bulk)
{
    int64_t interval = p->pace[i->model].interval_us;
    int64_t debounce = bulk ? p->bulk_debounce_us : p->pace[i->model].debounce_us;
    int64_t settled = policy_later(policy_after(i->visited_us, interval),
                                   policy_after(i->last_change_us, debounce));
    int64_t since = i->first_change_us;

    if (i->visited_us != POLICY_NEVER)
        since = policy_later(since, i->visited_us);
    return policy_sooner(settled, since + interval + debounce);
}

int64_t policy_due_us(const struct policy *p, const struct policy_item *i, bool bulk)
{
    int64_t due = POLICY_NEVER;

    if (i->wanted_us != POLICY_NEVER)
        due = i->wanted_us;
    else if (i->first_change_us != POLICY_NEVER)
        due = i->live
                  ? policy_later(i->first_change_us, policy_after(i->visited_us, p->check_us))
                  : views_due_us(p, i, bulk);
    if (due == POLICY_NEVER)
        return due;
    return policy_later(
        due, policy_later(policy_after(i->retry_us, 0), policy_after(i->claimed_until_us, 0)));
}

int64_t policy_retry_us(unsigned failures)
{
    unsigned doublings = failures > 0 ? failures - 1 : 0;

    return doublings >= 6 ? last_retry_us
                          : policy_sooner(first_retry_us << doublings, last_retry_us);
}

static bool parse_minute(span text, int *minute)
{
    span hours, minutes;
    uint64_t h, m;

    if (!str_split(&text, ':', &hours) || !str_split(&text, ':', &minutes) || text.ptr ||
        hours.len != 2 || minutes.len != 2 || !str_parse_u64(hours, &h) ||
        !str_parse_u64(minutes, &m) || h * 60 + m > MINUTES_A_DAY || m > 59)
        return false;
    *minute = (int)(h * 60 + m);
    return true;
}

bool bulk_window_parse(span text, struct bulk_window *w)
{
    span times, zone = SPAN("UTC"), from, to;

    *w = (struct bulk_window){.zone = "UTC"};
    text = str_trim(text);
    if (text.len == 0)
        return true;
    str_split(&text, ' ', &times);
    if (text.ptr)
        zone = str_trim(text);
    if (zone.len == 0 || zone.len >= sizeof(w->zone) || !str_split(&times, '-', &from) ||
        !str_split(&times, '-', &to) || times.ptr || !parse_minute(from, &w->from_minute) ||
        !parse_minute(to, &w->to_minute) || w->from_minute == w->to_minute)
        return false;
    memcpy(w->zone, zone.ptr, zone.len);
    w->zone[zone.len] = '\0';
    return true;
}

bool bulk_window_has(const struct bulk_window *w, int minute)
{
    if (w->from_minute <= w->to_minute)
        return minute >= w->from_minute && minute < w->to_minute;
    return minute >= w->from_minute || minute < w->to_minute;
}
