-- queen.run_schedule_now: POST /api/v1/schedules/:id/run.
--
-- needs: find_schedule, schedule_item, push_items
-- called by  broker/src/api/admin/schedules.c
-- in         p_args: id: id or name
-- out        {"messageId":...,"transactionId":...}; the next regular time does not change, and a paused schedule runs, too
create or replace function queen.run_schedule_now(p_args jsonb)
returns table (status int, answer json)
language plpgsql
as $$
declare
    s queen.schedules;
    p record;
begin
    select * into s from queen.schedules n where n.id = queen.find_schedule(p_args ->> 'id') for update;
    if s.id is null then
        return query select 404, '{"error":"No such schedule"}'::json;
        return;
    end if;
    select * into p from queen.push_items(jsonb_build_array(queen.schedule_item(s, clock_timestamp())));
    update queen.schedules n set last_run_at = clock_timestamp(), last_message = p.message_id, runs = n.runs + 1 where n.id = s.id;
    return query select 200, json_build_object('messageId', p.message_id, 'transactionId', p.transaction_id);
end
$$;
