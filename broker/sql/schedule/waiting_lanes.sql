-- queen.waiting_lanes: the lanes of a queue, including retry lanes, for which messages may be scheduled.
--
-- called by  queen.scheduled_query
-- in         p_partition null: all partitions
create or replace function queen.waiting_lanes(p_queue text, p_partition text)
returns bigint[]
language sql stable
as $$
    select array(
        select l.num from queen.lanes l
         where l.queue_id = q.id and l.scheduling and (p_partition is null or l.name = p_partition)
         union all
        select r.num from queen.lanes r
         where r.origin_queue = q.id and r.origin is not null
           and (p_partition is null
                or r.origin = (select o.num from queen.lanes o where o.queue_id = q.id and o.name = p_partition)))
      from (select (select q.id from queen.queues q where q.name = p_queue) as id) q
$$;
