-- queen.create_schedule: POST /api/v1/schedules.
--
-- needs: check_schedule, cron_next, schedule_json
-- called by  src/api/schedules.c
-- in         p_args: body: see queen.check_schedule; partition Default, timezone UTC, payload null, missed skip, paused false
-- out        201 and the schedule; 409 when the name is taken
-- raises     QN001 for a field that cannot be
create or replace function queen.create_schedule(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    b jsonb := p_args -> 'body';
    s queen.schedules;
begin
    perform queen.check_schedule(b, true);
    insert into queen.schedules (name, queue_name, lane_name, cron, timezone, payload, missed, paused, next_at)
    select b ->> 'name', b ->> 'queue', coalesce(b ->> 'partition', 'Default'), b ->> 'cron', v.zone,
           coalesce(b -> 'payload', 'null'), coalesce(b ->> 'missed', 'skip'), v.paused,
           case when not v.paused then queen.cron_next(b ->> 'cron', v.zone, clock_timestamp()) end
      from (select coalesce(b ->> 'timezone', 'UTC') as zone, coalesce((b ->> 'paused')::boolean, false) as paused) v
        on conflict (name) do nothing
    returning * into s;
    if s.id is null then
        return query select 409, json_build_object('error', format('there is a schedule "%s" already', b ->> 'name'));
    else
        return query select 201, queen.schedule_json(s);
    end if;
end
$$;
