-- queen.forget_queues: delete the lanes of deleted queues, and with them everything else.
--
-- needs: remove_lanes, step_lanes
-- called by  a statement trigger on queen.queues (below), also for a DELETE by hand
-- effects    one step. If partitions are left, queen.delete_queue or queen.forget_deleted continues
-- locks      as queen.remove_lanes: waits for pushes in flight
--
-- Watermarks and subscriptions are keyed by name and stay, because the queue may be created again.
create or replace function queen.forget_queues()
returns trigger
language plpgsql
as $$
begin
    if exists (select from gone) then
        insert into queen.deleted_queues (id, name) select g.id, g.name from gone g order by g.id;
        -- All queues of the statement together, because a session must not wait for a lane after it has locked consumers.
        perform queen.remove_lanes(array(select g.id from gone g), queen.step_lanes(), true);
    end if;
    return null;
end
$$;

create or replace trigger forget_queues after delete on queen.queues
    referencing old table as gone
    for each statement execute function queen.forget_queues();
