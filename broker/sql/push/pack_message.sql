-- queen.pack_message: one message without further fields.
--
-- needs: pack_message_2
-- called by  whoever has no use for meta
-- in, raises  as queen.pack_message_2
create or replace function queen.pack_message(
    p_transaction_id text, p_trace_id uuid, p_producer_sub text, p_encrypted boolean,
    p_message_id uuid, p_payload text)
returns bytea
language sql immutable
as $$
    select queen.pack_message_2(p_transaction_id, p_trace_id, p_producer_sub, p_encrypted, p_message_id, null, p_payload)
$$;
