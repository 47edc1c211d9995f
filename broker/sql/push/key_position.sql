-- queen.key_position: the position of a key in packed keys (0-based), or null.
create or replace function queen.key_position(p_keys bytea, p_key bytea)
returns int
language plpgsql immutable strict parallel safe
as $$
declare
    v_from int := 1;
    v_at   int;
begin
    loop
        v_at := position(p_key in substr(p_keys, v_from));
        if v_at = 0 then
            return null;
        elsif (v_from + v_at - 2) % 16 = 0 then
            return (v_from + v_at - 2) / 16;
        end if;
        -- A match across two keys does not count: continue after it, at the boundary of a key.
        v_from := v_from + v_at + 15 - (v_from + v_at - 2) % 16;
    end loop;
end
$$;
