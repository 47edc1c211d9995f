-- queen.takes_partition: whether this partition can receive messages. False only if the queue has a fixed set of partitions without it.
--
-- called by  queen.create_schedule, queen.change_schedule, queen.run_schedules
-- out        true also if there is no such queue, because a push would create it
create or replace function queen.takes_partition(p_queue text, p_partition text)
returns boolean
language plpgsql stable
as $$
begin
    return not exists (select from queen.queues q
                        where q.name = p_queue and q.partitions > 0
                          and not exists (select from queen.lanes l where l.queue_id = q.id and l.name = p_partition));
end
$$;
