-- queen.waiting_id: the id of the scheduled message with this key on a lane, or null.
--
-- called by  queen.schedule_messages, queen.scheduled_duplicates, queen.push_items_now
create or replace function queen.waiting_id(p_lane bigint, p_key uuid)
returns uuid
language plpgsql stable strict
as $$
declare
    v_seq bigint := (select k.seq from queen.message_keys k where k.lane = p_lane and k.key = p_key);
begin
    if v_seq is null or v_seq > 0 then
        return null; -- so that the slices are read only for duplicates
    end if;
    return (select s.id from queen.scheduled s where s.num = -v_seq);
end
$$;
