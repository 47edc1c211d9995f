-- queen.run_schedules: push recurring messages that are due, one bounded step.
--
-- needs: run_some_schedules
-- called by  queen.fire_scheduled, which delivers them
-- in         p_limit: maximum number of runs
-- out        the number of runs; p_limit: call again at once
-- locks      as queen.run_some_schedules
--
-- If one of them cannot run, for example because its time zone no longer exists, each runs by itself. Those that fail wait in
-- delayed_at. They are tried again after a quarter of the time that they have waited, between a second and a minute, with a warning in
-- PostgreSQL's log. So an invalid schedule delays neither other schedules nor scheduled messages and retries.
create or replace function queen.run_schedules(p_limit int)
returns int
language plpgsql
as $$
declare
    v_runs  int := 0;
    v_error text;
    s       record;
begin
    if not exists (select from queen.schedules n where n.next_at <= clock_timestamp()) then
        return 0; -- the usual case, without a subtransaction
    end if;
    begin
        v_runs := queen.run_some_schedules(p_limit, null);
        return v_runs;
    exception when others then
        null; -- the schedule and its error are reported below
    end;
    for s in
        select n.id, n.name, coalesce(n.delayed_at, n.next_at) as at, clock_timestamp() - coalesce(n.delayed_at, n.next_at) as waited
          from queen.schedules n
         where n.next_at <= clock_timestamp() order by n.next_at limit p_limit for update skip locked
    loop
        begin
            v_runs := v_runs + queen.run_some_schedules(greatest(p_limit - v_runs, 1), s.id);
        exception when others then
            get stacked diagnostics v_error = message_text;
            raise warning 'schedule "%" did not run: %', s.name, v_error;
            update queen.schedules n
               set delayed_at = s.at,
                   next_at = clock_timestamp() + least(greatest(s.waited / 4, interval '1 s'), interval '1 minute')
             where n.id = s.id;
        end;
        exit when v_runs >= p_limit;
    end loop;
    return least(v_runs, p_limit);
end
$$;
