-- queen.ensure_lanes: queues and partitions by name, created on first use.
--
-- needs: derive_labels
-- called by  src/broker/lanes.c (call "ensure_lanes"), in a transaction of its own, before the push
-- in         pairs of queue and partition name
-- out        one row per pair, in order; no row for a pair whose queue was deleted meanwhile
-- locks      new rows of queues by name; queues that get a lane, against deletion, by id; new rows of lanes by
--            (queue, name): concurrent creators wait for one another in one order and cannot deadlock
create or replace function queen.ensure_lanes(p_queue text[], p_partition text[])
returns table (idx int, lane bigint, lane_id uuid)
language plpgsql
as $$
begin
    insert into queen.queues (name, namespace, task)
    select n.name, d.namespace, d.task
      from (select distinct u.name from unnest(p_queue) u(name)
             where (select q.id from queen.queues q where q.name = u.name) is null) n
      cross join lateral queen.derive_labels(n.name) d
     order by n.name
        on conflict (name) do nothing;

    insert into queen.lanes (queue_id, name, lease_seconds, limited, careful, sealed)
    select k.id, k.part, k.lease_seconds, k.limited, k.careful, k.encryption_enabled
      from (select q.id, q.lease_seconds, q.limited, q.careful, q.encryption_enabled, n.part
              from (select distinct u.queue, u.part from unnest(p_queue, p_partition) u(queue, part)) n
              join queen.queues q on q.name = n.queue
             -- Not an anti-join: one planned while there were no lanes would walk all of the queue's.
             where (select l.num from queen.lanes l where l.queue_id = q.id and l.name = n.part) is null
             order by q.id, n.part
               for share of q) k
        on conflict (queue_id, name) do nothing;

    return query
    select u.ord::int - 1, k.num, k.id
      from unnest(p_queue, p_partition) with ordinality u(queue, part, ord)
      -- Not a join: one planned while there were no lanes would walk the index of all lanes for each name.
      cross join lateral (select l.num, l.id from queen.lanes l
                           where l.queue_id = (select q.id from queen.queues q where q.name = u.queue)
                             and l.name = u.part offset 0) k
     order by u.ord;
end
$$;
