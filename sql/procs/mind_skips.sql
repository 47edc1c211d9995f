-- queen.mind_skips: lanes where nothing is passed over any more are claimed the hot way again.
--
-- called by  queen.forget_messages, queen.drop_group_skips
-- locks      the caller holds the lanes
create or replace function queen.mind_skips(p_lane bigint[])
returns void
language sql
as $$
    update queen.lanes l
       set skipping = false, careful = q.careful
      from queen.queues q
     where l.num = any (p_lane) and l.skipping and q.id = l.queue_id
       and (select k.lane from queen.skips k where k.lane = l.num limit 1) is null
$$;
