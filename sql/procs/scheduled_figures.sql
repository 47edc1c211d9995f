-- queen.scheduled_figures: how many messages wait, about, and how many are due and not delivered yet.
--
-- called by  queen.prometheus_text
-- out        waiting: as PostgreSQL's statistics have counted, a moment old, without looking at the messages;
--            due: 10000 at most
create or replace function queen.scheduled_figures()
returns table (waiting bigint, due bigint)
language sql volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
    select coalesce((select sum(pg_stat_get_live_tuples(to_regclass('queen.' || quote_ident(s.name))))
                       from queen.scheduled_slices s), 0)::bigint,
           (select count(*) from (select from queen.scheduled s where s.due_at <= clock_timestamp() order by s.due_at limit 10000) d)
$$;
