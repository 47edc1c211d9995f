-- queen.cancel_scheduled_one: DELETE /api/v1/scheduled/:id.
--
-- needs: find_scheduled, cancel_scheduled
-- called by  broker/src/api/admin/scheduled.c
-- in         p_args: id
-- out        {"cancelled":1}; 404 if it is not scheduled any more
-- locks      its lane, so that it is either delivered or cancelled
create or replace function queen.cancel_scheduled_one(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    s queen.scheduled;
begin
    select * into s from queen.find_scheduled(p_args ->> 'id');
    if s.num is not null then
        perform l.num from queen.lanes l where l.num = s.lane for no key update;
        -- It may have been delivered or rescheduled before the lane was locked.
        select * into s from queen.find_scheduled(p_args ->> 'id');
    end if;
    if s.num is null or queen.cancel_scheduled(array[s.slice], array[s.due_at], array[s.num]) = 0 then
        return query select 404, '{"error":"No such message waits"}'::json;
    else
        return query select 200, '{"cancelled":1}'::json;
    end if;
end
$$;
