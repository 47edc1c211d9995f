-- queen.note_partitions: count removed partitions for the metrics of their queues.
--
-- called by  a statement trigger on queen.lanes (below): one row per statement and queue. queen.ensure_lanes counts
--            new partitions itself, because a trigger would cost more than the insert
--
-- If the queue was removed with its partitions, its name is gone: '__orphaned__'.
create or replace function queen.note_partitions()
returns trigger
language plpgsql
as $$
begin
    insert into queen.partition_changes (queue_name, created, deleted)
    select coalesce(q.name, '__orphaned__'), 0, sum(c.n)
      from (select queue_id, count(*) as n from changed where origin is null group by queue_id) c
      left join queen.queues q on q.id = c.queue_id
     group by 1;
    return null;
end
$$;

drop trigger if exists note_partitions_made on queen.lanes;
create or replace trigger note_partitions_gone after delete on queen.lanes
    referencing old table as changed
    for each statement execute function queen.note_partitions();
