-- queen.mind_skips: lanes without any skipped place are claimed the fast way again.
--
-- called by  queen.forget_messages, queen.drop_group_skips
-- locks      the lanes, leaving out those that other sessions hold: they stay marked until the next call
--
-- Two statements: options of the queue must be read after the lane is locked.  queen.spread_options locks every marked lane, so
-- one of the two always sees what the other has done.
create or replace function queen.mind_skips(p_lane bigint[])
returns void
language plpgsql
as $$
declare
    v_lanes bigint[];
begin
    select array_agg(k.num) into v_lanes
      from (select l.num from queen.lanes l
             where l.num = any (p_lane) and l.skipping order by l.num for no key update skip locked) k;
    update queen.lanes l
       set skipping = false, careful = q.careful
      from queen.queues q
     where l.num = any (v_lanes) and q.id = l.queue_id
       and (select k.lane from queen.skips k where k.lane = l.num limit 1) is null;
end
$$;
