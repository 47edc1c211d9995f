-- queen.schedule_answer: a recurring message as an HTTP answer, with its payload in a separate column.
--
-- needs: schedule_json, cron_next, iso_ms
-- called by  queen.create_schedule, queen.change_schedule
-- in         p_runs: with so many of its next runs; none while it is paused, or if its time zone does not exist any more
create or replace function queen.schedule_answer(p_status int, s queen.schedules, p_runs int default 0)
returns table (status int, piece text, payload bytea, sealed boolean)
language plpgsql stable
as $$
declare
    v_runs json := '[]';
begin
    begin
        with recursive runs(at, nth) as (
            select coalesce(s.delayed_at, s.next_at), 1 where p_runs > 0
             union all
            select queen.cron_next(s.cron, s.timezone, r.at), r.nth + 1 from runs r where r.nth < p_runs and r.at is not null)
        select coalesce(json_agg(queen.iso_ms(r.at) order by r.nth), '[]') into v_runs from runs r where r.at is not null;
    exception when invalid_parameter_value then -- the time zone
        v_runs := '[]';
    end;
    return query select p_status, left(queen.schedule_json(s)::text, -1) || case when p_runs > 0 then ', "nextRuns" : ' || v_runs else '' end
                        || ', "payload" : ', convert_to(s.payload::text, 'UTF8'), s.sealed;
    return query select p_status, '}', null::bytea, false;
end
$$;
