-- queen.lock_lane: lock a lane, its retry lanes and all their consumers.
--
-- called by  procedures that change stored messages: queen.delete_message, queen.retry_message, queen.move_to_dlq, ...
-- locks      the queue if it has a maxSize (a retry pushes); the lane and its retry lanes FOR UPDATE, in num order, so that no
--            consumer can be created meanwhile; then the consumers of all these lanes in num order
--
-- The consumers of the lane and of its retry lanes are locked together, because a batch of acknowledgements locks them in one order, too.
create or replace function queen.lock_lane(p_lane bigint)
returns void
language plpgsql
as $$
declare
    v_lanes bigint[] := array(select r.num from queen.lanes r where r.origin = p_lane) || p_lane;
begin
    perform q.id from queen.queues q join queen.lanes l on l.queue_id = q.id
      where l.num = p_lane and l.limited for no key update of q;
    perform l.num from queen.lanes l where l.num = any (v_lanes) order by l.num for update;
    perform c.num from queen.consumers c where c.lane = any (v_lanes) order by c.num for no key update;
end
$$;
