-- queen.blank_message: the body of a segment with one message replaced by an empty entry.
--
-- called by  queen.remove_message
-- in         p_pos: 0-based; format in docs/internals/segment-format.md
-- out        the body as it is if the message cannot be found in it, because this message or one before it is damaged
create or replace function queen.blank_message(p_body bytea, p_pos int)
returns bytea
language plpgsql immutable strict
as $$
declare
    v_body  bytea := p_body || ''::bytea; -- an uncompressed copy
    v_at    int := 1;
    v_from  int;
    v_flags int;
begin
    for i in 0 .. p_pos loop
        v_from := v_at;
        v_flags := get_byte(v_body, v_at);
        v_at := v_at + 1;
        if v_flags & 1 <> 0 then
            v_at := v_at + 2 + get_byte(v_body, v_at) * 256 + get_byte(v_body, v_at + 1);
        end if;
        if v_flags & 2 <> 0 then
            v_at := v_at + 16;
        end if;
        if v_flags & 4 <> 0 then
            v_at := v_at + 2 + get_byte(v_body, v_at) * 256 + get_byte(v_body, v_at + 1);
        end if;
        if v_flags & 16 <> 0 then
            v_at := v_at + 16;
        end if;
        if v_flags & 32 <> 0 then
            v_at := v_at + 2 + get_byte(v_body, v_at) * 256 + get_byte(v_body, v_at + 1);
        end if;
        v_at := v_at + 4 + ((get_byte(v_body, v_at) << 24) | (get_byte(v_body, v_at + 1) << 16)
                            | (get_byte(v_body, v_at + 2) << 8) | get_byte(v_body, v_at + 3));
    end loop;
    if v_at > length(v_body) then
        return p_body;
    end if;
    return substr(v_body, 1, v_from) || '\x0000000000'::bytea || substr(v_body, v_at + 1);
exception when array_subscript_error or numeric_value_out_of_range then -- a position after the end of the body
    return p_body;
end
$$;
