-- queen.lock_limited: lock the queues with a maxSize that a SQL session is about to push to.
--
-- called by  queen.push_items_now, queen.push_items, queen.execute_transaction_v2, each before queen.ensure_lanes
-- in         p_queue  names; null and unknown names are ignored
-- locks      queues by id, as queen.push_segments with p_whole
--
-- queen.ensure_lanes takes a weaker lock on a queue that gets a partition. Without this function two sessions with that lock could
-- both request the lock of queen.push_segments and deadlock.
create or replace function queen.lock_limited(p_queue text[])
returns void
language sql
as $$
    select q.id from queen.queues q where q.name = any (p_queue) and q.limited order by q.id for no key update;
$$;
