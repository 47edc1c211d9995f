-- queen.messages_at: unpack messages of a lane by their sequence numbers.
--
-- needs: unpack_segment
-- called by  queen.settle, queen.advance, queen.note_completed, queen.move_to_dlq, queen.redrive and its parts, queen.timeline_messages
-- out        those that exist, in no order; each segment is unpacked once for all its messages
create or replace function queen.messages_at(p_lane bigint, p_seqs bigint[])
returns table (seq bigint, message queen.stored_message)
language sql stable
as $$
    select s.first_seq + u.pos,
           row(u.message_id, encode(substr(s.keys, u.pos * 16 + 1, 16), 'hex')::uuid, u.transaction_id, u.trace_id,
               u.producer_sub, u.is_encrypted, u.meta, u.payload, s.created_at)::queen.stored_message
      from (select distinct k.first_seq
              from unnest(p_seqs) q(seq)
              cross join lateral (select g.first_seq from queen.segments g
                                   where g.lane = p_lane and g.first_seq <= q.seq
                                   order by g.first_seq desc limit 1) k) at
      -- Not a join: a plan made for a lane with one segment would unpack all of them first.
      cross join lateral (select * from queen.segments s where s.lane = p_lane and s.first_seq = at.first_seq offset 0) s
      -- No further than the last requested message.
      cross join lateral (select max(q.seq) - s.first_seq + 1 as count from unnest(p_seqs) q(seq) where q.seq < s.first_seq + s.count) n
      cross join lateral queen.unpack_segment(s.lane, s.created_at, n.count::int, s.keys, s.body) u
     -- "is true" makes PostgreSQL use a hash table: neither a join nor a scan of the array for each message.
     where (s.first_seq + u.pos in (select q.seq from unnest(p_seqs) q(seq))) is true
$$;
