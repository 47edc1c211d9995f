-- queen.spread_more: continue an unfinished change of options, one bounded step.
--
-- needs: spread_step, step_lanes
-- called by  broker/src/broker/chores.c (call "forget_deleted"); brokers may call it at the same time
-- out        true if something was done: call again at once
-- locks      rows of configuring, lanes, each skipping those of other sessions: never waits
create or replace function queen.spread_more()
returns boolean
language plpgsql
as $$
declare
    v_queue   uuid;
    v_changed boolean := false;
begin
    for v_queue in
        select c.queue_id from queen.configuring c order by c.queue_id limit 100 for update skip locked
    loop
        select t.changed into v_changed from queen.spread_step(v_queue, queen.step_lanes(), false) t;
        exit when v_changed;
    end loop;
    return coalesce(v_changed, false);
end
$$;
