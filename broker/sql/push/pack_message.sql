-- queen.pack_message: pack one message in the format of docs/internals/segment-format.md.
--
-- called by  queen.read_items; broker/src/segment/codec.c writes the same
-- in         p_transaction_id  null: it equals the text of the key and is not stored again
--            p_message_id      null in most cases: the id is derived from the position (queen.message_id)
--            p_meta            JSON object of further fields, or null
--            p_payload         JSON text
-- raises     QN001 for a text that is too long
create or replace function queen.pack_message(
    p_transaction_id text, p_trace_id uuid, p_producer_sub text, p_encrypted boolean,
    p_message_id uuid, p_meta text, p_payload text)
returns bytea
language plpgsql immutable
as $$
declare
    v_id      bytea := convert_to(p_transaction_id, 'UTF8');
    v_sub     bytea := convert_to(p_producer_sub, 'UTF8');
    v_meta    bytea := convert_to(p_meta, 'UTF8');
    v_payload bytea := convert_to(p_payload, 'UTF8');
    v_flags   int := case when v_id is not null then 1 else 0 end
                   | case when p_trace_id is not null then 2 else 0 end
                   | case when v_sub is not null then 4 else 0 end
                   | case when p_encrypted then 8 else 0 end
                   | case when p_message_id is not null then 16 else 0 end
                   | case when v_meta is not null then 32 else 0 end;
begin
    if length(v_id) > 65535 or length(v_sub) > 65535 or length(v_meta) > 65535 then
        raise exception 'transactionId, producerSub and further fields must be at most 65535 bytes each' using errcode = 'QN001';
    end if;
    return set_byte('\x00', 0, v_flags)
        || coalesce(substr(int4send(length(v_id)), 3) || v_id, '')
        || coalesce(uuid_send(p_trace_id), '')
        || coalesce(substr(int4send(length(v_sub)), 3) || v_sub, '')
        || coalesce(uuid_send(p_message_id), '')
        || coalesce(substr(int4send(length(v_meta)), 3) || v_meta, '')
        || int4send(length(v_payload)) || v_payload;
end
$$;
