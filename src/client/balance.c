// balance.c: counting.
#include "client/balance.h"

#include <string.h>

static bool is_free(const struct balance_record *r) { return !r->owner || r->expired; }

static bool is_first_of_its_owner(const struct balance_record *records, unsigned i)
{
    for (unsigned j = 0; j < i; j++)
        if (!is_free(&records[j]) && strcmp(records[j].owner, records[i].owner) == 0)
            return false;
    return true;
}

static unsigned count_of(const struct balance_record *records, unsigned n, const char *owner)
{
    unsigned count = 0;

    for (unsigned i = 0; i < n; i++)
        count += !is_free(&records[i]) && strcmp(records[i].owner, owner) == 0;
    return count;
}

// What visible owners whose names come before mine will claim.
static unsigned dealt_before(const struct balance_record *records, unsigned n, const char *me,
                             unsigned share)
{
    unsigned dealt = 0;

    for (unsigned i = 0; i < n; i++) {
        if (is_free(&records[i]) || strcmp(records[i].owner, me) >= 0 ||
            !is_first_of_its_owner(records, i))
            continue;
        unsigned count = count_of(records, n, records[i].owner);
        dealt += count < share ? share - count : 0;
    }
    return dealt;
}

// from: how many free ones are passed over first, in order.
static void deal(const struct balance_record *records, unsigned n, unsigned from,
                 unsigned missing, struct balance_plan *plan)
{
    for (unsigned i = 0; i < n; i++) {
        if (!is_free(&records[i]))
            continue;
        bool mine = from == 0 && plan->n_claim < missing;
        from -= from > 0;
        if (mine || records[i].left_over)
            plan->claim[plan->n_claim++] = i;
    }
}

// All that are missing, in a circle.
static void take(const struct balance_record *records, unsigned n, unsigned start,
                 unsigned missing, struct balance_plan *plan)
{
    for (unsigned k = 0; k < n && plan->n_claim < missing; k++) {
        unsigned i = (start + k) % n;
        if (is_free(&records[i]))
            plan->claim[plan->n_claim++] = i;
    }
}

void balance_plan(const struct balance_record *records, unsigned n, const char *me, bool greedy,
                  unsigned start, struct balance_plan *plan)
{
    unsigned mine = count_of(records, n, me), others = 0, most = 0;
    bool any_free = false, waiting = false;
    const char *busiest = NULL;

    plan->n_claim = 0;
    plan->ask = -1;
    for (unsigned i = 0; i < n; i++) {
        any_free = any_free || is_free(&records[i]);
        waiting = waiting || (!is_free(&records[i]) && records[i].asked_by_me);
        if (is_free(&records[i]) || strcmp(records[i].owner, me) == 0 ||
            !is_first_of_its_owner(records, i))
            continue;
        unsigned count = count_of(records, n, records[i].owner);
        others++;
        if (count > most) {
            most = count;
            busiest = records[i].owner;
        }
    }
    unsigned share = (n + others) / (others + 1); // rounded up
    unsigned missing = mine < share ? share - mine : 0;
    if (greedy || mine == 0)
        take(records, n, start, greedy ? n : missing, plan);
    else
        deal(records, n, dealt_before(records, n, me, share), missing, plan);
    if (any_free || waiting || !busiest || most < mine + 2 || mine >= share)
        return;
    for (unsigned k = 0; k < n && plan->ask < 0; k++) {
        unsigned i = (start + k) % n;
        if (!is_free(&records[i]) && strcmp(records[i].owner, busiest) == 0)
            plan->ask = (int)i;
    }
}
