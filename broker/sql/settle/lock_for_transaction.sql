-- queen.lock_for_transaction: lock the queues and lanes of a transaction of pushes and acknowledgements.
--
-- called by  queen.transact and queen.stream_cycle when a consumer is missing; queen.transact_scheduled
-- in         p_push: lanes that get messages now; p_later: lanes that get scheduled messages; p_lane_id, p_group: of the acknowledgements
-- locks      queues with a maxSize that get messages, in id order; then, in num order, all these lanes and the lanes on which a consumer
--            must be created, because a session that has locked a consumer must not wait for a lane
create or replace function queen.lock_for_transaction(p_push bigint[], p_later bigint[], p_lane_id uuid[], p_group text[])
returns void
language plpgsql
as $$
declare
    v_lanes bigint[] := array(
        select k.num from unnest(p_lane_id, p_group) u(lane_id, grp)
         cross join lateral (select l.num from queen.lanes l where l.id = u.lane_id offset 0) k
         where (select c.num from queen.consumers c where c.lane = k.num and c.grp = u.grp) is null);
begin
    perform q.id from queen.queues q
      where q.id in (select l.queue_id from queen.lanes l where l.num = any (p_push) and l.limited)
      order by q.id for no key update;
    perform l.num from queen.lanes l where l.num = any (p_push || p_later || v_lanes) order by l.num for no key update;
end
$$;
