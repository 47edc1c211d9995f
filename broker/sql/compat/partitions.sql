-- queen.partitions: the partitions of queues, under the name that tools and tests use.
--
-- A simple view of lanes, so that it supports DELETE (which removes everything that belongs to the partition).
-- last_activity: the time of the newest message.
create or replace view queen.partitions as
select l.id, l.queue_id, l.name, l.created_at,
       coalesce((select s.created_at from queen.segments s where s.lane = l.num
                  order by s.first_seq desc limit 1), l.created_at) as last_activity
  from queen.lanes l
 where l.origin is null;
