-- queen.forget_queues: deleting a queue deletes its lanes, and they take all else with them.
--
-- needs: forget_lanes
-- called by  a statement trigger on queen.queues (below)
-- locks      lanes in num order, like every push: waits for those in flight
--
-- Watermarks and subscriptions are keyed by name and stay: the queue may come back.
create or replace function queen.forget_queues()
returns trigger
language plpgsql
as $$
declare
    v_lanes bigint[];
begin
    select array_agg(l.num) into v_lanes
      from (select num from queen.lanes where queue_id in (select id from gone)
             order by num for update) l;
    delete from queen.lanes where num = any (v_lanes);
    return null;
end
$$;

create or replace trigger forget_queues after delete on queen.queues
    referencing old table as gone
    for each statement execute function queen.forget_queues();
