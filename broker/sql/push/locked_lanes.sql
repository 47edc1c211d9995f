-- queen.locked_lanes: which of these lanes another transaction has locked, so that a push would wait.
--
-- called by  broker/src/broker/queue/locked.c (call "locked_lanes"), while pushes wait for these lanes
-- in         p_lane
-- out        those that are locked, or whose queue has a maxSize and is locked; not those that are gone
-- locks      what a push of these lanes locks, skipping what others have locked: it waits for nothing
create or replace function queen.locked_lanes(p_lane bigint[])
returns setof bigint
language plpgsql
as $$
declare
    v_queues uuid[];
    v_free   bigint[];
begin
    select array_agg(q.id) into v_queues
      from (select id from queen.queues
             where id = any (array(select l.queue_id from queen.lanes l where l.num = any (p_lane) and l.limited))
             order by id for no key update skip locked) q;
    select array_agg(l.num) into v_free
      from (select num from queen.lanes
             where num = any (p_lane) and (not limited or queue_id = any (v_queues))
             order by num for no key update skip locked) l;
    return query
    select l.num from queen.lanes l where l.num = any (p_lane) and l.num = any (v_free) is not true;
end
$$;
