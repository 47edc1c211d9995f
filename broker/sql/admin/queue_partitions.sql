-- queen.queue_partitions: the fixed number of partitions of a queue; 0: not fixed, or no such queue.
--
-- called by  broker/src/api/partition_key.c (call "queue_partitions")
create or replace function queen.queue_partitions(p_queue text[])
returns table (partitions int)
language sql stable
as $$
    select coalesce(q.partitions, 0)
      from unnest(p_queue) with ordinality u(name, ord)
      left join queen.queues q on q.name = u.name
     order by u.ord
$$;
