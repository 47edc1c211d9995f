-- queen.lane_path: the names of a lane's queue and partition; of a retry lane those of the partition it belongs to.
--
-- called by  what lists waiting messages
create or replace function queen.lane_path(p_lane bigint)
returns table (queue_name text, lane_name text, lane_id uuid)
language sql stable rows 1
as $$
    select q.name::text, l.name::text, l.id
      from queen.lanes k
      join queen.lanes l on l.num = coalesce(k.origin, k.num)
      join queen.queues q on q.id = l.queue_id
     where k.num = p_lane
$$;
