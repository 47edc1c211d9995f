-- queen.notify_group: write into the change feed that what brokers know of a group is out of date.
--
-- called by  what moves cursors, ends leases or forgets groups from the outside
-- in         p_queue '': on all queues; p_group '': all groups of the queue
-- Every broker, also the one that asked, discovers the group again and looks whether leases it knows of still run.
create or replace function queen.notify_group(p_queue text, p_group text)
returns void
language plpgsql
as $$
begin
    if (select active from queen.rotation) = 'a' then
        insert into queen.changes_a (origin, slot, lanes, queue_name, grp) values (0, 'a', '{}', p_queue, p_group);
    else
        insert into queen.changes_b (origin, slot, lanes, queue_name, grp) values (0, 'b', '{}', p_queue, p_group);
    end if;
end
$$;
