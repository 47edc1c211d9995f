-- queen.resolve_lanes: queen.ensure_lanes for the broker, with a short wait for names that other sessions are creating.
--
-- needs: ensure_lanes
-- called by  broker/src/broker/queue/lanes.c (call "ensure_lanes"), in a transaction of its own
-- in         pairs of queue and partition name
--            p_each  false: all together; a name that another transaction is creating, or whose queue it has locked, fails the
--                    call with 55P03 after 100 ms. true: one after the other, at most 10 ms for each
-- out        as queen.ensure_lanes; lane 0: the name is locked (only with p_each). After ten locked names the call ends, and the
--            remaining names have no row
-- locks      as queen.ensure_lanes; with p_each not in the common order, so two such calls may run into each other's timeout
create or replace function queen.resolve_lanes(p_queue text[], p_partition text[], p_each boolean)
returns table (idx int, lane bigint, lane_id uuid)
language plpgsql
as $$
#variable_conflict use_column
declare
    v_locked int := 0;
begin
    if not p_each then
        perform set_config('lock_timeout', '100ms', true);
        return query select e.idx, e.lane, e.lane_id from queen.ensure_lanes(p_queue, p_partition) e;
        return;
    end if;
    perform set_config('lock_timeout', '10ms', true);
    for i in 1 .. cardinality(p_queue) loop
        begin
            return query
            select i - 1, e.lane, e.lane_id from queen.ensure_lanes(array[p_queue[i]], array[p_partition[i]]) e;
        exception when lock_not_available then
            idx := i - 1; lane := 0; lane_id := null;
            return next;
            v_locked := v_locked + 1;
            exit when v_locked = 10;
        end;
    end loop;
end
$$;
