-- queen.partition_lookup: the newest message of every partition that has one.
--
-- needs: stored_id
-- last_message_id is read from the segment, because a producer may have given it. The other columns do not read bodies.
-- If the newest messages were deleted, the one before them counts.
create or replace view queen.partition_lookup as
select l.id, q.name as queue_name, l.id as partition_id,
       queen.stored_id(l.num, m.seq) as last_message_id,
       s.created_at as last_message_created_at, s.created_at as updated_at
  from queen.lanes l
  join queen.queues q on q.id = l.queue_id
  join lateral (select s.first_seq + s.count - 1 as seq from queen.segments s where s.lane = l.num
                 order by s.first_seq desc limit 1) h on true
  left join lateral (select k.first_seq - 1 as seq from queen.skips k
                      where l.skipping and k.lane = l.num and k.grp = '' and k.last_seq >= h.seq
                      order by k.first_seq desc limit 1) e on true
  cross join lateral (select coalesce(e.seq, h.seq) as seq) m
  join lateral (select s.first_seq, s.created_at, s.count from queen.segments s
                 where s.lane = l.num and s.first_seq <= m.seq
                 order by s.first_seq desc limit 1) s on s.count > 0;
