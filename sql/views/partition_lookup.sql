-- queen.partition_lookup: the newest message of every partition that has one.
--
-- needs: message_id
create or replace view queen.partition_lookup as
select l.id, q.name as queue_name, l.id as partition_id,
       queen.message_id(s.created_at, s.count - 1, l.num) as last_message_id,
       s.created_at as last_message_created_at, s.created_at as updated_at
  from queen.lanes l
  join queen.queues q on q.id = l.queue_id
  join lateral (select s.created_at, s.count from queen.segments s where s.lane = l.num
                 order by s.first_seq desc limit 1) s on s.count > 0;
