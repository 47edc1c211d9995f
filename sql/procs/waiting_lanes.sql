-- queen.waiting_lanes: lanes of a queue that messages may wait for, retry lanes among them.
--
-- called by  queen.scheduled_query
-- in         p_partition null: of all partitions
create or replace function queen.waiting_lanes(p_queue text, p_partition text)
returns bigint[]
language sql stable
as $$
    select array(select l.num from queen.lanes l
                  where l.queue_id = (select q.id from queen.queues q where q.name = p_queue) and l.scheduling
                    and (p_partition is null or l.name = p_partition)
                  union all
                 select r.num from queen.lanes r join queen.lanes o on o.num = r.origin
                  where r.origin_queue = (select q.id from queen.queues q where q.name = p_queue) and r.origin is not null
                    and (p_partition is null or o.name = p_partition))
$$;
