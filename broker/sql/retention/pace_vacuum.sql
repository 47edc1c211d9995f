-- queen.pace_vacuum: vacuum that can free nothing takes its time.
--
-- needs: rows_stuck
-- called by  queen.stats_chore, hence by one broker at a time
-- locks      SHARE UPDATE EXCLUSIVE on segments or message_keys, when their setting changes, waiting 50 ms at most: pushes and pops pass, a vacuum
--            that is there goes on, and it is tried again the next time.  The caller holds advisory 737010
--
-- Tables that retention removes from are vacuumed without pauses, so that space is found again soon.  While a transaction elsewhere keeps its
-- snapshot, vacuum comes all the same, each minute, reads every page written since (none of them becomes all-visible), and leaves it as
-- it was: at 17 GB 4.5 s of CPU within 6.4 s, which every push and pop of that time feels.  With pauses it is about a tenth of a core, and
-- takes longer than a minute.
--
-- A setting that is neither of ours is an operator's, and stays.
create or replace function queen.pace_vacuum()
returns void
language plpgsql
as $$
declare
    t record; -- a table, and what is to be set
begin
    for t in
        select w.name, string_agg(format('%sautovacuum_vacuum_cost_delay = %s', p.prefix, w.delay), ', ') as options
          from unnest(array['queen.segments', 'queen.message_keys']) n(name)
          cross join lateral (select n.name, case when queen.rows_stuck(n.name::regclass) > 0 then '2' else '0' end as delay) w -- milliseconds
          join pg_class c on c.oid = w.name::regclass
          cross join lateral (values ('', c.oid), ('toast.', c.reltoastrelid)) p(prefix, oid)
          join pg_class r on r.oid = p.oid
          cross join lateral pg_options_to_table(r.reloptions) o
         where o.option_name = 'autovacuum_vacuum_cost_delay' and o.option_value in ('0', '2') and o.option_value <> w.delay
         group by w.name
         order by w.name
    loop
        begin
            set local lock_timeout = '50ms';
            execute format('alter table %s set (%s)', t.name, t.options);
        exception when lock_not_available then
            null; -- vacuum is there: next time
        end;
    end loop;
end
$$;
