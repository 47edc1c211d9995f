-- queen.messages: one row per message, for SQL users and tools.
--
-- needs: unpack_segment, delete_through_messages
-- A search by partition_id (or through queues and partitions) reads only the segments of those lanes. A search by id or
-- transaction_id alone unpacks everything. created_at is that of the segment; ids give the order. meta contains further fields
-- (traceparent, cloudEvent), or null if there are none. Supports DELETE.
create or replace view queen.messages as
select u.message_id as id, u.transaction_id::varchar as transaction_id, u.trace_id,
       l.id as partition_id, u.payload::jsonb as payload, s.created_at, u.is_encrypted, u.producer_sub,
       u.meta::jsonb as meta
  from queen.lanes l
  join queen.segments s on s.lane = l.num
  cross join lateral queen.unpack_segment(s.lane, s.created_at, s.count, s.keys, s.body) u
 where l.origin is null;

create or replace trigger delete_through_messages instead of delete on queen.messages
    for each row execute function queen.delete_through_messages();
