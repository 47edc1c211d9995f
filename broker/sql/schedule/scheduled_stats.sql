-- queen.scheduled_stats: the approximate number of scheduled messages, and the number of due messages that are not delivered yet.
--
-- needs: slice_at
-- called by  queen.prometheus_text
-- out        waiting: from PostgreSQL's statistics, slightly delayed, without reading the messages;
--            due: at most 10000
create or replace function queen.scheduled_stats()
returns table (waiting bigint, due bigint)
language plpgsql volatile
set enable_seqscan = off
set enable_bitmapscan = off
as $$
begin
    select coalesce(sum(pg_stat_get_live_tuples(to_regclass('queen.' || quote_ident(s.name)))), 0) into waiting
      from (select k.name from queen.scheduled_slices k union all select 'scheduled_far') s(name);
    -- Values, not parameters of a cached plan, so that only the needed slices are opened and locked.
    execute 'select count(*) from (select from queen.scheduled s where s.slice = any ($1) and s.due_at <= $2 order by s.due_at limit 10000) d'
       into due
      using 0 || array(select k.slice from queen.scheduled_slices k where k.slice <= queen.slice_at(clock_timestamp())), clock_timestamp();
    return next;
end
$$;
