-- queen.find_scheduled: a scheduled message by the text of its id, in any slice; no row if there is none.
--
-- needs: schedule_num
-- called by  queen.get_scheduled, queen.cancel_scheduled_one, queen.reschedule
create or replace function queen.find_scheduled(p_id text)
returns setof queen.scheduled
language plpgsql stable rows 1
set enable_seqscan = off
as $$
begin
    -- A text that is not a UUID matches no message.
    if p_id ~* '^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$' then
        return query select * from queen.scheduled s where s.num = queen.schedule_num(p_id::uuid) and s.id = p_id::uuid;
    end if;
end
$$;
