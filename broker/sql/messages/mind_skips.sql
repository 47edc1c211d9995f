-- queen.mind_skips: let lanes without skips use the fast claim function again.
--
-- called by  queen.forget_messages, queen.drop_skips
-- locks      the lanes, skipping those that other sessions have locked: they stay marked until the next call
--
-- Two statements, because the options of the queue must be read after the lane is locked. queen.spread_options locks every marked
-- lane, so one of the two always sees the changes of the other.
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
