-- queen.reschedule: PATCH /api/v1/scheduled/:id.
--
-- needs: find_scheduled, read_times, slice_at, scheduled_json
-- called by  broker/src/api/admin/scheduled.c
-- in         p_args: id, body: scheduledAt or delaySeconds
-- out        the message with its new time; 404 if it is not scheduled any more
-- locks      its lane: moving a row to another slice while queen.fire_scheduled reads it would cause an error there
-- raises     QN001 for an invalid time
create or replace function queen.reschedule(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    s     queen.scheduled;
    t     record;
    v_due timestamptz;
begin
    begin
        select * into t from queen.read_times(jsonb_build_array(p_args -> 'body'));
    exception when sqlstate 'QN001' then
        raise exception '%', regexp_replace(sqlerrm, '^item 0: ', '') using errcode = 'QN001';
    end;
    if t.idx is null then
        raise exception 'scheduledAt or delaySeconds must be given' using errcode = 'QN001';
    end if;
    select * into s from queen.find_scheduled(p_args ->> 'id');
    if s.num is not null then
        perform l.num from queen.lanes l where l.num = s.lane for no key update;
        select * into s from queen.find_scheduled(p_args ->> 'id');
    end if;
    if s.num is null then
        return query select 404, '{"error":"No such message waits"}'::json;
        return;
    end if;
    v_due := greatest(clock_timestamp(), case when t.due_us is null then clock_timestamp() + t.delay_us * interval '1 microsecond'
                                              else 'epoch'::timestamptz + t.due_us * interval '1 microsecond' end);
    update queen.scheduled w
       set due_at = v_due,
           slice = coalesce((select k.slice from queen.scheduled_slices k
                              where k.slice = queen.slice_at(v_due) and k.slice >= queen.slice_at(clock_timestamp())), 0)
     where w.slice = s.slice and w.due_at = s.due_at and w.num = s.num;
    if not found then -- it was cancelled meanwhile
        return query select 404, '{"error":"No such message waits"}'::json;
        return;
    end if;
    s.due_at := v_due;
    return query select 200, queen.scheduled_json(s);
end
$$;
