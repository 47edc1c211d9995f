// compile_effects.c: statements that change state for the customers of a segment.
//
// Each is one statement and so one transaction: members and outbox cannot disagree, even after
// a crash.
#include "audience/compile_int.h"

static void effects_put(struct compiled *c, const char *constant)
{
    buf_put(&c->text, span_of(constant));
}

static void effects_put_inside(struct compiled *c, const struct filter *f,
                               const struct filter_facts *facts)
{
    effects_put(c, "with inside as materialized (");
    compile_uuids(c, f, facts);
    effects_put(c, ")");
}

static void effects_put_path(struct compiled *c)
{
    effects_put(c, "'");
    effects_put(c, audience_path_name(c->path));
    effects_put(c, "'");
}

// Two concurrent checks cannot report a change twice: a row of crm.segment_member is inserted
// once and deleted once, and only the check that did it reports it.  The row of the segment is
// locked, so that subscribing and deleting a campaign see all members and events of a check or
// none. A segment that is not watched any more gets no members.  The statement sees the members
// as of its start, which may be long before it locks the segment.  If watching has ended and
// begun again in between, those members are gone: the next check starts afresh.
void compile_watch(struct compiled *c, const struct filter *f, const struct filter_facts *facts,
                   const uint8_t segment[16])
{
    effects_put_inside(c, f, facts);
    effects_put(c, ", watched as (select s.* from crm.segment s where s.id = ");
    sql_put_uuid(c, segment);
    effects_put(c, " and s.watch_every_s is not null and s.watched_since is not distinct from"
                   " (select b.watched_since from crm.segment b where b.id = ");
    sql_put_uuid(c, segment);
    effects_put(
        c,
        ") for no key update"
        "), gone as (delete from crm.segment_member m using watched w where m.segment_id = w.id"
        " and not exists (select from inside i where i.customer_uuid = m.customer_uuid)"
        " returning m.customer_uuid)"
        ", come as (insert into crm.segment_member (segment_id, customer_uuid)"
        " select w.id, i.customer_uuid from watched w, inside i where not exists"
        " (select from crm.segment_member m where m.segment_id = w.id"
        " and m.customer_uuid = i.customer_uuid) on conflict do nothing"
        " returning customer_uuid)");
    // Customers that were inside when watching began did not enter.
    effects_put(
        c,
        ", told as (insert into crm.segment_outbox (segment_id, customer_uuid, entered)"
        " select w.id, x.customer_uuid, x.entered from watched w,"
        " (select customer_uuid, true from come union all select customer_uuid, false from "
        "gone)"
        " x (customer_uuid, entered) where w.watch_queue is not null"
        " and (w.watched_since is not null or w.watch_initial))"
        ", runs as (insert into crm.campaign_run (campaign_id, key, announced, path,"
        " recipients) select c.id, 'entering:' || c.id || ':' || gen_random_uuid(), false, ");
    effects_put_path(c);
    effects_put(c,
                ", (select count(*) from come) from crm.campaign c join watched w on w.id = "
                "c.segment_id"
                " where c.kind = 'entering' and w.watched_since is not null"
                " and exists (select from come) returning id)"
                ", recipients as (insert into crm.campaign_recipient (run_id, n, customer_uuid)"
                " select r.id, row_number() over (partition by r.id order by x.customer_uuid),"
                " x.customer_uuid from runs r, come x)"
                ", counted as (insert into crm.segment_history (segment_id, count, path)"
                " select w.id, (select count(*) from inside), ");
    effects_put_path(c);
    // A history of changes: a check that finds the same number adds no row.
    effects_put(
        c,
        " from watched w where (select count(*) from inside) is distinct from (select h.count"
        " from crm.segment_history h where h.segment_id = w.id order by h.at desc limit 1)"
        " on conflict do nothing)"
        ", looked as (update crm.segment s set evaluated_at = clock_timestamp(),"
        " watched_since = coalesce(s.watched_since, now()) from watched w where s.id = w.id)"
        " select (select count(*) from inside), (select count(*) from come),"
        " (select count(*) from gone)");
    c->rc = c->text.failed ? QE_TOO_LARGE : c->rc;
}

void compile_run(struct compiled *c, const struct filter *f, const struct filter_facts *facts,
                 const uint8_t campaign[16], span key)
{
    effects_put_inside(c, f, facts);
    effects_put(c,
                ", run as (insert into crm.campaign_run (campaign_id, key, path, recipients, "
                "finished_at)"
                " select ");
    sql_put_uuid(c, campaign);
    effects_put(c, "::uuid, ");
    sql_put_param(c, (struct sql_param){.kind = SQL_TEXT, .text = key});
    effects_put(c, "::text, ");
    effects_put_path(c);
    effects_put(
        c, ", i.n, case when i.n = 0 then now() end from (select count(*) as n from inside) i"
           " on conflict (key) do nothing returning id, recipients)"
           ", listed as (insert into crm.campaign_recipient (run_id, n, customer_uuid)"
           " select r.id, row_number() over (order by i.customer_uuid), i.customer_uuid"
           " from run r, inside i) select id, recipients from run");
    c->rc = c->text.failed ? QE_TOO_LARGE : c->rc;
}

// A run has the most parameters in addition to those of the filter.
static bool can_run(const struct filter *f, const struct filter_facts *facts,
                    enum audience_path path)
{
    static const uint8_t any[16];
    struct compiled c = {.dialect = SQL_PG, .path = path};

    compile_run(&c, f, facts, any, SPAN("key"));
    bool ok = c.rc == 0;
    compile_deinit(&c);
    return ok;
}

bool compile_is_possible(const struct filter *f, const struct filter_facts *facts)
{
    return can_run(f, facts, PATH_FALLBACK) &&
           (facts->fallback_only ||
            (can_run(f, facts, PATH_LIVE) && can_run(f, facts, PATH_VIEWS)));
}
