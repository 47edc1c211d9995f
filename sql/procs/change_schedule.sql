-- queen.change_schedule: GET, PATCH and DELETE /api/v1/schedules/:id, and POST of its /pause and /resume.
--
-- needs: find_schedule, check_schedule, cron_next, schedule_json
-- called by  src/api/schedules.c
-- in         p_args: id: id or name; body: fields to change; p_how: get, change, pause, resume, delete
-- out        the schedule as it is now; 404 when there is none; 409 when its new name is taken
-- locks      its row
-- raises     QN001 for a field that cannot be
--
-- A time that was missed while it was paused, or before its expression was changed, is not made up for.
create or replace function queen.change_schedule(p_args jsonb, p_how text)
returns table (status int, answer json)
language plpgsql
as $$
declare
    b jsonb := case when p_how = 'change' then p_args -> 'body' when p_how = 'pause' then '{"paused": true}'
                    when p_how = 'resume' then '{"paused": false}' else '{}' end;
    s queen.schedules;
begin
    perform queen.check_schedule(b, false);
    if p_how = 'get' then
        select * into s from queen.schedules n where n.id = queen.find_schedule(p_args ->> 'id');
    else
        select * into s from queen.schedules n where n.id = queen.find_schedule(p_args ->> 'id') for update;
    end if;
    if s.id is null then
        return query select 404, '{"error":"No such schedule"}'::json;
        return;
    end if;
    if p_how = 'delete' then
        delete from queen.schedules n where n.id = s.id;
    elsif b <> '{}' then
        if b ? 'cron' or b ? 'timezone' or coalesce((b ->> 'paused')::boolean, s.paused) <> s.paused then
            s.next_at := case when not coalesce((b ->> 'paused')::boolean, s.paused)
                              then queen.cron_next(coalesce(b ->> 'cron', s.cron), coalesce(b ->> 'timezone', s.timezone),
                                                   clock_timestamp()) end;
        end if;
        update queen.schedules n
           set name = coalesce(b ->> 'name', n.name), queue_name = coalesce(b ->> 'queue', n.queue_name),
               lane_name = coalesce(b ->> 'partition', n.lane_name), cron = coalesce(b ->> 'cron', n.cron),
               timezone = coalesce(b ->> 'timezone', n.timezone),
               payload = case when b ? 'payload' then (b -> 'payload') else n.payload end,
               missed = coalesce(b ->> 'missed', n.missed), paused = coalesce((b ->> 'paused')::boolean, n.paused),
               next_at = s.next_at, updated_at = clock_timestamp()
         where n.id = s.id
        returning * into s;
    end if;
    return query select 200, queen.schedule_json(s);
exception when unique_violation then
    return query select 409, json_build_object('error', format('there is a schedule "%s" already', b ->> 'name'));
end
$$;
