// balance.c: computes which partitions a processor claims or requests.
#include "balance.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

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

static bool is_wanted_by(const struct balance_record *r, const char *me)
{
    return r->wanted_by && strcmp(r->wanted_by, me) == 0;
}

static void claim_partition(struct balance_plan *plan, unsigned i)
{
    plan->claim[plan->n_claim++] = i;
}

struct dealt {
    const char *owner;
    unsigned count;
};

// The owner with the fewest partitions; of several, the first by name.
static struct dealt *poorest(struct dealt *owners, unsigned n)
{
    struct dealt *p = &owners[0];

    for (unsigned i = 1; i < n; i++)
        if (owners[i].count < p->count ||
            (owners[i].count == p->count && strcmp(owners[i].owner, p->owner) < 0))
            p = &owners[i];
    return p;
}

static struct dealt *balance_find(struct dealt *owners, unsigned n, const char *owner)
{
    for (unsigned i = 0; i < n; i++)
        if (strcmp(owners[i].owner, owner) == 0)
            return &owners[i];
    return NULL;
}

// The same distribution that every other owner computes, including this processor.
static void deal_partitions(const struct balance_record *records, unsigned n, const char *me,
                            struct balance_plan *plan)
{
    struct dealt *owners = mem_new_array(struct dealt, n);
    unsigned n_owners = 0;

    for (unsigned i = 0; i < n; i++)
        if (!is_free(&records[i]) && is_first_of_its_owner(records, i))
            owners[n_owners++] =
                (struct dealt){records[i].owner, count_of(records, n, records[i].owner)};
    for (unsigned i = 0; i < n; i++) {
        if (!is_free(&records[i]))
            continue;
        struct dealt *to = records[i].wanted_by
                               ? balance_find(owners, n_owners, records[i].wanted_by)
                               : poorest(owners, n_owners);
        if (to) // otherwise a processor that owns nothing yet wants it
            to->count++;
        if (records[i].left_over || (to && strcmp(to->owner, me) == 0))
            claim_partition(plan, i);
    }
    free(owners);
}

// Claims the missing number of partitions in a circle, starting with those released for us.
static void balance_take(const struct balance_record *records, unsigned n, const char *me,
                         unsigned start, unsigned missing, struct balance_plan *plan)
{
    for (unsigned i = 0; i < n && plan->n_claim < missing; i++)
        if (is_free(&records[i]) && is_wanted_by(&records[i], me))
            claim_partition(plan, i);
    for (unsigned k = 0; k < n && plan->n_claim < missing; k++) {
        unsigned i = (start + k) % n;
        if (is_free(&records[i]) && (!records[i].wanted_by || records[i].left_over) &&
            !is_wanted_by(&records[i], me))
            claim_partition(plan, i);
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
        waiting = waiting || (!is_free(&records[i]) && is_wanted_by(&records[i], me));
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
    if (greedy || mine == 0)
        balance_take(records, n, me, start, greedy ? n : share, plan);
    else
        deal_partitions(records, n, me, plan);
    if (any_free || waiting || !busiest || most < mine + 2 || mine >= share)
        return;
    for (unsigned k = 0; k < n && plan->ask < 0; k++) {
        unsigned i = (start + k) % n;
        if (!is_free(&records[i]) && strcmp(records[i].owner, busiest) == 0)
            plan->ask = (int)i;
    }
}
