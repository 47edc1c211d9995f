-- queen.message_id_at: the offset (1-based) of the id in a packed message that contains one (docs/internals/segment-format.md).
--
-- called by  queen.push_items; queen.execute_transaction_v2
create or replace function queen.message_id_at(p_message bytea)
returns int
language plpgsql immutable strict parallel safe
as $$
declare
    v_flags int := get_byte(p_message, 0);
    v_at    int := 1;
begin
    if v_flags & 1 <> 0 then
        v_at := v_at + 2 + get_byte(p_message, v_at) * 256 + get_byte(p_message, v_at + 1);
    end if;
    if v_flags & 2 <> 0 then
        v_at := v_at + 16;
    end if;
    if v_flags & 4 <> 0 then
        v_at := v_at + 2 + get_byte(p_message, v_at) * 256 + get_byte(p_message, v_at + 1);
    end if;
    return v_at + 1;
end
$$;
