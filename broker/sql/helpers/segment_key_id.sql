-- queen.segment_key_id: the id of the stored message with this UUIDv7 key, found by its time, or null.
--
-- needs: find_message, stored_id
-- called by  queen.schedule_messages
create or replace function queen.segment_key_id(p_lane bigint, p_key uuid)
returns uuid
language plpgsql stable strict
as $$
declare
    v_seq bigint := queen.find_message(p_lane, p_key);
begin
    if v_seq is null then
        return null;
    end if;
    return queen.stored_id(p_lane, v_seq);
end
$$;
