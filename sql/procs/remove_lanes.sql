-- queen.remove_lanes: delete some lanes of a deleted queue.
--
-- needs: forget_lanes
-- called by  queen.forget_queues, queen.delete_queue, queen.forget_deleted
-- in         p_queue: id of the queue; p_limit: lanes at most; p_wait false: leave lanes that other sessions hold
-- out        removed: how many; more: lanes are left, call again
-- locks      the row of deleted_queues; lanes in num order, like every push: waits for those in flight, or skips them.  Then as
--            queen.forget_lanes
--
-- Retry lanes go before the partitions, so that deleting a partition finds few of them.
create or replace function queen.remove_lanes(p_queue uuid, p_limit int, p_wait boolean, out removed int, out more boolean)
language plpgsql
as $$
declare
    v_lanes bigint[];
begin
    removed := 0;
    more := false;
    perform from queen.deleted_queues d where d.id = p_queue for update;
    if not found then
        return; -- another session has finished it
    end if;
    v_lanes := array(select r.num from queen.lanes r where r.origin_queue = p_queue and r.origin is not null limit p_limit);
    v_lanes := v_lanes || array(select l.num from queen.lanes l where l.queue_id = p_queue limit p_limit - cardinality(v_lanes));
    more := cardinality(v_lanes) >= p_limit;
    if p_wait then
        perform l.num from queen.lanes l where l.num = any (v_lanes) order by l.num for update;
    else
        v_lanes := array(select l.num from queen.lanes l where l.num = any (v_lanes) order by l.num for update skip locked);
    end if;
    delete from queen.lanes l where l.num = any (v_lanes);
    get diagnostics removed = row_count;
    more := more or exists (select from queen.lanes l where l.queue_id = p_queue);
    if not more then
        delete from queen.deleted_queues d where d.id = p_queue;
    end if;
end
$$;
