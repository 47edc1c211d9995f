-- queen.lock_lane: have a lane to oneself, with all who consume from it.
--
-- called by  what changes messages that are stored already: queen.delete_message, queen.retry_message, ...
-- locks      the queue when it has a maxSize (a retry pushes), the lane, its consumers in num order.  The lane FOR UPDATE: nobody
--            may become a consumer meanwhile either, for whoever claims next must see what was changed
create or replace function queen.lock_lane(p_lane bigint)
returns void
language plpgsql
as $$
begin
    perform q.id from queen.queues q join queen.lanes l on l.queue_id = q.id
      where l.num = p_lane and l.limited for no key update of q;
    perform l.num from queen.lanes l where l.num = p_lane for update;
    perform c.num from queen.consumers c where c.lane = p_lane order by c.num for no key update;
end
$$;
