-- queen.start_time: the time from which a group reads a lane that it has not used yet; no row: from the beginning.
--
-- A subscription to this partition wins over one to the whole queue, and that wins over one made by namespace or task.
-- called by  queen.start_cursor, queen.ensure_consumers
create or replace function queen.start_time(p_lane bigint, p_group text)
returns table (starts_at timestamptz)
language sql stable rows 1
as $$
    select m.subscription_timestamp
      from queen.lanes l
      join queen.queues q on q.id = l.queue_id
      join queen.consumer_groups_metadata m on m.consumer_group = p_group
       and ((m.queue_name = q.name and m.partition_name in ('', l.name))
            or (m.queue_name = '' and m.partition_name = ''
                and m.namespace in ('', q.namespace) and m.task in ('', q.task)))
     where l.num = p_lane and p_group <> '__QUEUE_MODE__'
     order by m.partition_name = '', m.queue_name = '', m.created_at
     limit 1
$$;
