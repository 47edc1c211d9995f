-- queen.remove_lanes: delete some lanes of deleted queues.
--
-- needs: forget_lanes
-- called by  queen.forget_queues, queen.delete_queue, queen.forget_deleted
-- in         p_queues: ids of the queues; p_limit: maximum number of lanes; p_wait false: leave lanes that other sessions have locked
-- out        the number of lanes removed
-- effects    removes a queue without lanes from queen.deleted_queues
-- locks      rows of deleted_queues by id; lanes in num order, like every push: waits for pushes in progress, or skips them. Then as
--            queen.forget_lanes
--
-- Removes retry lanes before partitions, so that deleting a partition finds few of them.
create or replace function queen.remove_lanes(p_queues uuid[], p_limit int, p_wait boolean)
returns int
language plpgsql
as $$
declare
    v_queues uuid[] := array(select d.id from queen.deleted_queues d where d.id = any (p_queues) order by d.id for update);
    v_lanes  bigint[];
    v_n      int;
begin
    v_lanes := array(select r.num from queen.lanes r where r.origin_queue = any (v_queues) and r.origin is not null limit p_limit);
    v_lanes := v_lanes || array(select l.num from queen.lanes l where l.queue_id = any (v_queues) limit p_limit - cardinality(v_lanes));
    if p_wait then
        perform l.num from queen.lanes l where l.num = any (v_lanes) order by l.num for update;
    else
        v_lanes := array(select l.num from queen.lanes l where l.num = any (v_lanes) order by l.num for update skip locked);
    end if;
    delete from queen.lanes l where l.num = any (v_lanes);
    get diagnostics v_n = row_count;
    delete from queen.deleted_queues d
     where d.id = any (v_queues)
       and (select l.num from queen.lanes l where l.queue_id = d.id limit 1) is null
       and (select r.num from queen.lanes r where r.origin_queue = d.id and r.origin is not null limit 1) is null;
    return v_n;
end
$$;
