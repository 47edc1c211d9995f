-- queen.queue_partitions: how many partitions a queue was made with; 0: any, or there is no such queue.
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
