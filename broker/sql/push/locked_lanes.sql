-- queen.locked_lanes: find the lanes that another transaction has locked, so that a push would wait.
--
-- called by  broker/src/broker/queue/locked.c (call "locked_lanes"), while pushes wait for these lanes
-- in         p_lane
-- out        the lanes that are locked, or whose queue has a maxSize and is locked; not the lanes that are gone
-- locks      the same as a push to these lanes, but skips rows that others have locked, so it never waits
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
