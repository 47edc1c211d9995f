-- queen.find_message: the sequence number of the message with this key in a lane, or null.
--
-- needs: key_time, key_position
-- A UUIDv7 key is found through the segments around its time. Other keys, and keys of messages that were scheduled, are found
-- through queen.message_keys. A row there with seq <= 0 belongs to a message that is still waiting and does not count.
create or replace function queen.find_message(p_lane bigint, p_key uuid)
returns bigint
language plpgsql stable strict
as $$
declare
    v_time bigint := queen.key_time(p_key);
    v_key  bytea := uuid_send(p_key);
    v_seq  bigint;
begin
    if v_time is not null then
        select s.first_seq + queen.key_position(s.keys, v_key) into v_seq
          from queen.segments s
         where s.lane = p_lane and s.key_max >= v_time and s.key_max <= v_time + 1000
           and s.key_min <= v_time and position(v_key in s.keys) > 0
           and queen.key_position(s.keys, v_key) is not null
         limit 1;
    end if;
    if v_seq is null then
        select seq into v_seq from queen.message_keys where lane = p_lane and key = p_key and seq > 0;
    end if;
    return v_seq;
end
$$;
