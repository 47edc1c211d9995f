-- queen.pace_vacuum: throttle autovacuum while it cannot reclaim anything.
--
-- needs: rows_stuck
-- called by  queen.stats_chore, hence by one broker at a time
-- locks      SHARE UPDATE EXCLUSIVE on segments or message_keys if their setting changes, waiting at most 50 ms: it does not block pushes and
--            pops. If a vacuum is running it continues, and the next call tries again. The caller holds advisory lock 737010
--
-- Tables that retention removes from are vacuumed without cost delay, so that space is reused soon. While another transaction keeps its
-- snapshot, autovacuum still runs every minute, reads every page written since then (none of them becomes all-visible), and reclaims
-- nothing: at 17 GB it used 4.5 s of CPU within 6.4 s, which slows every push and pop of that time. With a cost delay it uses about a
-- tenth of a core and takes longer than a minute.
--
-- Any other value was set by an operator and stays.
create or replace function queen.pace_vacuum()
returns void
language plpgsql
as $$
declare
    t record; -- a table and its new options
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
            null; -- a vacuum is running: try again next time
        end;
    end loop;
end
$$;
