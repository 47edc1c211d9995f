-- queen.spread_ages: a queue whose age limits change has its lanes looked at by the next sweep.
--
-- called by  a statement trigger on queen.queues (below), also for an UPDATE by hand
-- locks      rows of queen.lane_due in lane order
create or replace function queen.spread_ages()
returns trigger
language plpgsql
as $$
begin
    insert into queen.lane_due (lane, evict_at, retain_at)
    select l.num, now(), now()
      from changed n
      join was o on o.id = n.id
      join queen.lanes l on l.queue_id = n.id
     where n.ages and (n.ttl_acts, n.ttl, n.max_wait_time_seconds, n.retention_enabled, n.retention_seconds,
                       n.completed_retention_seconds)
                      is distinct from
                      (o.ttl_acts, o.ttl, o.max_wait_time_seconds, o.retention_enabled, o.retention_seconds,
                       o.completed_retention_seconds)
     order by l.num
        on conflict (lane) do update set evict_at = excluded.evict_at, retain_at = excluded.retain_at;
    return null;
end
$$;

create or replace trigger spread_ages after update on queen.queues
    referencing old table as was new table as changed
    for each statement execute function queen.spread_ages();
