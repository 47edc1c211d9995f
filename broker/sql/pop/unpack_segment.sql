-- queen.unpack_segment: the messages of a segment, in order, without their further fields.
--
-- needs: unpack_segment_2
-- called by  queen.stored_id, and whoever has no use for meta
-- in, out   as queen.unpack_segment_2
create or replace function queen.unpack_segment(
    p_lane bigint, p_created_at timestamptz, p_count int, p_keys bytea, p_body bytea)
returns table (pos int, message_id uuid, transaction_id text, trace_id uuid, producer_sub text,
               is_encrypted boolean, payload text)
language sql immutable rows 100
as $$
    select u.pos, u.message_id, u.transaction_id, u.trace_id, u.producer_sub, u.is_encrypted, u.payload
      from queen.unpack_segment_2(p_lane, p_created_at, p_count, p_keys, p_body) u
$$;
