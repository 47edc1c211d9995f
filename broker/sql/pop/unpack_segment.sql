-- queen.unpack_segment: the messages of a segment, in order.
--
-- needs: message_id
-- called by  queen.messages, queen.pop_one, queen.stored_id and others
-- in         columns of queen.segments; format in docs/internals/segment-format.md. p_count: how many of them to unpack; null: none
-- out        pos: 0-based, without the empty entries of deleted messages; payload: the JSON text as it was sent; meta: a JSON object of
--            further fields, or null
--
-- A message that cannot be read, and the messages after it in the segment, have a null payload: see queen.set_aside.
create or replace function queen.unpack_segment(
    p_lane bigint, p_created_at timestamptz, p_count int, p_keys bytea, p_body bytea)
returns table (pos int, message_id uuid, transaction_id text, trace_id uuid, producer_sub text,
               is_encrypted boolean, payload text, meta text)
language plpgsql immutable rows 100
as $$
declare
    -- An uncompressed copy: otherwise every access to a byte would decompress the whole value.
    v_body  bytea := p_body || ''::bytea;
    v_at    int := 1;  -- of the next byte, 0-based
    v_size  int := length(v_body);
    v_flags int;
    v_len   int;
    -- The two halves of queen.message_id of the first message. Later ones differ in their position.
    v_time  text := left(replace(queen.message_id(p_created_at, 0, p_lane)::text, '-', ''), 16);
    v_low   bigint := (1::bigint << 63) | (p_lane & ((1::bigint << 42) - 1));
begin
    pos := 0;
    if p_count > 0 and (v_size = 0 or get_byte(v_body, 0) <> 1) then
        raise exception 'segment of lane % has an unknown format', p_lane using errcode = 'QN009';
    end if;
    for i in 0 .. coalesce(p_count, 0) - 1 loop
        pos := i;
        v_flags := get_byte(v_body, v_at);
        v_at := v_at + 1;
        if v_flags & 192 <> 0 then
            raise exception 'segment of lane % has unknown flags %', p_lane, v_flags using errcode = 'QN009';
        end if;
        if v_flags & 1 <> 0 then
            v_len := get_byte(v_body, v_at) * 256 + get_byte(v_body, v_at + 1);
            transaction_id := convert_from(substr(v_body, v_at + 3, v_len), 'UTF8');
            v_at := v_at + 2 + v_len;
        else
            transaction_id := encode(substr(p_keys, i * 16 + 1, 16), 'hex')::uuid::text;
        end if;
        trace_id := null;
        if v_flags & 2 <> 0 then
            trace_id := encode(substr(v_body, v_at + 1, 16), 'hex')::uuid;
            v_at := v_at + 16;
        end if;
        producer_sub := null;
        if v_flags & 4 <> 0 then
            v_len := get_byte(v_body, v_at) * 256 + get_byte(v_body, v_at + 1);
            producer_sub := convert_from(substr(v_body, v_at + 3, v_len), 'UTF8');
            v_at := v_at + 2 + v_len;
        end if;
        is_encrypted := v_flags & 8 <> 0;
        if v_flags & 16 <> 0 then
            message_id := encode(substr(v_body, v_at + 1, 16), 'hex')::uuid;
            v_at := v_at + 16;
        else
            message_id := (v_time || to_hex(v_low | (i::bigint << 42)))::uuid;
        end if;
        meta := null;
        if v_flags & 32 <> 0 then
            v_len := get_byte(v_body, v_at) * 256 + get_byte(v_body, v_at + 1);
            meta := convert_from(substr(v_body, v_at + 3, v_len), 'UTF8');
            v_at := v_at + 2 + v_len;
        end if;
        v_len := (get_byte(v_body, v_at) << 24) | (get_byte(v_body, v_at + 1) << 16)
               | (get_byte(v_body, v_at + 2) << 8) | get_byte(v_body, v_at + 3);
        if v_len = 0 then -- the empty entry of a deleted message
            v_at := v_at + 4;
            continue;
        end if;
        if v_len < 0 or v_len > v_size - v_at - 4 then
            raise exception 'message % of a segment of lane % is cut off', i, p_lane using errcode = 'QN009';
        end if;
        payload := convert_from(substr(v_body, v_at + 5, v_len), 'UTF8');
        v_at := v_at + 4 + v_len;
        return next;
    end loop;
exception
    -- Our own; a position after the end of the body; bytes that are not valid text.
    when sqlstate 'QN009' or array_subscript_error or character_not_in_repertoire or untranslatable_character then
        trace_id := null; producer_sub := null; is_encrypted := false; payload := null; meta := null;
        for i in pos .. p_count - 1 loop
            pos := i;
            message_id := queen.message_id(p_created_at, i, p_lane);
            transaction_id := case when length(p_keys) >= i * 16 + 16 then encode(substr(p_keys, i * 16 + 1, 16), 'hex')::uuid::text
                                   else message_id::text end;
            return next;
        end loop;
end
$$;
