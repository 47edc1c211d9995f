-- queen.lane_path: the names of a lane's queue and partition; for a retry lane, those of its partition.
--
-- called by  the functions that list scheduled messages
create or replace function queen.lane_path(p_lane bigint)
returns table (queue_name text, lane_name text, lane_id uuid)
language sql stable rows 1
as $$
    select q.name::text, l.name::text, l.id
      from queen.lanes l join queen.queues q on q.id = l.queue_id
     where l.num = (select coalesce(n.origin, n.num) from queen.lanes n where n.num = p_lane)
$$;
