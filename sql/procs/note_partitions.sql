-- queen.note_partitions: partitions made and removed, for the metrics of their queues.
--
-- called by  statement triggers on queen.lanes (below): one row per statement and queue, whoever did it
--
-- Where the queue went with its partitions there is no name any more: '__orphaned__'.
create or replace function queen.note_partitions()
returns trigger
language plpgsql
as $$
begin
    if tg_op = 'INSERT' then
        insert into queen.partition_changes (queue_name, created, deleted)
        select q.name, c.n, 0
          from (select queue_id, count(*) as n from changed group by queue_id) c join queen.queues q on q.id = c.queue_id;
    else
        insert into queen.partition_changes (queue_name, created, deleted)
        select coalesce(q.name, '__orphaned__'), 0, sum(c.n)
          from (select queue_id, count(*) as n from changed group by queue_id) c
          left join queen.queues q on q.id = c.queue_id
         group by 1;
    end if;
    return null;
end
$$;

create or replace trigger note_partitions_made after insert on queen.lanes
    referencing new table as changed
    for each statement execute function queen.note_partitions();
create or replace trigger note_partitions_gone after delete on queen.lanes
    referencing old table as changed
    for each statement execute function queen.note_partitions();
