-- queen.notify_group: report in the change feed that remembered facts about a group are out of date.
--
-- called by  functions that move cursors, end leases or remove groups
-- in         p_queue '': on all queues; p_group '': all groups of the queue
-- Every broker, including the calling one, discovers the group again and checks whether the leases it remembers are still active.
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
